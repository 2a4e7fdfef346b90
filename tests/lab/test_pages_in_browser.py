"""The report of an experiment and the answer cards in a real browser, opened from disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from manyheads.lab.card_page import render_cards
from manyheads.lab.lab_answers import shipped_answers
from manyheads.lab.question_page import render_question

from serve.axe import CONTRAST, serious_faults


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    pages = {"report": render_question(shipped_answers()["positions"], "zh"), "cards": render_cards("en")}
    for name, content in pages.items():
        (folder / f"{name}.html").write_text(content, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose console and requests are checked after the test."""
    context = browser.new_context()
    opened, errors, requests = context.new_page(), [], []
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    yield opened
    context.close()
    assert errors == []
    assert [url for url in requests if not url.startswith("file:")] == []


def visible_text(page: Page) -> str:
    return page.locator("main").inner_text()


@pytest.mark.parametrize("name", ["report", "cards"])
def test_a_page_is_read_in_either_language_in_any_theme_on_any_screen(
    page: Page, files: dict[str, Path], name: str
) -> None:
    page.goto(files[name].as_uri())
    assert page.locator("html").get_attribute("lang") == ("zh" if name == "report" else "en")  # as it was made
    assert ("预测与结果" in visible_text(page)) == (name == "report")
    assert serious_faults(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious_faults(page, CONTRAST) == []
    page.get_by_role("button", name="English").focus()
    page.keyboard.press("Enter")
    english = visible_text(page)
    page.get_by_role("button", name="中文").focus()
    page.keyboard.press("Space")
    chinese = visible_text(page)
    assert page.locator("html").get_attribute("lang") == "zh"
    assert ("Predicted and measured" in english) == (name == "report")
    assert "准确率" in chinese and "准确率" not in english
    assert page.locator("svg.plot:visible").count() > 0
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_card_is_one_printed_page(page: Page, files: dict[str, Path], tmp_path: Path) -> None:
    page.goto(files["cards"].as_uri())
    n_cards = page.locator("article.card").count()
    page.pdf(path=tmp_path / "cards.pdf", format="A4")
    content = (tmp_path / "cards.pdf").read_bytes()
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") == n_cards + 1  # and the list of questions
