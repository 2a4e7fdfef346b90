"""The page of one text in a real browser: its answer, its heads, what becomes of it without some of them."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from serve.conftest import Open
from serve.lens_pages import LensPage

CAT = "猫在睡觉"
PARAGRAPH = (
    "今天早上，老邻居在火车站等了很久。他的女儿带着一本红色的书，去了市场。那里有两只猫在睡觉，一个孩子看着它们。"
    "下午，他们一起回家，在花园里喝茶。女儿说她爱水课，因为老师讲了很多故事。邻居笑了，他说他小时候也喜欢听故事。"
    "晚上，风很大，窗户响个不停。他们关上灯，听着雨声，慢慢地睡着了。第二天，太阳出来了，花园里的花都开了，猫也醒了，"
    "大家都很高兴。后来他们又去了一次市场，买了苹果和面包，还给猫买了一条小鱼。"
)
TAGGED = "Anna went to Paris on Monday."
ODD_SCRIPTS = ("😀😀🎉", "مرحبا بالعالم", "שלום עולם", "\u202ehidden\u202c", "a\u0301\u0327", "。。。")
CHANGE = re.compile(r"original .*nats")
PAPER = "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"


def answer(page: Page) -> Locator:
    return page.locator(".region-answer")


def matrix(page: Page) -> Locator:
    return page.get_by_role("application", name=re.compile("Attention matrix"))


def colored_text(page: Page) -> Locator:
    return page.get_by_role("application", name=re.compile("The text, colored by attention"))


def readout(page: Page) -> Locator:
    return page.locator("output.readout")


def title_of_head(page: Page) -> Locator:
    return page.get_by_role("heading", name=re.compile(r"layer \d, head \d$")).first


def inked(canvas: Locator) -> dict[str, int]:
    """Count pixels of a canvas that are rather blue (outgoing) and rather orange (incoming)."""
    counts: dict[str, int] = canvas.evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const found = { blue: 0, orange: 0 };
          for (let i = 0; i < data.length; i += 4) {
            if (data[i + 3] < 60) continue;
            if (data[i + 2] > data[i] + 60) found.blue += 1;
            if (data[i] > data[i + 2] + 60) found.orange += 1;
          }
          return found;
        }"""
    )
    return counts


def expect_task(page: Page, title: str, n_heads: int = 4) -> None:
    """Expect the heads and the answer of a task, and no problem."""
    expect(page.get_by_role("gridcell")).to_have_count(n_heads)
    expect(matrix(page)).to_be_visible()
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def find_heads_behind_a_choice(page: Page) -> None:
    """Ask for the heads behind a choice of the model, switch the first off, and all on again."""
    page.get_by_role("button", name="Find the heads").click()
    expect(page.get_by_text(re.compile("The logit of .* (above|below) that of"))).to_be_visible()
    bars = page.locator(".contrast").get_by_role("button", name=re.compile(r"(encoder|decoder|cross) \d\.\d"))
    assert bars.count() >= 4
    bars.first.click()
    expect(answer(page).get_by_role("heading", name="Without 1 head")).to_be_visible()
    page.get_by_role("button", name="All on").click()
    expect(answer(page).get_by_role("heading", name="Without 1 head")).to_have_count(0)


def expect_tour(opened: LensPage) -> None:
    """Open a step in the middle of the tour, which every task has."""
    page = opened.open(page="tour", tour=6)
    expect(page.get_by_text("Step 7 of 11")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def expect_odd_scripts(opened: LensPage) -> None:
    """Look at texts in many scripts: characters, never bytes."""
    for text in ODD_SCRIPTS:
        page = opened.open(text, unit="characters")
        opened.expect_state(text=text)
        expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(text)
        expect(matrix(page)).to_be_visible()
        shown = colored_text(page).text_content() or ""
        assert "0x" not in shown and "�" not in shown
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_translation_is_read_token_by_token_and_a_row_in_numbers(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, attention="decoder.0.cross")
    expect_task(page, "Translation", n_heads=12)
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
    expect(page.get_by_role("heading", name=re.compile("One row in numbers"))).to_be_visible()
    expect(page.locator(".numbers").first).to_be_visible()
    answer(page).get_by_role("button", name="Whole answer").click()
    opened.expect_state(at=None)

    page.get_by_role("combobox", name="Row").select_option(index=2)
    expect(page.get_by_role("heading", name=re.compile("Scores and weights"))).to_be_visible()
    for column in ("Key", "q · k", "weight", "without √dₖ"):
        expect(page.get_by_role("columnheader", name=re.compile(column)).first).to_be_visible()
    expect(page.get_by_text(re.compile("Without √dₖ the largest weight would be"))).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("Weights times values"))).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("Wᴼ"))).to_be_visible()

    page.get_by_role("button", name="Trace another answer").click()
    page.get_by_role("textbox", name="Answer to trace").fill("The cat is here.")
    page.get_by_role("textbox", name="Answer to trace").press("Enter")
    opened.expect_state(answer="The cat is here.")
    expect(answer(page).get_by_role("button", name=re.compile(r"^\.\s"))).to_be_visible()
    page.get_by_role("button", name="Use the model's own answer").click()
    opened.expect_state(answer=None)
    find_heads_behind_a_choice(page)


