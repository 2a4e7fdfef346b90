"""Everybody can use the page: axe-core's rules, the keyboard alone, both languages, both themes, small windows."""

import re

import pytest
from playwright.sync_api import Page, expect

from serve.axe import serious_faults
from serve.conftest import Open
from serve.lens_pages import SECONDS

CAT = "猫在睡觉"
PAGES = ("text", "heads", "head", "compare", "tour")
MAX_TABS = 60  # to reach something with the tabulator


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_fault(lens: Open, name: str, theme: str) -> None:
    opened = lens(color_scheme=theme)
    page = opened.open(CAT, page=name, pins=1, off="decoder.0.cross/1", attention="decoder.0.cross")
    if name in ("heads", "head"):
        page.locator("table").first.wait_for(timeout=90_000)
    page.get_by_role("heading", level=2).first.wait_for()
    assert serious_faults(page) == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_overflows_and_both_languages_are_complete(lens: Open, name: str, width: int) -> None:
    opened = lens(viewport={"width": width, "height": 800}, locale="zh-CN")
    page = opened.open(CAT, page=name, attention="encoder.1.self")
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.get_by_role("heading", level=2).first.wait_for()
    opened.until(lambda: opened.overflow() <= 0)
    # A key without a text would be shown as the key itself.
    for _ in ("中文", "English"):
        assert re.findall(r"\b[a-z]+_[a-z_]+\b", page.locator("#app").inner_text()) == []
        page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    assert opened.overflow() <= 0


def test_a_page_is_in_one_language_at_a_time(lens: Open) -> None:
    opened = lens("tag", locale="en-US")
    page = opened.open("Anna went to Paris on Monday.")
    english = page.locator("#app").inner_text()
    assert re.findall(r"[一-鿿]+", english.replace("中文", "")) == []
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", name="注意力头", exact=True)).to_be_visible()
    opened.expect_state(lang="zh")


def test_the_theme_follows_the_system_and_the_switch(lens: Open) -> None:
    opened = lens(color_scheme="dark")
    page = opened.open(CAT)
    paper = "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    assert max(page.evaluate(paper)) < 80
    page.get_by_role("button", name="Light").click()
    assert min(page.evaluate(paper)) > 200
    opened.expect_state(theme="light")
    page.get_by_role("button", name="Auto").click()
    assert max(page.evaluate(paper)) < 80


NAME = "(node) => node.getAttribute('aria-label') || node.labels?.[0]?.textContent || node.textContent"
MARK = "(node) => { const style = getComputedStyle(node); return style.outlineStyle + style.boxShadow; }"


def tab_to(page: Page, name: str) -> None:
    """Press Tab until an element whose accessible name matches has the focus, which must be visible."""
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count() and re.search(name, focused.evaluate(NAME) or ""):  # after the last element: none
            assert focused.evaluate(MARK) != "nonenone", f"The focus on {name!r} is invisible."
            return
    raise AssertionError(f"{MAX_TABS} tabs did not reach {name!r}.")


def test_the_whole_flow_with_the_keyboard_alone(lens: Open) -> None:
    opened = lens()
    page = opened.open("他去了市场。")
    tab_to(page, "^Text$")
    page.keyboard.press("Control+A")
    page.keyboard.type(CAT)
    page.keyboard.press("Enter")
    opened.expect_state(text=CAT)
    opened.settle()
    tab_to(page, r"^(Encoder|Decoder|Cross).*, head \d")  # the overview is one stop of the tabulator
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.press("o")
    expect(page.locator(".region-answer").get_by_role("heading", name="Without 1 head")).to_be_visible()
    page.keyboard.press("Control+z")
    opened.expect_state(off=None)
    tab_to(page, "^Arcs")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    tab_to(page, "^Attention matrix")
    page.keyboard.press("ArrowDown")
    expect(page.locator("output.readout")).not_to_have_text(re.compile("Point at a word"))
    page.keyboard.press("Enter")
    opened.until(lambda: "pins" in opened.state())
    expect(page.get_by_role("heading", name=re.compile("Scores and weights"))).to_be_visible()
    page.keyboard.press("Escape")
    opened.expect_state(pins=None)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    tab_to(page, "^Tour$")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Step 1 of 11")).to_be_visible(timeout=SECONDS * 1000)
    tab_to(page, "^Next$")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Step 2 of 11")).to_be_visible()
