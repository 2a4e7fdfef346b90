"""The answer of every task on the page, and what becomes of it when heads are switched off."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from serve.conftest import Open

CAT = "猫在睡觉"
CHANGE = re.compile(r"original .*nats")
TAGGED = "Anna went to Paris on Monday."


def answer(page: Page) -> Locator:
    return page.locator(".region-answer")


def test_a_translation_shows_probabilities_and_alternatives_and_steps_through_its_generation(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, attention="decoder.0.cross")
    tokens = answer(page).get_by_role("button", name=re.compile(r"[\d.]+\s%$"))
    assert tokens.count() > 2
    expect(answer(page).get_by_role("table", name="Most probable tokens at this step")).to_be_visible()
    expect(answer(page).get_by_role("row")).to_have_count(6)  # five tokens and the rest
    tokens.nth(1).click()
    expect(answer(page).get_by_role("heading", name="Token 2 of")).to_be_visible()
    opened.expect_state(at="1")
    answer(page).get_by_role("button", name="Next step").click()
    expect(answer(page).get_by_role("heading", name="Token 3 of")).to_be_visible()
    opened.expect_state(at="2")
    # The row of this step is marked in the views of the head.
    row = page.locator(".numbers").first
    expect(page.get_by_role("heading", name=re.compile("One row in numbers"))).to_be_visible()
    expect(row).to_be_visible()
    answer(page).get_by_role("button", name="Whole answer").click()
    opened.expect_state(at=None)


def test_class_probabilities_sum_to_one(lens: Open) -> None:
    opened = lens("classify")
    page = opened.open()
    cells = answer(page).get_by_role("table", name="Labels").get_by_role("cell")
    shares = [float(found) for found in re.findall(r"([\d.]+)\s%", " ".join(cells.all_text_contents()))]
    assert sum(shares) == pytest.approx(100, abs=0.3)


def test_entities_are_marked_in_the_text(lens: Open) -> None:
    opened = lens("tag")
    page = opened.open(TAGGED)
    marks = answer(page).locator("mark")
    assert marks.count() >= 1
    shown = " ".join(answer(page).locator("p").all_text_contents())
    for word in ("Anna", "went to", "Monday"):
        assert word in shown


def test_a_language_model_shows_what_it_writes(lens: Open) -> None:
    opened = lens("language")
    page = opened.open("猫", at=2)  # after BOS and the prompt
    expect(answer(page).get_by_role("heading", name=re.compile("Token 1 of"))).to_be_visible()
    expect(answer(page).get_by_text("all others")).to_be_visible()


def test_a_masked_model_fills_the_mask(lens: Open) -> None:
    opened = lens("masked")
    page = opened.open("猫在[MASK]觉。")
    expect(answer(page).get_by_role("table", name="Mask 1 of 1")).to_be_visible()
    assert answer(page).get_by_role("row").count() >= 5
    page.get_by_role("textbox", name="Text").fill("猫在睡觉。")
    page.get_by_role("button", name="Look").click()
    expect(answer(page).get_by_text("Write [MASK] in the text")).to_be_visible()


def test_switching_heads_off_changes_the_answer_and_undo_brings_it_back(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    page.get_by_role("switch", name="cross 0.0 on or off").click()
    expect(answer(page).get_by_role("heading", name="Without 1 head")).to_be_visible()
    expect(answer(page).get_by_text(CHANGE)).to_be_visible()
    expect(answer(page).get_by_role("button", name=re.compile("→")).first).to_be_visible()  # before → after
    page.get_by_role("switch", name="Cross-attention, layer 1: all heads on or off").click()
    expect(answer(page).get_by_role("heading", name="Without 3 heads")).to_be_visible()
    expect(answer(page).get_by_text(re.compile("The answer (changes|stays)"))).to_be_visible()
    opened.expect_state(off="decoder.0.cross/0,decoder.1.cross/0,decoder.1.cross/1")
    page.get_by_role("button", name="Undo").click()
    opened.expect_state(off="decoder.0.cross/0")
    page.get_by_role("button", name="Switch cross 0.0 on again").click()
    opened.expect_state(off=None)
    expect(answer(page).get_by_role("heading", name=re.compile("Without"))).to_have_count(0)


def test_whole_layer_all_on_and_control_with_random_heads(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    page.get_by_role("combobox", name="Whole layer").select_option(label="Encoder self-attention, layer 0")
    opened.expect_state(off="encoder.0.self/0,encoder.0.self/1")
    page.get_by_role("button", name="All on").click()
    opened.expect_state(off=None)
    page.get_by_role("button", name="6 random ones off").click()
    expect(answer(page).get_by_role("heading", name="Without 6 heads")).to_be_visible()


def test_the_most_important_heads_go_off_at_once(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    page.get_by_role("button", name="Importance here").click()
    expect(page.get_by_text(re.compile("how much log-probability the answer loses"))).to_be_visible()
    page.get_by_role("button", name=re.compile("The 6 most important")).click()
    expect(answer(page).get_by_role("heading", name="Without 6 heads")).to_be_visible()
    expect(answer(page).get_by_text(re.compile("less probable.*−"))).to_be_visible()  # less probable than before


@pytest.mark.parametrize(("task", "text"), [("seq2seq", CAT), ("classify", ""), ("tag", TAGGED), ("language", "猫")])
def test_contrast_names_the_heads_behind_a_choice(lens: Open, task: str, text: str) -> None:
    opened = lens(task)
    page = opened.open(text)
    page.get_by_role("button", name="Find the heads").click()
    expect(page.get_by_text(re.compile("The logit of .* (above|below) that of"))).to_be_visible()
    bars = page.locator(".contrast").get_by_role("button", name=re.compile(r"(encoder|decoder|cross) \d\.\d"))
    assert bars.count() >= 4
    bars.first.click()  # switches it off
    expect(answer(page).get_by_role("heading", name="Without 1 head")).to_be_visible()


def test_another_answer_can_be_traced(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    page.get_by_role("button", name="Trace another answer").click()
    page.get_by_role("textbox", name="Answer to trace").fill("The cat is here.")
    page.get_by_role("textbox", name="Answer to trace").press("Enter")
    opened.expect_state(answer="The cat is here.")
    expect(answer(page).get_by_role("button", name=re.compile(r"^\.\s"))).to_be_visible()
    page.get_by_role("button", name="Use the model's own answer").click()
    opened.expect_state(answer=None)


def test_two_tabs_ablate_without_disturbing_each_other(lens: Open) -> None:
    one, other = lens(), lens()
    for opened in (one, other):
        opened.open(CAT)
    one.page.get_by_role("switch", name="cross 0.0 on or off").click()
    other.page.get_by_role("switch", name="cross 1.1 on or off").click()
    changes = []
    for opened in (one, other):
        expect(answer(opened.page).get_by_role("heading", name="Without 1 head")).to_be_visible()
        expect(answer(opened.page).get_by_text(CHANGE)).to_be_visible()
        changes.append(re.findall(r"([−+][\d.]+)\snats", answer(opened.page).text_content() or ""))
    assert changes[0] != changes[1]
    alone = lens()
    alone.open(CAT, off="decoder.0.cross/0")
    expect(answer(alone.page).get_by_text(re.compile(rf"{re.escape(changes[0][0])}\snats"))).to_be_visible()
