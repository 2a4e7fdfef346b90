"""Everybody can use the page: axe-core's rules, the keyboard alone, both languages, both themes, small windows."""

import re

import pytest
from playwright.sync_api import Page, expect

from serve.axe import CONTRAST, serious_faults
from serve.conftest import Open
from serve.lens_pages import SECONDS
from serve.test_lens_page import PAPER

CAT = "猫在睡觉"
PAGES = ("text", "heads", "head", "compare", "tour")
MAX_TABS = 60  # to reach something with the tabulator


@pytest.mark.parametrize("name", PAGES)
def test_every_view_is_accessible_complete_and_fits(lens: Open, name: str) -> None:
    opened = lens(viewport={"width": 390, "height": 800}, locale="zh-CN")
    page = opened.open(CAT, page=name, attention="encoder.1.self")
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.get_by_role("heading", level=2).first.wait_for()
    for language in ("中文", "English"):
        page.get_by_role("button", name=language).click()
        expect(page.locator("html")).to_have_attribute("lang", "zh" if language == "中文" else "en")
        # A key without a text would be shown as the key itself.
        assert re.findall(r"\b[a-z]+_[a-z_]+\b", page.locator("#app").inner_text()) == []
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            opened.until(lambda: opened.overflow() <= 0)
    page.set_viewport_size({"width": 1280, "height": 900})
    opened.open(CAT, page=name, pins=1, off="decoder.0.cross/1", attention="decoder.0.cross", lang="en")
    if name in ("heads", "head"):
        page.locator("table").first.wait_for(timeout=90_000)
    page.get_by_role("heading", level=2).first.wait_for()
    assert serious_faults(page) == []
    page.emulate_media(color_scheme="dark")
    opened.until(lambda: max(page.evaluate(PAPER)) < 80)
    assert serious_faults(page, CONTRAST) == []


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
