"""What the reader chose on the pages of all heads, of one head and of comparisons: a copied address restores it."""

import re

from playwright.sync_api import Page, expect

from serve.conftest import Open
from serve.lens_pages import LensPage


def heads_shown(page: Page) -> list[str]:
    """Return the heads of the table from top to bottom."""
    heads: list[str] = page.locator("table.heads tr[data-head]").evaluate_all("rows => rows.map((r) => r.dataset.head)")
    return heads


def reopened(lens: Open, opened: LensPage) -> Page:
    """Open the address of a page in another window."""
    page = lens(address=opened.address).page
    page.goto(opened.page.url)
    return page


def test_the_table_of_heads_is_restored(lens: Open) -> None:
    opened = lens("seq2seq")
    page = opened.open(page="heads")
    expect(page.locator("tr[data-head]")).to_have_count(12)
    page.get_by_label("Group by").select_option("layer")
    page.locator(".heads-filters").get_by_label("Attention").select_option("encoder")
    page.locator("table.heads").get_by_role("button", name="entropy").click()
    page.get_by_role("searchbox").fill("0.")
    opened.expect_state(groupBy="layer", onlyKind="encoder", sortBy="-entropy", find="0.")
    expect(page.locator("tr[data-head]")).to_have_count(2)
    expect(page.locator("tr.group")).to_have_count(1)
    copied = reopened(lens, opened)
    expect(copied.locator("tr[data-head]")).to_have_count(2)
    assert heads_shown(copied) == heads_shown(page)
    expect(copied.get_by_role("searchbox")).to_have_value("0.")
    expect(copied.locator("th[aria-sort=descending]")).to_contain_text("entropy")
    copied.locator("tr[data-head] a").first.click()
    copied.get_by_role("link", name="All heads").first.click()
    expect(copied.locator("tr[data-head]")).to_have_count(2)


def test_a_role_that_no_head_has_does_not_filter(lens: Open) -> None:
    page = lens("seq2seq").open(
        page="heads", onlyRole="no such role", sortBy="no such measure", axisX="?", onlyKind="x"
    )
    expect(page.locator("tr[data-head]")).to_have_count(12)


def test_the_mode_of_a_comparison_is_restored(lens: Open) -> None:
    opened = lens("seq2seq")
    page = opened.open("猫在睡觉。", page="compare")
    page.locator(".compare-list select").select_option("entropy")
    opened.expect_state(differBy="entropy", compare=None)
    page.get_by_role("button", name="Over training").click()
    opened.expect_state(compare="training")
    copied = reopened(lens, opened)
    expect(copied.get_by_role("slider", name="Step of training")).to_be_visible()
    legend = copied.locator(".timeline .role-legend .role-entry")
    expect(legend.first).to_be_visible()
    page.go_back()
    expect(page.get_by_role("button", name="Two texts")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".compare-list select")).to_have_value("entropy")


def test_examples_mark_the_tokens_that_a_head_links(lens: Open) -> None:
    opened = lens("seq2seq")
    page = opened.open(page="head", attention="decoder.0.cross", head=0)
    examples = page.locator(".corpus-text")
    expect(examples).to_have_count(10)
    facts = examples.locator(".corpus-facts span:first-child").all_inner_texts()
    for number, fact in enumerate(facts):
        query, key = re.fullmatch(r"(.+) → (.+) [\d.]+ %", fact.replace("\xa0", " ")).groups()  # type: ignore[union-attr]
        example = examples.nth(number)
        assert example.locator(".source mark.is-key").all_inner_texts() == ([key] if key != "EOS" else [])
        assert example.locator(".answer-line mark.is-query").all_inner_texts() == ([query] if query != "EOS" else [])
