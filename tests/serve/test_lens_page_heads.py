"""The pages about heads: all of them, one of them, two texts or bundles side by side, training, and the tour."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from serve.conftest import Open
from serve.lens_pages import serving

CAT = "猫在睡觉"
SURVEY = 90_000  # milliseconds until the heads of a small bundle are surveyed on a busy machine


def wait_for_survey(page: Page) -> None:
    page.locator("table.heads").wait_for(timeout=SURVEY)


def names_of(page: Page) -> list[str]:
    return page.locator("table.heads").get_by_role("rowheader").all_text_contents()


def test_all_heads_are_sorted_filtered_grouped_and_found(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, page="heads")
    wait_for_survey(page)
    assert len(names_of(page)) == 12
    expect(page.get_by_text(re.compile(r"12 heads, measured on \d+ texts of your corpus"))).to_be_visible()

    page.get_by_role("button", name="entropy (bits)").click()
    column = page.get_by_role("columnheader", name="entropy (bits)")
    expect(column).to_have_attribute("aria-sort", re.compile("ascending|descending"))
    once = names_of(page)
    page.get_by_role("button", name="entropy (bits)").click()
    assert names_of(page) == once[::-1]

    page.get_by_role("combobox", name="Attention").select_option(label="Cross-attention")
    assert all("cross" in name for name in names_of(page))
    page.get_by_role("combobox", name="Group by").select_option(label="layer")
    page.get_by_role("searchbox", name="Find a head").fill("cross 1.1")
    expect(page.locator("table.heads").get_by_role("link")).to_have_text(["cross 1.1"])
    page.get_by_role("searchbox", name="Find a head").fill("nothing like it")
    expect(page.get_by_text("No head passes this filter.")).to_be_visible()


def test_the_scatter_shows_any_two_measures_and_opens_a_head(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, page="heads")
    wait_for_survey(page)
    page.get_by_role("combobox", name="To the right").select_option(label="largest weight")
    scatter = page.get_by_role("img", name=re.compile("Scatter plot of 12 heads: largest weight to the right"))
    expect(scatter).to_be_visible()
    scatter.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    opened.expect_state(page="head")
    expect(page.get_by_role("heading", name="Heads like this one")).to_be_visible()


def test_the_page_of_a_head_has_evidence_examples_and_the_effect_of_ablating_it(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, page="head", attention="encoder.0.self", head=1)
    expect(page.get_by_role("heading", name="Encoder self-attention, layer 0, head 1")).to_be_visible()
    page.locator("table.evidence").first.wait_for(timeout=SURVEY)
    for column in ("Value", "95 %", "Baseline", "Random", "Cases"):
        expect(page.get_by_role("columnheader", name=column).first).to_be_visible()
    for stratum in ("strongest", "middle", "weakest"):
        expect(page.get_by_role("heading", name=stratum, exact=True)).to_be_visible()
    assert page.get_by_role("link", name="Open this text").count() >= 5
    page.get_by_role("button", name="Measure it").click()
    expect(page.get_by_text(re.compile("rows of the validation set"))).to_be_visible(timeout=SURVEY)
    nearest = page.get_by_role("heading", name="Heads like this one").locator("xpath=following::a[1]")
    nearest.click()
    expect(page.get_by_role("heading", name="Encoder self-attention, layer 0, head 1", level=2)).to_have_count(0)
    page.get_by_role("link", name="Open this text").first.click()
    opened.expect_state(page=None)


def test_two_texts_side_by_side(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, page="compare", text2="他去了市场。")
    expect(page.get_by_role("heading", name="Translation")).to_have_count(2)
    expect(page.get_by_role("heading", name="Heads that differ most")).to_be_visible()
    page.get_by_role("button", name=re.compile(r"^encoder \d\.\d")).first.click()
    expect(page.get_by_role("application", name=re.compile("Attention matrix: Encoder"))).to_have_count(2)
    page.get_by_role("textbox", name="Second text").fill("谁擦了一扇窗户？")
    page.get_by_role("textbox", name="Second text").press("Enter")
    opened.expect_state(text2="谁擦了一扇窗户？")


def test_two_bundles_side_by_side(lens: Open, trained: Callable[[str], Path]) -> None:
    with serving(trained("classify"), trained("masked")) as address:
        opened = lens(address=address)
        page = opened.open("这部电影很好看。", page="compare")
        expect(page.get_by_role("button", name=re.compile("Two (models|bundles)"))).to_be_visible()
        page.get_by_role("button", name=re.compile("Two (models|bundles)")).click()
        expect(page.get_by_role("heading", name="Class", exact=True)).to_be_visible()
        expect(page.get_by_role("heading", name="Masked words")).to_be_visible()
        expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_have_count(2)
        page.goto("about:blank")  # it asks for the survey every second, also while the server stops


def test_heads_over_training(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, page="compare")
    page.get_by_role("button", name="Over training").click()
    slider = page.get_by_role("slider", name="Step of training")
    slider.wait_for(timeout=SURVEY)
    slider.fill("0")
    opened.settle()
    opened.expect_state(step="150")
    expect(page.get_by_role("application", name=re.compile("Attention matrix")).first).to_be_visible()
    expect(page.get_by_role("img", name="Roles of all heads over the steps of training")).to_be_visible()


def test_the_tour_walks_one_sentence_through_one_layer(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, page="tour", attention="encoder.0.self")
    expect(page.get_by_text("Step 1 of 11")).to_be_visible()
    seen = set()
    for step in range(1, 12):
        expect(page.get_by_text(f"Step {step} of 11")).to_be_visible()
        article = page.get_by_role("article")
        seen.add(article.get_by_role("heading").first.text_content())
        assert "undefined" not in (article.text_content() or "") and "NaN" not in (article.text_content() or "")
        if step < 11:
            page.get_by_role("button", name="Next", exact=True).click()
    assert len(seen) == 11
    page.get_by_role("button", name="Softmax").click()
    expect(page.get_by_role("heading", name="Softmax")).to_be_visible()


@pytest.mark.parametrize("task", ["classify", "tag", "language", "masked"])
def test_the_tour_works_for_every_task(lens: Open, task: str) -> None:
    opened = lens(task)
    page = opened.open(page="tour", tour=6)
    expect(page.get_by_text("Step 7 of 11")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
