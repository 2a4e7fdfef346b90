"""The playground of a server with keys that ends: one clear line, and nothing that was typed is lost."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from serve.conftest import OpenPlay
from serve.playground_pages import TEXTS
from serve.service_process import serving_process

KEY = "a-key-for-these-tests"


def test_the_key_is_asked_for_once_and_a_server_that_is_gone_is_reported(
    playground: OpenPlay, trained: Callable[[str], Path], tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n")
    with serving_process(f"tag={trained('tag')}", log=tmp_path / "log", options=("--keys", str(keys))) as service:
        opened = playground(address=service.address)
        opened.allow("401|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET")
        page = opened.page
        page.goto(service.address)
        expect(page.get_by_role("alert")).to_have_text("This server needs an API key.")
        page.get_by_label("API key").fill("wrong-key-wrong-key")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("The server does not accept this key.")
        page.get_by_label("API key").fill(KEY)
        page.get_by_role("button", name="Use this key").click()
        opened.answer(TEXTS["tag"])
        expect(page.locator("mark.play-entity").first).to_be_visible()
        command = opened.open_part("curl").locator("code").text_content() or ""
        assert "$MANYHEADS_KEY" in command and KEY not in command
        expect(page.get_by_role("link", name="Lens")).to_have_count(0)  # a server with keys has no lens page
        page.reload()
        expect(page.locator("mark.play-entity").first).to_be_visible()
        assert KEY not in page.url
    opened.field.fill("Anna is in Paris.")
    expect(page.get_by_role("alert")).to_have_text(
        re.compile("No answer from the server.*previous result is still shown")
    )
    expect(page.locator("mark.play-entity").first).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert opened.field.input_value() == "Anna is in Paris."
