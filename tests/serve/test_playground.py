"""The playground in a real browser: every task, as you type."""

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from serve.conftest import OpenPlay
from serve.playground_pages import CAT, TEXTS

TYPED = 250  # milliseconds without a key before a request is sent
# A press of a button that comes through Playwright could be too late.
STOP_SOON = """() => new MutationObserver((_, observer) => {
  if (document.querySelector(".play-words").textContent.length < 12) return;
  observer.disconnect();
  document.querySelector(".play-stop").click();
}).observe(document.querySelector(".play-words"), { childList: true })"""
LINKED = re.compile("is-linked")


def copied(page: Page, name: str) -> str:
    """Press a button that copies, and return the clipboard."""
    page.get_by_role("button", name=name, exact=True).first.click()
    expect(page.locator(".announcement")).to_have_text("Copied.")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_a_text_is_translated_as_it_is_typed(playground: OpenPlay) -> None:
    opened = playground(permissions=["clipboard-read", "clipboard-write"])
    page = opened.start()
    expect(page.get_by_text("The translation appears here as you type.")).to_be_visible()
    prediction = opened.answer(CAT)
    expect(opened.words).to_have_text(prediction["answer"])
    expect(page.locator(".play-latency")).to_have_text(re.compile(r"^\d+(\.\d)? m?s$"))
    expect(page.get_by_text(f"{len(CAT)} characters")).to_be_visible()
    expect(page.get_by_text(re.compile("(High|Medium|Low) confidence"))).to_be_visible()
    assert copied(page, "Copy") == prediction["answer"]
    assert json.loads(copied(page, "Copy as JSON")) == prediction
    page.get_by_role("button", name="Clear").click()
    expect(opened.words).to_be_hidden()
    expect(page.get_by_text("The translation appears here as you type.")).to_be_visible()