def test_a_head_is_found_and_its_arcs_and_its_matrix_are_read(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    first = title_of_head(page).inner_text()
    page.get_by_role("button", name="Encoder self-attention, layer 1, head 1").click()
    expect(page.get_by_role("heading", name="Encoder self-attention, layer 1, head 1")).to_be_visible()
    opened.expect_state(attention="encoder.1.self", head="1")
    page.go_back()
    expect(page.get_by_role("heading", name=first)).to_be_visible()

    # Outgoing in blue, incoming in orange; Enter pins.
    page.get_by_role("button", name="Encoder self-attention, layer 0, head 0").click()
    opened.expect_state(attention="encoder.0.self")
    opened.settle()
    arcs = page.get_by_role("application", name=re.compile("^Arcs"))
    arcs.scroll_into_view_if_needed()
    arcs.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(readout(page)).to_have_text(re.compile("looks at .* is looked at by"))
    opened.until(lambda: min(inked(arcs).values()) > 20)
    page.keyboard.press("Enter")
    opened.expect_state(pins="1", keyPins="1")
    page.keyboard.press("Escape")
    opened.expect_state(pins=None, keyPins=None)

    # A smaller share of the mass: fewer arcs.
    base = page.locator(".stage.arcs canvas").first
    page.get_by_role("slider").fill("100")
    opened.expect_state(mass="1")
    opened.until(lambda: inked(base)["blue"] > 0)
    all_links = inked(base)["blue"]
    page.get_by_role("slider").fill("10")
    opened.expect_state(mass="0.1")
    opened.until(lambda: 0 < inked(base)["blue"] < all_links)

    # The matrix reads exact weights under the pointer.
    matrix(page).scroll_into_view_if_needed()
    box = matrix(page).bounding_box()
    assert box
    x, y = box["x"] + 0.5 * box["width"], box["y"] + 0.6 * box["height"]
    page.mouse.move(x, y)
    expect(readout(page)).to_have_text(re.compile(r"→ .*: [\d.]+\s%$"))  # without ≈ once the row is there
    page.mouse.click(x, y)
    expect(page.get_by_role("button", name="Remove pins")).to_be_visible()
    opened.until(lambda: "pins" in opened.state())

    page.get_by_role("button", name="Norm-weighted").click()
    expect(page.get_by_text("‖α f(x)‖").first).to_be_visible()
    page.get_by_role("button", name="Weights").click()
    page.get_by_role("checkbox", name="BOS, EOS, punctuation").uncheck()
    expect(page.get_by_text("Hidden: BOS, EOS and punctuation")).to_be_visible()
    opened.expect_state(sinks="0")
    assert "EOS" not in (page.get_by_role("list", name="The largest weights of each row").text_content() or "")


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

    page.get_by_role("combobox", name="Whole layer").select_option(label="Encoder self-attention, layer 0")
    opened.expect_state(off="encoder.0.self/0,encoder.0.self/1")
    page.get_by_role("button", name="All on").click()
    opened.expect_state(off=None)
    page.get_by_role("button", name="6 random ones off").click()
    expect(answer(page).get_by_role("heading", name="Without 6 heads")).to_be_visible()
    page.get_by_role("button", name="All on").click()
    opened.expect_state(off=None)

    page.get_by_role("button", name="Importance here").click()
    expect(page.get_by_text(re.compile("how much log-probability the answer loses"))).to_be_visible()
    page.get_by_role("button", name=re.compile("The 6 most important")).click()
    expect(answer(page).get_by_role("heading", name="Without 6 heads")).to_be_visible()
    expect(answer(page).get_by_text(re.compile("less probable.*−"))).to_be_visible()  # less probable than before


def test_two_tabs_ablate_without_disturbing_each_other(lens: Open) -> None:
    one = lens()
    other = one.tab()
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
    other.open(CAT, off="decoder.0.cross/0")  # alone
    expect(answer(other.page).get_by_text(re.compile(rf"{re.escape(changes[0][0])}\snats"))).to_be_visible()


def test_a_class_is_read_with_its_probabilities_and_the_page_is_saved(lens: Open, tmp_path: Path) -> None:
    opened = lens("classify")
    page = opened.open()
    expect_task(page, "Class")
    cells = answer(page).get_by_role("table", name="Labels").get_by_role("cell")
    shares = [float(found) for found in re.findall(r"([\d.]+)\s%", " ".join(cells.all_text_contents()))]
    assert sum(shares) == pytest.approx(100, abs=0.3)
    find_heads_behind_a_choice(page)
    with page.expect_download(timeout=90_000) as download:
        page.get_by_role("link", name="Save page as one file").click()
    download.value.save_as(tmp_path / "lens.html")
    expect_tour(opened)
    page.goto((tmp_path / "lens.html").as_uri())
    expect(page.get_by_role("heading", name="Class", exact=True)).to_be_visible()
    expect(page.get_by_text("saved page")).to_be_visible()


def test_entities_are_marked_in_one_language_at_a_time(lens: Open) -> None:
    opened = lens("tag")
    page = opened.open(TAGGED)
    expect_task(page, "Entities")
    assert answer(page).locator("mark").count() >= 1
    shown = " ".join(answer(page).locator("p").all_text_contents())
    for word in ("Anna", "went to", "Monday"):
        assert word in shown
    find_heads_behind_a_choice(page)
    expect_odd_scripts(opened)
    expect_tour(opened)
    opened.open(TAGGED)
    assert re.findall(r"[一-鿿]+", page.locator("#app").inner_text().replace("中文", "")) == []
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", name="注意力头", exact=True)).to_be_visible()
    opened.expect_state(lang="zh")


def test_a_language_model_shows_what_it_writes(lens: Open) -> None:
    opened = lens("language")
    page = opened.open("猫", at=2)  # after BOS and the prompt
    expect_task(page, "Continuation")
    expect(answer(page).get_by_role("heading", name=re.compile("Token 1 of"))).to_be_visible()
    expect(answer(page).get_by_text("all others")).to_be_visible()
    find_heads_behind_a_choice(page)
    expect_tour(opened)


def test_a_masked_model_fills_the_mask_and_reads_characters_not_bytes(lens: Open) -> None:
    opened = lens("masked")
    page = opened.open("猫在[MASK]觉。")
    expect_task(page, "Masked words")
    expect(answer(page).get_by_role("table", name="Mask 1 of 1")).to_be_visible()
    assert answer(page).get_by_role("row").count() >= 5
    page.get_by_role("textbox", name="Text").fill("猫在睡觉。")
    page.get_by_role("button", name="Look").click()
    expect(answer(page).get_by_text("Write [MASK] in the text")).to_be_visible()

    for text in ("我爱水课", CAT, PARAGRAPH):
        opened.open(text, unit="characters")
        expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(text)
        for unit in ("Characters", "Words"):
            page.get_by_role("button", name=unit).click()
            opened.settle()
            content = re.sub(r"\s|EOS|BOS", "", colored_text(page).text_content() or "")
            assert content and "0x" not in content and "�" not in content
            assert content.replace("␣", "") == text[: len(content)]
        rows = page.get_by_role("list", name="The largest weights of each row").text_content() or ""
        assert "0x" not in rows and "�" not in rows

    # The bytes of a character that is not in the vocabulary are one unit.
    queries = []
    for unit in ("tokens", "characters"):
        opened.open("我爱龘课", unit=unit)
        found = re.findall(r"(\d+) queries", matrix(page).get_attribute("aria-label") or "")
        queries.append(int(found[0]))
    assert queries[1] < queries[0]
    expect_tour(opened)


def test_the_address_restores_everything_and_bad_values_are_ignored(lens: Open) -> None:
    opened = lens(color_scheme="dark")
    page = opened.open(CAT)
    first = title_of_head(page).inner_text()

    # The theme follows the system and the switch.
    assert max(page.evaluate(PAPER)) < 80
    page.get_by_role("button", name="Light").click()
    assert min(page.evaluate(PAPER)) > 200
    opened.expect_state(theme="light")
    page.get_by_role("button", name="Auto").click()
    assert max(page.evaluate(PAPER)) < 80

    state = {
        "attention": "decoder.0.cross",
        "head": 1,
        "pins": 2,
        "unit": "characters",
        "kind": "norms",
        "sinks": 0,
        "mass": 0.5,
        "off": "encoder.0.self/1",
        "colorBy": "importance",
    }
    opened.open(CAT, **state)
    expect(page.get_by_role("heading", name="Cross-attention, layer 0, head 1")).to_be_visible()
    expect(page.get_by_role("button", name="Characters")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Norm-weighted")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("checkbox", name="BOS, EOS, punctuation")).not_to_be_checked()
    expect(page.get_by_role("button", name="Switch encoder 0.1 on again")).to_be_visible()
    opened.expect_state(**{name: str(value) for name, value in state.items()})
    before = opened.state()
    page.reload()
    opened.settle()
    assert opened.state() == before

    bad = {
        "page": "nowhere",
        "attention": "x.9",
        "head": -3,
        "pins": "a,b",
        "mass": "NaN",
        "unit": "bytes",
        "theme": "5",
    }
    page.goto("about:blank")
    opened.open(CAT, **bad, off="encoder.9.self/77", at="x", bundle="z", color="none")
    expect(matrix(page)).to_be_visible()
    expect(page.get_by_role("heading", name=first)).to_be_visible()
