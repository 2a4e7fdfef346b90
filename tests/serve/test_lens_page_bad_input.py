"""Bad input on the page: always a clear message, never a blank page, and text stays text."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from serve.conftest import Open
from serve.lens_pages import LensPage, serving
from serve.test_lens_page import expect_odd_scripts, matrix

CAT = "猫在睡觉"
ATTACK = "<img src=x onerror=alert(1)>\"'</script><script>document.title='owned'</script>&amp;"


def submit(opened: LensPage, text: str) -> Page:
    box = opened.page.get_by_role("textbox", name="Text")
    box.fill(text)
    opened.page.get_by_role("button", name="Look").click()
    return opened.page


def test_odd_texts_are_read_or_refused_and_text_stays_text(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    for text in ("", "   \n "):
        submit(opened, text)
        expect(page.get_by_role("alert")).to_have_text(re.compile("Enter a text first"))
        expect(matrix(page)).to_be_visible()
    assert opened.state()["text"] == CAT
    submit(opened, f"{CAT}。")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect_odd_scripts(opened)
    opened.open(ATTACK, answer=ATTACK, unit="words")
    expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(ATTACK)
    assert page.title() != "owned"
    for name in ("text", "heads", "compare", "tour"):
        opened.open(ATTACK, page=name)
        assert page.locator("#app img[src=x], #app script").count() == 0
    page.get_by_role("link", name="One text").click()
    opened.settle()
    assert page.title() != "owned"


def test_a_text_over_the_limit_says_what_the_limit_is(lens: Open) -> None:
    opened = lens("masked")
    opened.allow("status of 422")  # the browser's own line about an answer of the server
    page = opened.open("猫" * 1500)  # in the address
    alert = page.get_by_role("alert")
    expect(alert).to_have_text(re.compile(r"at most 1,0\d\d at once"))
    submit(opened, CAT)
    expect(matrix(page)).to_be_visible()
    expect(alert).to_have_count(0)
    for length, limit in (
        (1100, r"at most 1,0\d\d at once"),
        (20_001, "limit is 20,000"),
        (200_000, "limit is 20,000"),
    ):
        submit(opened, "猫" * length)
        expect(alert).to_have_text(re.compile(limit))
        expect(matrix(page)).to_be_visible()


def test_a_deleted_bundle_and_a_server_that_is_gone_are_reported(
    lens: Open, trained: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copytree(trained("masked"), tmp_path / "run" / "bundle")
    with serving(tmp_path / "run" / "bundle") as address:
        opened = lens(address=address)
        opened.allow("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET")
        page = opened.open(CAT)
        shutil.rmtree(tmp_path / "run")
        submit(opened, "猫在[MASK]觉。")
        expect(page.get_by_text("The folder of this bundle was deleted")).to_be_visible()
        expect(matrix(page)).to_be_visible()
    submit(opened, "猫")
    expect(page.get_by_role("alert").filter(has_text="No answer from the server").first).to_be_visible()
    expect(matrix(page)).to_be_visible()


def test_without_javascript_the_page_says_so(lens: Open) -> None:
    opened = lens(java_script_enabled=False)
    opened.page.goto(opened.address)
    shown = opened.page.locator("body").inner_text()
    assert "This page needs JavaScript" in shown
    assert "本页需要 JavaScript" in shown
