"""`manyheads walk`: displayed numbers are correct and fit the screen, and bad input is one line."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from manyheads.bundle import Bundle
from manyheads.cli import main
from manyheads.cli.number_format import number, sum_of, sum_of_products, vector, wrapped
from manyheads.cli.walk_page import Page, show_heading
from manyheads.cli.walk_steps import STEPS, show_steps
from manyheads.language import LANGUAGES, Language, using
from manyheads.lens import Walk, walk
from manyheads.lens.toy_model import measure_saturation, walk_sentence, worked_example

from cli.conftest import Run
from lens.test_attention_walk import each_walk
from model.makers import small

Here = Callable[..., tuple[int, str, str]]

WIDE_TEXT = "The old teacher did not buy the red book, and the young doctor saw two small cats near the house."


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run the command in this process, which is faster; return its exit code and its two streams."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["manyheads", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit) as done:
            main()
        out, err = capsys.readouterr()
        return int(done.value.code or 0), out, err

    return run


def text_of(page: Page, *steps: int) -> list[str]:
    return [line.plain for line in show_steps(page, steps or None)]


def joined(lines: list[str]) -> list[str]:
    """Join the lines of each wrapped sum."""
    sums: list[str] = []
    for line in lines:
        if re.match(r" +[+=] ", line):
            sums[-1] += " " + line.strip()
        else:
            sums.append(line)
    return sums


def number_in(text: str) -> float:
    return float(text.strip("() "))


def evaluate_side(side: str) -> float:
    """Evaluate one side of a printed sum: products, [126 more: …], numbers, a bias."""
    total = 0.0
    for part in re.split(r" \+ ", side.replace(" (bias)", "")):
        more = re.fullmatch(r"\[\d+ more: (\S+)\]", part.strip())
        a, _, b = (more[1] if more else part.strip()).partition("×")
        total += number_in(a) * (number_in(b) if b else 1.0)
    return total


def printed_sums(lines: list[str]) -> list[list[float]]:
    """Evaluate the sides of every printed equation with a ×."""
    equations = []
    for line in joined(lines):
        if "×" in line and " = " in line and " × " not in line and "√" not in line:
            *_, shown = re.split(r"\s{2,}|\] = (?=\S)", line.strip(), maxsplit=1)
            equations.append([evaluate_side(side) for side in shown.split(" = ")])
    return equations


@pytest.fixture(scope="module")
def pages(untrained: Bundle) -> dict[str, Page]:
    walks: dict[str, Walk] = {
        "cats": walk_sentence("I love cats"),
        "course": walk_sentence("我爱水课", layer="decoder.0.self", query="爱"),
        "across": walk_sentence("猫在睡觉", layer="decoder.0.cross", head=1),
        "bundle": walk(untrained, "Two cats are sleeping.", answer="两只猫在睡觉。", layer="decoder.0.cross", head=2),
        "long": walk(untrained, WIDE_TEXT, head=1, query="teacher"),
    }
    kept = {name: Page(one, "bundle" if name in ("bundle", "long") else "untrained") for name, one in walks.items()}
    return {"worked": Page(worked_example(), "worked", saturations=measure_saturation()), **kept}


def test_printed_sums_are_correct(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        sums = printed_sums(text_of(page, 2, 3, 9))
        assert len(sums) > len(page.shown_keys), name
        for sides in sums:
            # Each number is rounded to three decimals and multiplied with numbers below ten.
            assert sides == pytest.approx([sides[-1]] * len(sides), abs=0 if name == "worked" else 0.04), (name, sides)
        products = [sides[-1] for sides in printed_sums(text_of(page, 3))]
        expected = page.walk.products[page.walk.query, page.shown_keys]
        assert products == pytest.approx(expected, abs=6e-4), name


def test_printed_softmax(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        row, query = page.walk.softmax, page.walk.query
        lines = text_of(page, 6)
        start = next(index for index, line in enumerate(lines) if "- largest" in line) + 1
        for key, line in zip(page.shown_keys, lines[start:], strict=False):
            _, *cells = line.replace("█", "").replace("∞", "inf").rsplit(maxsplit=4)
            score, below, exponential, weight = map(float, cells)
            assert exponential == pytest.approx(np.exp(below), abs=1e-3), (name, line)
            expected = [row.scores[query, key], row.exponentials[query, key], row.weights[query, key]]
            assert [score, exponential, weight] == pytest.approx(expected, abs=5.1e-3), (name, line)
        total = next(line for line in lines if re.match(r" +sum ", line)).split()
        assert [float(cell) for cell in total[-2:]] == pytest.approx([row.sums[query], 1.0], abs=5e-4)


def test_printed_map() -> None:
    page = Page(walk_sentence("我爱水课", layer="decoder.0.self"), "untrained")
    rows = [re.findall(r"\d\.\d\d", line) for line in text_of(page, 7)]
    shown = [[float(cell) for cell in row] for row in rows if row]
    assert [len(row) for row in shown] == [1, 2, 3, 4, 5]  # masked cells are empty
    for row, expected in zip(shown, page.walk.softmax.weights, strict=True):
        assert row == pytest.approx(expected[: len(row)], abs=5.1e-3)


def test_wide_map_is_drawn_in_shades(pages: dict[str, Page]) -> None:
    page = pages["long"]
    lines = [line for line in text_of(page, 7) if re.match(r" +\d+ [<▁,.a-z]", line)]
    assert len(lines) == len(page.walk.query_names)
    for line, weights in zip(lines, page.walk.softmax.weights, strict=True):
        shades = [" ·░▒▓█"[1 + sum(weight >= step for step in (0.05, 0.2, 0.4, 0.7))] for weight in weights]
        assert line.endswith("  " + "".join(shades))


def test_printed_weighted_sum(pages: dict[str, Page]) -> None:
    page = pages["bundle"]
    weights, v = page.walk.softmax.weights[page.walk.query], page.walk.v
    lines = [line for line in text_of(page, 8) if " × [" in line]
    assert len(lines) == len(page.walk.key_names)
    for key, line in enumerate(lines):
        weight, values, parts = re.search(r"(\S+) × \[ (.+?) \] += \[ (.+?) \]", line).groups()  # type: ignore[union-attr]
        assert float(weight) == pytest.approx(weights[key], abs=5e-4)
        shown = [float(cell) for cell in values.replace("…", "").split()]
        assert shown == pytest.approx(v[key][[0, -1]], abs=5e-4)
        assert [float(cell) for cell in parts.replace("…", "").split()] == pytest.approx(
            weights[key] * np.array(shown), abs=2e-3
        )


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("language", LANGUAGES)
def test_lines_fit_the_screen(pages: dict[str, Page], columns: int, language: Language) -> None:
    for name, page in pages.items():
        sized = replace(page, columns=columns)
        with using(language):
            lines = [*show_heading(sized), *show_steps(sized)]
        for line in lines:
            assert line.cell_len <= columns, (name, line.plain)


def test_every_step_is_in_one_language() -> None:
    page = Page(walk_sentence("I love cats", layer="decoder.0.self"), "untrained", saturations=measure_saturation())
    for step in range(1, len(STEPS) + 1):
        with using("en"):
            english = "\n".join(text_of(page, step))
        with using("zh"):
            chinese = "\n".join(text_of(page, step))
        assert re.search(r"[a-z]{3,} [a-z]{2,} ", english), step
        assert not re.search(r"[\u4e00-\u9fff]", english), step
        assert re.search(r"[\u4e00-\u9fff]{4,}", chinese), step
        assert not re.search(r"[a-z]{4,} [a-z]{3,} ", chinese), step
    with using("zh"):
        heading = "".join(line.plain.strip() for line in show_heading(page))
    assert "没有任何意义" in heading


@pytest.mark.parametrize("scores", ["additive", "dense-synthesizer", "random-synthesizer", "cosine", "bilinear", "dot"])
def test_every_form_of_score(scores: str) -> None:
    shown = [one for one, _ in each_walk(small(scores=scores))[::3] if one.visible.any()]
    assert len(shown) == 6
    for one in shown:
        text = "\n".join(text_of(Page(one, "bundle")))
        assert number(float(one.products[0, 0])) in text


@pytest.mark.parametrize(("positions", "text"), [("rotary", "Q rotated"), ("alibi", "ALiBi")])
def test_relative_positions_and_biases(positions: str, text: str) -> None:
    (one, _), *_ = each_walk(small(positions=positions, attention_bias=True))
    shown = "\n".join(text_of(Page(one, "bundle")))
    assert text in shown
    assert "(bias)" in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1.000"),
        (-0.25, "-0.250"),
        (3e-7, "3.0e-07"),
        (8105.998, "8106.00"),
        (-np.inf, "-∞"),
    ],
)
def test_number(value: float, shown: str) -> None:
    assert number(value) == shown


def test_long_sums_and_vectors_show_their_ends() -> None:
    many = np.arange(1.0, 21.0)
    assert vector(many) == "[ 1  2  3  … 15 more …  19  20 ]"
    assert sum_of(many) == "1 + 2 + [17 more: 187] + 20 = 210"
    assert sum_of_products(many, many) == "1×1 + [18 more: 2469] + 20×20 = 2870"
    assert sum_of_products(np.array([1.0, -2.0]), np.array([3.0, 4.0]), with_products=True) == (
        "1×3 + (-2)×4 = 3 + (-8) = -5"
    )


def test_prose_wraps_between_words_and_characters() -> None:
    lines = wrapped("除以 √d_k 就是 1。分数太大，softmax 会饱和（见最后一步）。", 14)
    assert all(cell_len(line) <= 16 for line in lines)  # closing punctuation stays on the line
    assert not any(line[0] in "，。）" for line in lines)
    assert "".join(lines).replace(" ", "") == "除以√d_k就是1。分数太大，softmax会饱和（见最后一步）。"


def test_worked_example_from_the_shell(manyheads: Run) -> None:
    done = manyheads("walk")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 x3  30×50 + 36×122 + 42×194 = 1500 + 4392 + 8148 = 14040" in done.stdout
    assert "output  [ 50  194  122 ]" in done.stdout
    assert "\x1b" not in done.stdout  # no color in a pipe
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("text", ["我爱水课", "猫在睡觉", "I love cats"])
def test_sentences(here: Here, text: str) -> None:
    code, out, err = here("walk", text, "--steps", "1,6-7")
    assert (code, err) == (0, "")
    assert re.findall(r"^ ?(\d+)  [A-Z]", out, re.MULTILINE) == ["1", "6", "7"]
    assert text in out
    assert "Untrained" in out


def test_json_has_every_number(here: Here) -> None:
    code, out, _ = here("walk", "我爱水课", "--layer", "decoder.0.self", "--query", "水", "--json")
    payload = json.loads(out)
    assert (code, payload["origin"], payload["attention"], payload["query"]) == (0, "untrained", "decoder.0.self", 3)
    assert payload["softmax"]["scores"][0][1] is None  # hidden
    weights, v = np.array(payload["softmax"]["weights"]), np.array(payload["v"])
    np.testing.assert_allclose(weights @ v, payload["weighted_sum"], atol=1e-12)
    np.testing.assert_allclose(np.array(payload["heads"]) @ np.array(payload["matrices"]["output"]), payload["output"])
    assert np.array(payload["terms"]).shape == (5, 5, 2)
    assert payload["contrast"]["scale"] == 1.0


def test_walk_of_a_bundle(here: Here, bundle_folder: Path) -> None:
    words = ("walk", bundle_folder, "Two cats are sleeping.", "--layer", "decoder.0.cross", "--head", "2")
    code, out, err = here(*words, "--answer", "两只猫在睡觉。", "--query", "0")
    assert (code, err) == (0, "")
    assert "→ 两只猫在睡觉。" in out
    assert "decoder.0.cross/2  (cross-attention)" in out
    assert "Untrained" not in out


def test_bad_input_is_one_line(here: Here, bundle_folder: Path) -> None:
    for words, code, message in (
        ([bundle_folder, "Two cats.", "--layer", "encoder.5.self"], 1, "Known: encoder.0.self, decoder.0.self,"),
        ([bundle_folder, "Two cats.", "--head", "7"], 1, "encoder.0.self has heads 0 to 3"),
        (
            [bundle_folder, "Two cats.", "--query", "dogs"],
            1,
            "There is no query 'dogs'. Give a word or its number: 0 ▁Two",
        ),
        ([bundle_folder, " "], 1, "The text is empty"),
        ([bundle_folder, "cats " * 99], 1, "this model reads at most 39"),
        (["nowhere", "Two cats."], 1, "nowhere: there is no such folder"),
        (["word " * 13], 1, "has 13 words"),
        ([""], 1, "The text is empty"),
        ([bundle_folder], 2, "Give a text too"),
        (["I", "love", "cats"], 2, 'Put the text in quotes: manyheads walk "I love cats".'),
        (["cats", "--steps", "9-11"], 2, "is not a list of steps from 1 to 10"),
        (["cats", "--steps", "2", "--json"], 2, "leave out --steps"),
        (["--head", "1"], 2, "The worked example has one head"),
    ):
        exit_code, out, err = here("walk", *words)
        assert (exit_code, out) == (code, ""), words
        assert message in err
        assert len([line for line in err.splitlines() if line.startswith("Error: ")]) == 1
