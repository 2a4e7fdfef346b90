"""The playground in a real browser: every task, as you type, for everybody."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, Route, expect

from serve.axe import serious_faults
from serve.conftest import OpenPlay
from serve.playground_pages import CAT, TEXTS, PlayPage
from serve.test_lens_page import PAPER
from serve.test_lens_page_access import tab_to

TYPED = 250  # milliseconds without a key before a request is sent
# A press of a button that comes through Playwright could be too late.
STOP_SOON = """() => new MutationObserver((_, observer) => {
  if (document.querySelector(".play-words").textContent.length < 12) return;
  observer.disconnect();
  document.querySelector(".play-stop").click();
}).observe(document.querySelector(".play-words"), { childList: true })"""
LINKED = re.compile("is-linked")
KEYS = re.compile(r"\bplay_\w+")  # a message without a text would be shown as its key
CLIPBOARD = ["clipboard-read", "clipboard-write"]
ATTACK = "<img src=x onerror=alert(1)>\"'</script><script>document.title='owned'</script>&amp;"


def copied(page: Page, name: str) -> str:
    """Press a button that copies, and return the clipboard."""
    page.locator(".announcement").evaluate("(node) => { node.textContent = ''; }")
    page.get_by_role("button", name=name, exact=True).first.click()
    expect(page.locator(".announcement")).to_have_text("Copied.")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def answering(status: int, body: str) -> Callable[[Route], None]:
    """Return a server that always answers the same."""
    return lambda route: route.fulfill(status=status, body=body)


def expect_text_stays_text(opened: PlayPage, task: str) -> None:
    opened.answer(ATTACK)
    opened.page.get_by_role("button", name="中文").click()
    expect(opened.page.locator("#app img")).to_have_count(0)
    assert opened.page.title() == f"{task} · manyheads"
    assert opened.field.input_value() == ATTACK
    opened.page.get_by_role("button", name="English").click()


def expect_for_everybody(opened: PlayPage, task: str) -> None:
    """Unfold everything: axe finds nothing, both languages are complete, small windows are wide enough."""
    page = opened.page
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    add = page.locator(".play-glossary .play-acts button").first
    if add.count():
        add.click()
    text = opened.field.input_value()

    def expect_complete(lang: str) -> None:
        opened.expect_state(lang=lang, bundle=task)
        expect(page.locator("html")).to_have_attribute("lang", lang)
        assert opened.field.input_value() == text
        assert opened.overflow() <= 0
        assert not KEYS.findall(page.locator("#app").inner_text())

    expect_complete("en")
    assert serious_faults(page) == []
    page.get_by_role("button", name="中文").click()
    expect_complete("zh")
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    opened.until(lambda: max(page.evaluate(PAPER)) < 80)
    expect_complete("zh")
    assert serious_faults(page) == []
    page.get_by_role("button", name="English").click()
    expect_complete("en")


def test_a_text_is_translated_as_it_is_typed_and_its_words_are_aligned(playground: OpenPlay) -> None:
    opened = playground(permissions=CLIPBOARD)
    page = opened.start()
    expect(page.get_by_text("The translation appears here as you type.")).to_be_visible()
    prediction = opened.answer(CAT)
    expect(opened.words).to_have_text(prediction["answer"])
    expect(page.locator(".play-latency")).to_have_text(re.compile(r"^\d+(\.\d)? m?s$"))
    expect(page.get_by_text(f"{len(CAT)} characters")).to_be_visible()
    expect(page.get_by_text(re.compile("(High|Medium|Low) confidence"))).to_be_visible()
    assert copied(page, "Copy") == prediction["answer"]
    assert json.loads(copied(page, "Copy as JSON")) == prediction

    # Both directions, with the pointer and with the keyboard.
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

    page.get_by_role("button", name="Clear").click()
    expect(opened.words).to_be_hidden()
    expect(page.get_by_text("The translation appears here as you type.")).to_be_visible()
    expect_text_stays_text(opened, "seq2seq")
    opened.answer(CAT)
    expect_for_everybody(opened, "seq2seq")


def test_requests_wait_for_a_pause_for_a_whole_word_and_for_a_busy_server(playground: OpenPlay) -> None:
    opened = playground()
    opened.allow("429")
    page = opened.start()
    opened.stop_clock()
    for length in range(1, len(CAT) + 1):
        opened.field.fill(CAT[:length])
        page.clock.run_for(TYPED - 10)
    assert opened.bodies == []
    with page.expect_response("**/v1/predict"):
        page.clock.run_for(20)
    assert [body["texts"] for body in opened.bodies] == [[CAT]]
    expect(opened.output.locator(".play-word").first).to_be_visible()

    opened.field.dispatch_event("compositionstart")  # half a Chinese word
    opened.field.fill("mao")
    page.clock.run_for(10 * TYPED)
    assert len(opened.bodies) == 1
    opened.field.fill("猫")
    opened.field.dispatch_event("compositionend")
    with page.expect_response("**/v1/predict"):
        page.clock.run_for(2 * TYPED)
    assert [body["texts"] for body in opened.bodies] == [[CAT], ["猫"]]

    asked = []

    def refuse_once(route: Route) -> None:
        asked.append(route)
        if len(asked) > 1:
            route.continue_()
            return
        problem = {"title": "Too Many Requests", "status": 429, "detail": "The queue is full."}
        headers = {"Retry-After": "30"}
        route.fulfill(status=429, json=problem, content_type="application/problem+json", headers=headers)

    page.route("**/v1/predict", refuse_once)
    alert = page.get_by_role("alert")
    opened.field.fill("一只猫")
    page.clock.run_for(300)
    expect(alert).to_have_text(re.compile("^The queue is full. Trying again in (30|29) s."))
    opened.field.fill(CAT)  # while it waits, nothing is sent
    page.clock.run_for(10_000)
    expect(alert).to_have_text(re.compile("Trying again in (20|19) s."))
    assert len(asked) == 1
    with page.expect_response("**/v1/predict"):
        page.clock.run_for(21_000)
    expect(alert.filter(has_text="Trying")).to_have_count(0)
    expect(opened.output.locator(".play-word").first).to_be_visible()
    assert opened.bodies[-1]["texts"] == [CAT]


def test_a_beam_search_gives_candidates_and_problems_are_shown_as_they_are(playground: OpenPlay) -> None:
    opened = playground()
    opened.allow("status of (413|422|502)")
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
    assert f"'{opened.address}v1/predict'" in code
    assert json.dumps(opened.bodies[-1]["decode"], separators=(",", ":")) in code

    alert = page.get_by_role("alert")
    options.get_by_label("Beam size").fill("200")
    expect(alert.filter(has_text="decode.beam = 200")).to_be_visible()
    options.get_by_label("Beam size").fill("0")
    expect(page.get_by_text("Beam size must be a number from 1 to 256.")).to_be_visible()
    options.get_by_label("Beam size").fill("2")
    expect(alert.filter(has_text=re.compile("."))).to_have_count(0)
    options.get_by_role("button", name="Reset").click()
    expect(table).to_have_count(0)
    expect(options.get_by_label("Search")).to_have_value("greedy")

    opened.field.fill("猫" * 20_001)
    long = alert.filter(has_text="20,001")
    expect(long).to_have_text(re.compile("20,001 characters; at most 20,000 are allowed. The previous result"))
    assert serious_faults(page) == []
    opened.answer(CAT)
    expect(long).to_have_count(0)

    for body in ("", "<html>", '{"bundle": "x"}'):
        status = 200 if body.startswith("{") else 502
        said = "has no prediction" if status == 200 else "The server answered with status 502."
        page.route("**/v1/predict", answering(status, body))
        opened.field.fill(f"{CAT}{body}")
        expect(alert.filter(has_text=said)).to_be_visible()
        page.unroute("**/v1/predict")
        opened.answer(CAT)
        expect(alert.filter(has_text=re.compile("."))).to_have_count(0)


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

    page.get_by_role("button", name="HTML").click()  # sent as HTML, shown as text
    prediction = opened.answer(f"<b>{CAT}</b><img src=x onerror=alert(1)>")
    assert opened.bodies[-1]["format"] == "html"
    expect(opened.words).to_have_text(prediction["answer"])
    expect(page.locator("#app img")).to_have_count(0)


def test_classes_have_bars_and_a_threshold(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start("classify")
    expect_text_stays_text(opened, "classify")
    prediction = opened.answer(TEXTS["classify"])
    bars = page.get_by_role("list", name="Probabilities").get_by_role("listitem")
    expect(bars).to_have_count(len(prediction["probabilities"]))
    expect(bars.first).to_have_class("is-chosen")
    expect(page.get_by_text(re.compile("[Oo]ut.of.scope"))).to_be_visible()
    page.get_by_label("Threshold").fill("0.99")
    expect(page.get_by_text("No label: no probability reaches the threshold.")).to_be_visible()
    assert opened.bodies[-1]["threshold"] == 0.99
    expect_for_everybody(opened, "classify")


def test_entities_are_labeled_in_one_language_at_a_time_and_copied_as_json(playground: OpenPlay) -> None:
    opened = playground(permissions=CLIPBOARD)
    page = opened.start("tag")
    expect_text_stays_text(opened, "tag")
    prediction = opened.answer(f"🙂 {TEXTS['tag']}")  # positions count code points
    assert prediction["spans"]
    marks = page.locator("mark.play-entity")
    expect(marks).to_have_count(len(prediction["spans"]))
    for number, span in enumerate(prediction["spans"]):
        expect(marks.nth(number)).to_have_text(re.compile(rf"^{span['text']}{span['label']} [\d.>]+\s%$"))
    expect(page.get_by_role("list", name="Labels")).to_contain_text(prediction["spans"][0]["label"])
    assert json.loads(copied(page, "Copy as JSON"))["spans"] == prediction["spans"]

    opened.answer(TEXTS["tag"])
    expect_for_everybody(opened, "tag")
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


def test_a_continuation_streams_is_stopped_and_breaks(playground: OpenPlay) -> None:
    opened = playground()
    page = opened.start("language")
    opened.field.fill(TEXTS["language"])
    page.get_by_role("button", name="Generate").click()
    expect(page.get_by_role("button", name="Use as prompt")).to_be_visible()
    assert (opened.words.text_content() or "").startswith(TEXTS["language"])
    expect(page.locator(".play-latency")).to_have_text(re.compile("first token after"))
    expect_for_everybody(opened, "language")
    page.set_viewport_size({"width": 1280, "height": 900})
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

    # A stream that breaks keeps what was written.
    body = 'data: {"delta": "猫"}\n\ndata: {"delta": "在"}\n\n'
    page.route("**/v1/predict", lambda route: route.fulfill(content_type="text/event-stream", body=body))
    opened.field.fill("一只")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert").filter(has_text="No answer from the server.")).to_be_visible()
    expect(opened.words).to_have_text("一只猫在")
    failed = 'data: {"delta": "狗"}\n\ndata: {"error": {"status": 504, "detail": "Too slow."}}\n\ndata: [DONE]\n\n'
    page.route("**/v1/predict", lambda route: route.fulfill(content_type="text/event-stream", body=failed))
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert").filter(has_text="Too slow.")).to_be_visible()
    expect(opened.words).to_have_text("一只狗")


def test_masks_are_filled_with_alternatives(playground: OpenPlay) -> None:
    opened = playground(permissions=CLIPBOARD)
    page = opened.start("masked")
    prediction = opened.answer(TEXTS["masked"])
    expect(page.locator(".play-filled")).to_have_count(2)
    other = prediction["gaps"][1][2]["text"].strip()
    page.get_by_role("group", name="Alternatives for mask 2").get_by_role("button").nth(2).click()
    expect(page.locator(".play-filled").nth(1)).to_have_text(other)
    best = prediction["gaps"][0][0]["text"].strip()
    assert copied(page, "Copy") == f"两只猫正在{best}里{other}觉。"
    expect_for_everybody(opened, "masked")
    opened.field.fill("猫在")
    expect(page.get_by_text("Write [MASK] where a token is to be predicted.")).to_be_visible()
    page.get_by_role("button", name="Insert [MASK]").click()
    expect(page.locator(".play-filled")).to_have_count(1)
    assert opened.field.input_value() == "猫在[MASK]"


def test_the_way_in_examples_theme_and_links(playground: OpenPlay) -> None:
    opened = playground(color_scheme="dark")
    page = opened.start("nothing", lang="fr", surprise="1")  # leads to the first bundle
    expect(page.get_by_role("heading", level=1)).to_have_text("seq2seq")
    opened.expect_state(bundle="seq2seq", lang="en")
    page.locator(".play-examples button").nth(1).click()
    chinese = re.compile(r"[一-鿿。]+")
    assert chinese.fullmatch(opened.field.input_value())
    expect(opened.output.locator(".play-word").first).to_be_visible()
    page.get_by_label("Bundle").select_option("tag")
    page.locator(".play-examples button").first.click()
    expect(page.locator("mark.play-entity").first).to_be_visible()
    opened.expect_state(bundle="tag", lang="en")
    page.get_by_label("Bundle").select_option("seq2seq")
    assert chinese.fullmatch(opened.field.input_value()), "What was typed for a bundle is kept."
    assert "text" not in opened.state()

    assert max(page.evaluate(PAPER)) < 80  # the theme of the system
    page.get_by_role("button", name="Light").click()
    assert min(page.evaluate(PAPER)) > 200
    page.reload()
    opened.field.wait_for()
    assert min(page.evaluate(PAPER)) > 200, "The theme outlives a reload."
    page.get_by_role("button", name="Auto").click()
    assert max(page.evaluate(PAPER)) < 80

    with page.expect_navigation() as loaded:
        page.get_by_role("link", name="API").click()
    assert loaded.value.ok and urlsplit(loaded.value.url).path == "/docs"
    opened.start("tag")
    page.get_by_role("link", name="Lens").click()
    expect(page).to_have_title(re.compile("manyheads lens"))


def test_the_whole_flow_with_the_keyboard_alone_in_the_language_of_the_browser(playground: OpenPlay) -> None:
    opened = playground(locale="zh-CN")
    page = opened.start()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    expect(opened.field).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    tab_to(page, "^English$")
    page.keyboard.press("Enter")
    opened.field.focus()
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