def test_only_a_pause_sends_a_request(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start()
    opened.stop_clock()
    for length in range(1, len(CAT) + 1):
        opened.field.fill(CAT[:length])
        page.clock.run_for(TYPED - 10)
    assert opened.bodies == []
    with page.expect_request("**/v1/predict"):
        page.clock.run_for(20)
    assert [body["texts"] for body in opened.bodies] == [[CAT]]


def test_half_a_chinese_word_is_not_sent(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start()
    opened.stop_clock()
    opened.field.dispatch_event("compositionstart")
    opened.field.fill("mao")
    page.clock.run_for(10 * TYPED)
    assert opened.bodies == []
    opened.field.fill("猫")
    opened.field.dispatch_event("compositionend")
    with page.expect_request("**/v1/predict"):
        page.clock.run_for(2 * TYPED)
    assert [body["texts"] for body in opened.bodies] == [["猫"]]


def test_an_answer_that_comes_too_late_is_dropped(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start()
    held = []
    page.route("**/v1/predict", lambda route: held.append(route) if not held else route.continue_())
    opened.field.fill("猫")
    opened.until(lambda: bool(held))
    prediction = opened.answer(CAT)
    late = {"predictions": [{"answer": "late", "candidates": [], "source": "猫"}]}
    held[0].fulfill(json=late)
    page.wait_for_timeout(100)
    expect(opened.words).to_have_text(prediction["answer"])
    assert opened.field.input_value() == CAT


def test_words_are_aligned_in_both_directions(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start()
    prediction = opened.answer(CAT)
    assert prediction["alignment"], "The small model aligns nothing: take another text."
    i, j = prediction["alignment"][0]
    source, target = prediction["source_words"][i], prediction["target_words"][j]
    words = page.locator(".play-words .play-word")
    words.nth(j).hover()
    expect(page.locator(f".play-mirror [data-source='{i}']")).to_have_class(LINKED)
    expect(page.locator(".play-aligned")).to_have_text(re.compile(f"^“{re.escape(target)}” ↔ .*“{source}”"))
    box = page.locator(f".play-mirror [data-source='{i}']").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(words.nth(j)).to_have_class(LINKED)
    expect(page.locator(".play-aligned")).to_have_text(re.compile(f"^“{source}” ↔ .*“{re.escape(target)}”"))
    page.mouse.move(0, 0)
    page.locator(".play-words").focus()
    for _ in range(j):
        page.keyboard.press("ArrowRight")
    expect(page.locator(f".play-mirror [data-source='{i}']")).to_have_class(LINKED)
    opened.field.fill(f"{CAT}猫")  # the alignment of the former text does not fit this one
    expect(page.locator(".play-mirror .is-linked")).to_have_count(0)


def test_a_beam_search_gives_candidates_with_their_log_probabilities(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start()
    opened.answer(CAT)
    options = opened.open_part("Options")
    options.get_by_label("Search").select_option("beam")
    table = page.get_by_role("table", name="Candidates")
    expect(table.locator("tbody tr")).to_have_count(3)
    options.get_by_label("Candidates").fill("5")
    expect(table.locator("tbody tr")).to_have_count(5)
    expect(table.locator("tbody tr").first.locator(".num").first).to_have_text(re.compile(r"^−\d+\.\d\d$"))
    assert opened.bodies[-1]["n_best"] == 5
    assert opened.bodies[-1]["decode"] == {"method": "beam", "beam": 5}
    code = opened.open_part("curl").locator("code").text_content() or ""
    assert (
        f"'{opened.address}v1/predict'" in code
        and json.dumps(opened.bodies[-1]["decode"], separators=(",", ":")) in code
    )
    options.get_by_role("button", name="Reset").click()
    expect(table).to_have_count(0)
    expect(options.get_by_label("Search")).to_have_value("greedy")


def test_the_glossary_is_sent_kept_imported_and_exported(playground: OpenPlay, tmp_path: Path) -> None:
    opened = playground()
    page = opened.start()
    opened.answer(CAT)
    part = opened.open_part("Glossary")
    part.get_by_role("button", name="Add a row").click()
    expect(part.get_by_label("Source term 1")).to_be_focused()
    page.keyboard.type("花园")
    page.keyboard.press("Tab")
    page.keyboard.type("garden")
    part.get_by_label("Do not translate").fill("MASK\nURL")
    opened.until(lambda: opened.bodies[-1].get("keep") == ["MASK", "URL"])
    assert opened.bodies[-1]["glossary"] == {"花园": "garden"}
    expect(opened.words).to_have_text(re.compile("garden", re.IGNORECASE))
    table = tmp_path / "terms.tsv"
    table.write_text("猫\tcat\r\n花园\tpark\n", encoding="utf-8")
    part.locator("input[type=file]").set_input_files(table)
    opened.until(lambda: opened.bodies[-1]["glossary"] == {"猫": "cat", "花园": "park"})
    expect(page.get_by_text("Glossary (2)")).to_be_visible()
    with page.expect_download() as download:
        part.get_by_role("button", name="Export TSV").click()
    assert Path(download.value.path()).read_text("utf-8") == "猫\tcat\n花园\tpark\n"
    table.write_text("猫\tcat\n狗 dog\n", encoding="utf-8")
    part.locator("input[type=file]").set_input_files(table)
    expect(part.get_by_role("alert")).to_have_text(re.compile("Line 2 of terms.tsv has no tab"))
    page.reload()
    expect(page.get_by_label("Target term 2")).to_have_value("park")
    assert opened.field.input_value() == CAT
    page.get_by_role("button", name="Remove row 1").click()
    opened.until(lambda: opened.bodies[-1].get("glossary") == {"花园": "park"})
    page.get_by_label("Use the glossary").uncheck()
    opened.until(lambda: "glossary" not in opened.bodies[-1])


def test_html_is_sent_as_html_and_shown_as_text(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start()
    page.get_by_role("button", name="HTML").click()
    marked = f"<b>{CAT}</b><img src=x onerror=alert(1)>"
    prediction = opened.answer(marked)
    assert opened.bodies[-1]["format"] == "html"
    expect(opened.words).to_have_text(prediction["answer"])
    expect(page.locator("#app img")).to_have_count(0)


def test_classes_have_bars_and_a_threshold(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start("classify")
    prediction = opened.answer(TEXTS["classify"])
    bars = page.get_by_role("list", name="Probabilities").get_by_role("listitem")
    expect(bars).to_have_count(len(prediction["probabilities"]))
    expect(bars.first).to_have_class("is-chosen")
    expect(page.get_by_text(re.compile("[Oo]ut.of.scope"))).to_be_visible()
    page.get_by_label("Threshold").fill("0.99")
    expect(page.get_by_text("No label: no probability reaches the threshold.")).to_be_visible()
    assert opened.bodies[-1]["threshold"] == 0.99


def test_entities_are_labeled_and_copied_as_json(playground: OpenPlay) -> None:
    opened = playground(permissions=["clipboard-read", "clipboard-write"])
    page = opened.start("tag")
    prediction = opened.answer(f"🙂 {TEXTS['tag']}")  # positions count code points
    assert prediction["spans"]
    marks = page.locator("mark.play-entity")
    expect(marks).to_have_count(len(prediction["spans"]))
    for number, span in enumerate(prediction["spans"]):
        expect(marks.nth(number)).to_have_text(re.compile(rf"^{span['text']}{span['label']} [\d.>]+\s%$"))
    expect(page.get_by_role("list", name="Labels")).to_contain_text(prediction["spans"][0]["label"])
    assert json.loads(copied(page, "Copy as JSON"))["spans"] == prediction["spans"]


def test_a_continuation_streams_and_can_be_stopped(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start("language")
    opened.field.fill(TEXTS["language"])
    page.get_by_role("button", name="Generate").click()
    expect(page.get_by_role("button", name="Use as prompt")).to_be_visible()
    assert (opened.words.text_content() or "").startswith(TEXTS["language"])
    expect(page.locator(".play-latency")).to_have_text(re.compile("first token after"))
    page.get_by_label("Search").select_option("sample")
    page.get_by_label("Temperature").fill("9")
    page.get_by_label("Maximum tokens").fill("1000")
    page.get_by_label("Seed").fill("3")
    page.evaluate(STOP_SOON)
    page.get_by_role("button", name="Generate").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    decode = {"method": "sample", "temperature": 9, "max_new_tokens": 1000, "seed": 3}
    assert opened.bodies[-1]["decode"] == decode and opened.bodies[-1]["stream"] is True
    written = re.sub("\r\n?", "\n", opened.words.text_content() or "")  # as a text field holds it
    page.get_by_role("button", name="Use as prompt").click()
    assert opened.field.input_value() == written


def test_masks_are_filled_with_alternatives(playground: OpenPlay) -> None:
    opened = playground(permissions=["clipboard-read", "clipboard-write"])
    page = opened.start("masked")
    prediction = opened.answer(TEXTS["masked"])
    expect(page.locator(".play-filled")).to_have_count(2)
    other = prediction["gaps"][1][2]["text"].strip()
    page.get_by_role("group", name="Alternatives for mask 2").get_by_role("button").nth(2).click()
    expect(page.locator(".play-filled").nth(1)).to_have_text(other)
    best = prediction["gaps"][0][0]["text"].strip()
    assert copied(page, "Copy") == f"两只猫正在{best}里{other}觉。"
    opened.field.fill("猫在")
    expect(page.get_by_text("Write [MASK] where a token is to be predicted.")).to_be_visible()
    page.get_by_role("button", name="Insert [MASK]").click()
    expect(page.locator(".play-filled")).to_have_count(1)
    assert opened.field.input_value() == "猫在[MASK]"


def test_examples_are_in_the_language_of_the_bundle(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start()
    page.locator(".play-examples button").nth(1).click()
    assert re.fullmatch(r"[一-鿿。]+", opened.field.input_value())
    expect(opened.output.locator(".play-word").first).to_be_visible()
    page.get_by_label("Bundle").select_option("tag")
    page.locator(".play-examples button").first.click()
    expect(page.locator("mark.play-entity").first).to_be_visible()
    opened.expect_state(bundle="tag", lang="en")
    page.get_by_label("Bundle").select_option("seq2seq")
    assert re.fullmatch(r"[一-鿿。]+", opened.field.input_value()), "What was typed for a bundle is kept."
    assert "text" not in opened.state()
