"""The pages about heads: all of them, one of them, two texts or bundles side by side, training, and the tour."""

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from manyheads.bundle import load

from serve.conftest import Open
from serve.lens_pages import serving

CAT = "猫在睡觉"
SURVEY = 90_000  # milliseconds until the heads of a small bundle are surveyed on a busy machine
N_HEADS = 12


def names_of(page: Page) -> list[str]:
    return page.locator("table.heads").get_by_role("rowheader").all_text_contents()


def heads_shown(page: Page) -> list[str]:
    """Return the heads of the table from top to bottom."""
    heads: list[str] = page.locator("table.heads tr[data-head]").evaluate_all("rows => rows.map((r) => r.dataset.head)")
    return heads


def test_all_heads_are_sorted_filtered_grouped_found_and_restored(lens: Open) -> None:
    opened = lens()
    unknown = {"onlyRole": "no such role", "sortBy": "no such measure", "axisX": "?", "onlyKind": "x"}
    page = opened.open(CAT, page="heads", **unknown)  # they do not filter
    page.locator("table.heads").wait_for(timeout=SURVEY)
    expect(page.locator("tr[data-head]")).to_have_count(N_HEADS)
    expect(page.get_by_text(re.compile(r"12 heads, measured on \d+ texts of your corpus"))).to_be_visible()
    entropy = page.get_by_role("button", name="entropy (bits)")
    entropy.click()
    column = page.get_by_role("columnheader", name="entropy (bits)")
    expect(column).to_have_attribute("aria-sort", re.compile("ascending|descending"))
    once = names_of(page)
    assert len(once) == N_HEADS
    entropy.click()
    assert names_of(page) == once[::-1]
    page.get_by_role("combobox", name="Attention").select_option(label="Cross-attention")
    assert names_of(page) and all("cross" in name for name in names_of(page))
    page.get_by_role("combobox", name="Group by").select_option(label="layer")
    search = page.get_by_role("searchbox", name="Find a head")
    search.fill("cross 1.1")
    expect(page.locator("table.heads").get_by_role("link")).to_have_text(["cross 1.1"])
    search.fill("nothing like it")
    expect(page.get_by_text("No head passes this filter.")).to_be_visible()

    # A copied address restores the table, and so does the way back from a head.
    page.locator(".heads-filters").get_by_label("Attention").select_option("encoder")
    search.fill("0.")
    expect(page.locator("tr[data-head]")).to_have_count(2)
    if column.get_attribute("aria-sort") == "ascending":
        entropy.click()
    opened.expect_state(groupBy="layer", onlyKind="encoder", sortBy="-entropy", find="0.")
    expect(page.locator("tr.group")).to_have_count(1)
    copied = opened.tab().page
    copied.goto(page.url)
    expect(copied.locator("tr[data-head]")).to_have_count(2)
    assert heads_shown(copied) == heads_shown(page)
    expect(copied.get_by_role("searchbox")).to_have_value("0.")
    expect(copied.locator("th[aria-sort=descending]")).to_contain_text("entropy")
    copied.locator("tr[data-head] a").first.click()
    copied.get_by_role("link", name="All heads").first.click()
    expect(copied.locator("tr[data-head]")).to_have_count(2)

    # The scatter shows any two measures and opens a head.
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

    # Examples mark the tokens that a head links.
    opened.open(page="head", attention="decoder.0.cross", head=0)
    expect(page.get_by_role("heading", name="Cross-attention, layer 0, head 0")).to_be_visible()
    examples = page.locator(".corpus-text")
    expect(examples.locator(".answer-line")).to_have_count(10)
    facts = examples.locator(".corpus-facts span:first-child").all_inner_texts()
    assert len(facts) == 10
    for number, fact in enumerate(facts):
        query, key = re.fullmatch(r"(.+) → (.+) [\d.]+ %", fact.replace("\xa0", " ")).groups()  # type: ignore[union-attr]
        example = examples.nth(number)
        assert example.locator(".source mark.is-key").all_inner_texts() == ([key] if key != "EOS" else [])
        assert example.locator(".answer-line mark.is-query").all_inner_texts() == ([query] if query != "EOS" else [])
    page.get_by_role("link", name="Open this text").first.click()
    opened.expect_state(page=None)


def test_two_texts_side_by_side_and_heads_over_training(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, page="compare", text2="他去了市场。")
    expect(page.get_by_role("heading", name="Translation")).to_have_count(2)
    expect(page.get_by_role("heading", name="Heads that differ most")).to_be_visible()
    page.get_by_role("button", name=re.compile(r"^encoder \d\.\d")).first.click()
    expect(page.get_by_role("application", name=re.compile("Attention matrix: Encoder"))).to_have_count(2)
    page.get_by_role("textbox", name="Second text").fill("谁擦了一扇窗户？")
    page.get_by_role("textbox", name="Second text").press("Enter")
    opened.expect_state(text2="谁擦了一扇窗户？")
    page.locator(".compare-list select").select_option("entropy")
    opened.expect_state(differBy="entropy", compare=None)

    page.get_by_role("button", name="Over training").click()
    opened.expect_state(compare="training")
    slider = page.get_by_role("slider", name="Step of training")
    slider.wait_for(timeout=SURVEY)
    expect(page.locator(".timeline .role-legend .role-entry").first).to_be_visible(timeout=SURVEY)
    copied = opened.tab().page
    copied.goto(page.url)
    expect(copied.get_by_role("slider", name="Step of training")).to_be_visible(timeout=SURVEY)
    expect(copied.locator(".timeline .role-legend .role-entry").first).to_be_visible()
    page.go_back()
    expect(page.get_by_role("button", name="Two texts")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".compare-list select")).to_have_value("entropy")
    page.go_forward()
    slider.fill("0")
    opened.settle()
    opened.expect_state(step="150")
    expect(page.get_by_role("application", name=re.compile("Attention matrix")).first).to_be_visible()
    expect(page.get_by_role("img", name="Roles of all heads over the steps of training")).to_be_visible()


def test_two_bundles_side_by_side_whose_names_and_labels_stay_text(
    lens: Open, trained: Callable[[str], Path], tmp_path: Path
) -> None:
    run = tmp_path / "<b>x" / "<img src=x onerror=alert(1)>'\""
    bundle = load(trained("classify"), engine="torch")
    object.__setattr__(bundle.task, "labels", tuple(f"<i>{label}</i>" for label in bundle.task.labels))
    bundle.save(run / "bundle")
    with serving(run / "bundle", trained("masked")) as address:
        opened = lens(address=address)
        page = opened.open(CAT)
        expect(page.get_by_role("heading", level=1)).to_have_text(run.name)
        expect(page.get_by_role("rowheader", name="<i>").first).to_be_visible()
        opened.open("这部电影很好看。", page="compare")
        page.get_by_role("button", name=re.compile("Two (models|bundles)")).click()
        expect(page.get_by_role("heading", name="Class", exact=True)).to_be_visible()
        expect(page.get_by_role("heading", name="Masked words")).to_be_visible()
        expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_have_count(2)
        assert page.locator("#app img[src=x], #app i").count() == 0
        page.goto("about:blank")  # it asks for the survey every second, also while the server stops


def test_the_tour_walks_one_sentence_through_one_layer(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, page="tour", attention="encoder.0.self")
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
