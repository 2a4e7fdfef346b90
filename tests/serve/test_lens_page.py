"""The page of one text in a real browser: find a head, see it, and read its numbers."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from serve.conftest import TASKS, Open

CAT = "猫在睡觉"
PARAGRAPH = (
    "今天早上，老邻居在火车站等了很久。他的女儿带着一本红色的书，去了市场。那里有两只猫在睡觉，一个孩子看着它们。"
    "下午，他们一起回家，在花园里喝茶。女儿说她爱水课，因为老师讲了很多故事。邻居笑了，他说他小时候也喜欢听故事。"
    "晚上，风很大，窗户响个不停。他们关上灯，听着雨声，慢慢地睡着了。第二天，太阳出来了，花园里的花都开了，猫也醒了，"
    "大家都很高兴。后来他们又去了一次市场，买了苹果和面包，还给猫买了一条小鱼。"
)


def matrix(page: Page) -> Locator:
    return page.get_by_role("application", name=re.compile("Attention matrix"))


def arcs(page: Page) -> Locator:
    return page.get_by_role("application", name=re.compile("^Arcs"))


def readout(page: Page) -> Locator:
    return page.locator("output.readout")


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


@pytest.mark.parametrize("task", TASKS)
def test_every_task_shows_its_heads_and_its_answer(lens: Open, task: str) -> None:
    opened = lens(task)
    page = opened.open()
    n_heads = 12 if task == "seq2seq" else 4
    expect(page.get_by_role("gridcell")).to_have_count(n_heads)
    expect(matrix(page)).to_be_visible()
    title = {
        "seq2seq": "Translation",
        "classify": "Class",
        "tag": "Entities",
        "language": "Continuation",
        "masked": "Masked words",
    }
    expect(page.get_by_role("heading", name=title[task], exact=True)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_head_is_found_in_the_overview_and_the_address_keeps_it(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    page.get_by_role("button", name="Encoder self-attention, layer 1, head 1").click()
    expect(page.get_by_role("heading", name="Encoder self-attention, layer 1, head 1")).to_be_visible()
    opened.expect_state(attention="encoder.1.self", head="1")
    page.go_back()
    expect(page.get_by_role("heading", name="Cross-attention, layer 1, head 0")).to_be_visible()


def test_hovering_shows_outgoing_in_blue_and_incoming_in_orange_and_a_click_pins(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, attention="encoder.0.self")
    over = arcs(page)
    over.scroll_into_view_if_needed()
    over.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(readout(page)).to_have_text(re.compile("looks at .* is looked at by"))
    opened.until(lambda: min(inked(over).values()) > 20)
    page.keyboard.press("Enter")
    opened.expect_state(pins="1", keyPins="1")
    page.keyboard.press("Escape")
    opened.expect_state(pins=None, keyPins=None)


def test_matrix_reads_exact_weights_under_the_pointer(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    over = matrix(page)
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.6 * box["height"])
    expect(readout(page)).to_have_text(re.compile(r"→ .*: [\d.]+\s%$"))  # without ≈ once the row is there
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.6 * box["height"])
    expect(page.get_by_role("button", name="Remove pins")).to_be_visible()
    opened.until(lambda: "pins" in opened.state())


def test_threshold_by_share_of_mass_draws_fewer_arcs(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT, mass=1.0)
    base = page.locator(".stage.arcs canvas").first
    opened.until(lambda: inked(base)["blue"] > 0)
    all_links = inked(base)["blue"]
    page.get_by_role("slider").fill("10")
    opened.expect_state(mass="0.1")
    opened.until(lambda: 0 < inked(base)["blue"] < all_links)


def test_weights_become_norms_and_sinks_disappear(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    page.get_by_role("button", name="Norm-weighted").click()
    expect(page.get_by_text("‖α f(x)‖").first).to_be_visible()
    page.get_by_role("button", name="Weights").click()
    page.get_by_role("checkbox", name="BOS, EOS, punctuation").uncheck()
    expect(page.get_by_text("Hidden: BOS, EOS and punctuation")).to_be_visible()
    opened.expect_state(sinks="0")
    assert "EOS" not in (page.get_by_role("list", name="The largest weights of each row").text_content() or "")


@pytest.mark.parametrize("text", ["我爱水课", CAT, PARAGRAPH], ids=["four", "sentence", "paragraph"])
def test_chinese_reads_as_characters_not_bytes(lens: Open, text: str) -> None:
    opened = lens("masked")
    page = opened.open(text, unit="characters")
    shown = page.get_by_role("application", name=re.compile("The text, colored by attention"))
    for _ in ("characters", "words"):
        content = re.sub(r"\s|EOS|BOS", "", shown.text_content() or "")
        assert "0x" not in content and "�" not in content
        assert content.replace("␣", "") == text[: len(content)]
        page.get_by_role("button", name="Words").click()
        opened.settle()
    rows = page.get_by_role("list", name="The largest weights of each row").text_content() or ""
    assert "0x" not in rows and "�" not in rows


def test_bytes_are_named_as_bytes_where_tokens_are_shown(lens: Open) -> None:
    opened = lens("masked")
    page = opened.open("我爱龘课", unit="tokens")
    before = int(re.findall(r"(\d+) queries", matrix(page).get_attribute("aria-label") or "")[0])
    page.get_by_role("button", name="Characters").click()
    opened.settle()
    after = int(re.findall(r"(\d+) queries", matrix(page).get_attribute("aria-label") or "")[0])
    assert after < before  # the bytes of a character that is not in the vocabulary are one unit


def test_a_row_expands_into_numbers(lens: Open) -> None:
    opened = lens()
    page = opened.open(CAT)
    page.get_by_role("combobox", name="Row").select_option(index=2)
    heading = page.get_by_role("heading", name=re.compile("Scores and weights"))
    expect(heading).to_be_visible()
    for column in ("Key", "q · k", "weight", "without √dₖ"):
        expect(page.get_by_role("columnheader", name=re.compile(column)).first).to_be_visible()
    expect(page.get_by_text(re.compile("Without √dₖ the largest weight would be"))).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("Weights times values"))).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("Wᴼ"))).to_be_visible()


def test_the_address_restores_everything(lens: Open) -> None:
    opened = lens()
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
    page = opened.open(CAT, **state)
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


def test_bad_values_in_the_address_are_ignored(lens: Open) -> None:
    opened = lens()
    bad = {
        "page": "nowhere",
        "attention": "x.9",
        "head": -3,
        "pins": "a,b",
        "mass": "NaN",
        "unit": "bytes",
        "theme": "5",
    }
    page = opened.open(CAT, **bad, off="encoder.9.self/77", at="x", bundle="z", color="none")
    expect(matrix(page)).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("layer 1, head 0"))).to_be_visible()
