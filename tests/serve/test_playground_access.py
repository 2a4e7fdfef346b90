"""Everybody can use the playground: axe-core's rules, the keyboard alone, both languages and themes, small windows."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from serve.axe import serious_faults
from serve.conftest import TASKS, OpenPlay
from serve.playground_pages import TEXTS, PlayPage
from serve.test_lens_page_access import tab_to

KEYS = re.compile(r"\bplay_\w+")  # a message without a text would be shown as its key


def fill(opened: PlayPage, task: str) -> None:
    """Answer the text of a task with everything unfolded."""
    if task == "language":
        opened.field.fill(TEXTS[task])
        opened.page.locator(".play-in .primary:visible").click()
        opened.page.locator(".play-latency:not(:empty)").wait_for()
    else:
        opened.answer(TEXTS[task])
    opened.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    add = opened.page.locator(".play-glossary .play-acts button").first
    if add.count():
        add.click()


@pytest.mark.parametrize(("theme", "width", "locale"), [("light", 1280, "zh-CN"), ("dark", 390, "en-US")])
@pytest.mark.parametrize("task", TASKS)
def test_every_page_is_accessible_complete_and_fits(
    playground: OpenPlay, task: str, theme: str, width: int, locale: str
) -> None:
    opened = playground(color_scheme=theme, viewport={"width": width, "height": 800}, locale=locale)
    page = opened.start(task)
    first, second = ("zh", "English") if locale == "zh-CN" else ("en", "中文")
    expect(page.locator("html")).to_have_attribute("lang", first)
    fill(opened, task)
    assert opened.overflow() <= 0
    assert not KEYS.findall(page.locator("#app").inner_text())
    page.wait_for_timeout(200)  # until colors have faded in
    assert serious_faults(page) == []
    page.get_by_role("button", name=second).click()
    opened.expect_state(lang="en" if first == "zh" else "zh", bundle=task)
    assert opened.field.input_value() == TEXTS[task]
    assert opened.overflow() <= 0
    assert not KEYS.findall(page.locator("#app").inner_text())


def test_a_page_is_in_one_language_at_a_time(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start("tag")
    opened.answer(TEXTS["tag"])
    shown = page.locator("#app").inner_text().replace("中文", "")
    for example in page.locator(".play-examples button").all_inner_texts():  # texts for bundles, in their languages
        shown = shown.replace(example, "")
    assert re.findall(r"[一-鿿]+", shown) == []
    opened.open_part("curl")
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("button", name="中文")).to_be_focused()
    expect(page.get_by_text("用命令行发送同样的请求。")).to_be_visible()
    expect(page.get_by_role("heading", name="实体")).to_be_visible()
    expect(page.locator("mark.play-entity").first).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="实体")).to_be_visible()


def test_the_theme_follows_the_system_and_the_switch(playground: OpenPlay) -> None:
    opened = playground(color_scheme="dark")
    page = opened.start()
    paper = "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    assert max(page.evaluate(paper)) < 80
    page.get_by_role("button", name="Light").click()
    assert min(page.evaluate(paper)) > 200
    page.reload()
    opened.field.wait_for()
    assert min(page.evaluate(paper)) > 200, "The theme outlives a reload."
    page.get_by_role("button", name="Auto").click()
    assert max(page.evaluate(paper)) < 80


def test_the_whole_flow_with_the_keyboard_alone(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start()
    expect(opened.field).to_be_focused()
    page.keyboard.type(TEXTS["seq2seq"])
    expect(opened.output.locator(".play-word").first).to_be_visible()
    tab_to(page, "^Translation$")
    page.keyboard.press("End")
    expect(page.locator(".play-word.is-here")).to_have_count(1)
    tab_to(page, "^Copy$")
    tab_to(page, "^Glossary")
    page.keyboard.press("Enter")
    tab_to(page, "^Add a row$")
    page.keyboard.press("Enter")
    page.keyboard.type("猫")
    tab_to(page, "Target term 1")
    page.keyboard.type("cat")
    tab_to(page, "Remove row 1")
    tab_to(page, "^Options")
    page.keyboard.press("Enter")
    tab_to(page, "^Search")
    page.keyboard.press("b")  # beam search
    expect(page.get_by_role("table", name="Candidates")).to_be_visible()
    choose_with_keys(page, "language")
    opened.field.focus()
    page.keyboard.type(TEXTS["language"])
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Use as prompt")).to_be_visible()


def choose_with_keys(page: Page, name: str) -> None:
    """Choose a bundle by typing the beginning of its name."""
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.locator("header a").first.focus()
    tab_to(page, "^Bundle$")
    page.keyboard.type(name[:2])
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.locator("#play-bundle")).to_be_focused()


def test_links_lead_to_the_lens_page_and_the_api(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start("tag")
    page.get_by_role("link", name="Lens").click()
    expect(page).to_have_title(re.compile("manyheads lens"))
    opened.start("tag")
    with page.expect_navigation() as loaded:
        page.get_by_role("link", name="API").click()
    assert loaded.value.ok and urlsplit(loaded.value.url).path == "/docs"
