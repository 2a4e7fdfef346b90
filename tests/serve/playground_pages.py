"""Drives the playground in a browser: the page of one bundle, its requests and its answers."""

import json
import re
from typing import Any

from playwright.sync_api import BrowserContext, Locator, Page, Response

from serve.lens_pages import LensPage

CAT = "两只猫正在花园里睡觉。"
TEXTS = {
    "seq2seq": CAT,
    "classify": "这家餐厅的菜很好吃，但是服务太慢了。",
    "tag": "Anna met Daniel in Paris on Monday.",
    "language": "上个星期天",
    "masked": "两只猫正在[MASK]里[MASK]觉。",
}
BUSY = ".play-out .working.active"


class PlayPage(LensPage):
    """A page of the playground."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        super().__init__(context, address)
        self.bodies: list[dict[str, Any]] = []  # of the requests for predictions
        context.on("request", self._on_predict)

    def _on_predict(self, request: Any) -> None:
        if request.url.endswith("/v1/predict"):
            self.bodies.append(json.loads(request.post_data))

    def start(self, bundle: str = "seq2seq", **state: str) -> Page:
        """Open the page of a bundle."""
        self.page.goto(self.address + self.hash_of(bundle=bundle, **state))
        self.field.wait_for()
        return self.page

    @property
    def field(self) -> Locator:
        """The text field."""
        return self.page.locator("#play-text")

    @property
    def output(self) -> Locator:
        """What the bundle answers."""
        return self.page.locator(".play-output")

    @property
    def words(self) -> Locator:
        """The text of a translation or a continuation."""
        return self.page.locator(".play-words")

    def answer(self, text: str) -> dict[str, Any]:
        """Type a text and return the prediction that the server sends."""
        with self.page.expect_response(lambda one: _is_answer(one, text)) as sent:
            self.field.fill(text)
        self.page.locator(".play-latency:not(:empty)").wait_for()
        self.page.locator(BUSY).wait_for(state="detached")
        prediction: dict[str, Any] = sent.value.json()["predictions"][0]
        return prediction

    def stop_clock(self) -> None:
        """Stop the clock of the page; `page.clock.run_for` moves it on."""
        self.page.clock.install(time=0)
        self.page.clock.pause_at(1000)

    def open_part(self, name: str) -> Locator:
        """Unfold a part of the page, such as the options."""
        part = self.page.locator("details", has=self.page.locator("summary", has_text=re.compile(f"^{name}")))
        if part.get_attribute("open") is None:
            part.locator("summary").click()
        return part


def _is_answer(response: Response, text: str) -> bool:
    if not response.url.endswith("/v1/predict") or response.status != 200:
        return False
    return bool(json.loads(response.request.post_data or "{}").get("texts") == [text])
