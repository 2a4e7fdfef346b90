"""The steps of `manyheads walk`: a calculator confirms every printed equation, and every line fits the screen."""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from rich.cells import cell_len

from manyheads.bundle import Bundle
from manyheads.language import LANGUAGES, Language, using
from manyheads.walks import Walk, walk, walk_sentence, worked_example
from manyheads.walks.number_format import number, vector, wrapped
from manyheads.walks.toy_model import measure_saturation
from manyheads.walks.walk_page import Page
from manyheads.walks.walk_steps import STEPS, show_heading, show_steps

from lens.makers import MODELS, TEXTS, WRITERS, task_of
from model.makers import small
from walks.test_attention_walk import each_walk

WIDE_TEXT = "The old teacher did not buy the red book, and the young doctor saw two small cats near the house."
NUMBER = r"-?\d+(?:\.\d+)?(?:e-\d+)?"


def text_of(page: Page, *steps: int) -> list[str]:
    return [line.plain for line in show_steps(page, steps or None)]


def joined(lines: list[str]) -> list[str]:
    """Join the lines of each wrapped sum."""
    sums: list[str] = []
    for line in lines:
        if re.match(r" +[+=] [^\[a-z]*\d", line) and "[ " not in line:
            sums[-1] += " " + line.strip()
        else:
            sums.append(line)
    return sums


def calculate(side: str) -> Decimal | None:
    """Evaluate one side of a printed equation exactly as printed; None if it is not a formula of numbers."""
    side = re.sub(r"\[\d+ more: (\S+)\]", r"(\1)", side.replace(" (bias)", "").strip())
    if not re.search(r"\d", side) or not re.fullmatch(rf"(?:{NUMBER}|[-+×/()²√ ])+", side):
        return None
    code = re.sub(rf"(?<![\d)]){NUMBER}|(?<=[\d)] - ){NUMBER}|\d+(?:\.\d+)?", r"Decimal('\g<0>')", side)
    code = re.sub(r"√(Decimal\('[^']+'\))", r"(\1).sqrt()", code)
    code = re.sub(r"√(\([^()]*(?:\([^()]*\)[^()]*)*\))", r"\1.sqrt()", code)
    return Decimal(eval(code.replace("×", "*").replace("²", "**2"), {"Decimal": Decimal}))  # printed by ourselves


def equations(lines: list[str]) -> Iterator[tuple[str, list[Decimal], str]]:
    """Yield each printed equation: its text, the values of its sides, and its last number."""
    for line in joined(lines):
        for chunk in re.split(r"\s{2,}", line.strip()):
            *sides, last = chunk.split(" = ")
            values = [value for side in sides if (value := calculate(side)) is not None]
            if values and re.fullmatch(NUMBER, last):
                yield chunk, values, last


def rounded_like(last: str, value: Decimal) -> str:
    if "e" in last:
        return f"{float(value):.{len(last.partition('.')[2].partition('e')[0])}e}"
    shown = value.quantize(Decimal(1).scaleb(-len(last.partition(".")[2])), rounding=ROUND_HALF_UP)
    return str(shown) if shown else "0"


@pytest.fixture(scope="module")
def pages(untrained: Bundle) -> dict[str, Page]:
    walks: dict[str, Walk] = {
        "cats": walk_sentence("I love cats"),
        "course": walk_sentence("我爱水课", layer="decoder.0.self", query="爱"),
        "across": walk_sentence("猫在睡觉", layer="decoder.0.cross", head=1, answer="猫 正在 sleeping"),
        "one": walk_sentence("好"),
        "most": walk_sentence("一二三四五六七八九十百千", query="百"),
        "long names": walk_sentence(
            "extraordinarily sleeping extraordinarily well-known cats yesterday",
            answer="yesterday I extraordinarily",
            layer="decoder.0.self",
        ),
        "bundle": walk(untrained, "Two cats are sleeping.", answer="两只猫在睡觉。", layer="decoder.0.cross", head=2),
        "long": walk(untrained, WIDE_TEXT, head=1, query="teacher"),
    }
    for kind in ("seq2seq", "classify", "language"):
        for model in MODELS:
            task = task_of(kind, model)
            layer = task.model.settings.attention_names()[-1]
            answer = "to the cat" if kind in WRITERS else None
            walks[f"{kind}, {model}"] = walk(task, TEXTS[kind], answer=answer, layer=layer, head=1)
    toys = ("cats", "course", "across", "one", "most", "long names")
    kept = {name: Page(one, "untrained" if name in toys else "bundle") for name, one in walks.items()}
    return {"worked": Page(worked_example(), "worked", saturations=measure_saturation()), **kept}


def test_a_calculator_gives_every_printed_digit(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        checked = list(equations(text_of(page)))
        assert len(checked) > 20, name
        for text, values, last in checked:
            assert [rounded_like(last, value) for value in values] == [last] * len(values), (name, text)


def test_equations_are_recognized() -> None:
    lines = [
        "    0 I     (-0.300)×1.52 + 0.864×(-2.72) = (-0.456) + (-2.350)",
        "            = -2.806",
        "    √d_k = √2 = 1.414",
        "    σ² = ((-0.5 - 0.25)² + [14 more: 1.5] + (1 - 0.25)²) / 16 = 0.164",
        "    n[0] = (-0.730 - (-0.265)) / √(0.965 + 0.00001) = -0.473",
        "    μ = 372 / 3 = 124   σ² = 3504.67",
        "    0.388 + 0.142 = 0.531",
    ]
    found = list(equations(lines))
    assert [last for _, _, last in found] == ["-2.806", "1.414", "0.164", "-0.473", "124", "0.531"]
    assert [all(rounded_like(last, value) == last for value in values) for _, values, last in found] == [True] * 5 + [
        False
    ]
    assert len(found[0][1]) == 2


def test_printed_numbers_are_those_of_the_walk(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        one = page.walk
        results = [float(last) for _, _, last in equations(text_of(page, 3))]
        expected = one.products[one.query, page.shown_keys]
        if one.terms.shape[-1] > 1:  # a sum of one term is not printed as an equation
            assert results == pytest.approx(expected, abs=6e-3 if (np.abs(expected) > 100).any() else 6e-4), name
        normed = [float(last) for text, _, last in equations(text_of(page, 11)) if text.startswith("n[")]
        norm = page.block.sublayer.norm
        assert norm.normalized is not None
        row = norm.normalized[one.query]
        variances = [last for text, _, last in equations(text_of(page, 11)) if text.startswith("σ²")]
        for shown in variances[:1]:  # the true value, not that of the rounded operands
            assert norm.variance is not None
            assert float(shown) == pytest.approx(
                norm.variance[one.query], abs=0.51 * 10 ** -len(shown.partition(".")[2])
            )
        n_vectors = 1 if norm.weight.any() and (norm.weight == 1).all() else 2
        assert normed[: len(normed) // n_vectors] == pytest.approx(row if len(row) <= 8 else row[[0, -1]], abs=6e-4)


def test_printed_vector_sums(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        lines = text_of(page, 9, 11, 13, 14)
        ends = [index for index, line in enumerate(lines) if re.match(r" +(= sum|output  ) +\[", line)]
        assert len(ends) >= (1 if name == "worked" else 2), name
        for end in ends:
            if not page.walk.has_output and "output" in lines[end]:
                continue
            rows = [re.search(r"\[ (.+) \]", line)[1] for line in lines[end - 2 : end + 1]]  # type: ignore[index]
            numbers = [[cell for cell in row.split() if re.fullmatch(NUMBER, cell)] for row in rows]
            if "…" in rows[0]:
                numbers = [re.findall(NUMBER, re.sub(r"… \d+ more …", " ", row)) for row in rows]
            for *terms, total in zip(*numbers, strict=True):
                assert rounded_like(total, sum(map(Decimal, terms), Decimal())) == total, (name, lines[end])


def test_printed_softmax(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        one, query = page.walk.softmax, page.walk.query
        lines = text_of(page, 6)
        start = next(index for index, line in enumerate(lines) if "- largest" in line) + 1
        rows = []
        for line in lines[start : start + len(page.shown_keys)]:
            _, *cells = line.replace("█", "").rsplit(maxsplit=4)
            rows.append(cells)
        others = [line.split()[-2:] for line in lines if re.match(r" +\d+ more ", line)]
        total, share = next(line for line in lines if re.match(r" +sum ", line)).replace("≈ ", "≈").split()[-2:]
        largest = max(Decimal(score) for score, *_ in rows if score != "-∞")
        for key, (score, below, power, weight) in zip(page.shown_keys, rows, strict=True):
            if score == "-∞":
                assert (below, power, weight) == ("-∞", "0", "0")
                continue
            assert Decimal(score) - largest == Decimal(below), (name, score)
            assert rounded_like(power, Decimal(below).exp()) == power
            assert rounded_like(weight, Decimal(power) / Decimal(total)) == weight
            assert float(weight) == pytest.approx(one.weights[query, key], abs=5.1e-4)
        powers, weights = zip(*(row[2:] for row in rows), *others, strict=True)
        assert rounded_like(total, sum(map(Decimal, powers), Decimal())) == total
        added = sum(map(Decimal, weights), Decimal())
        assert abs(added - 1) < Decimal("1e-4") if share == "1" else share == "≈1", (name, added)
        assert share == "1" or name not in ("worked", "cats", "course", "across", "one")


def test_printed_weighted_sum(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        lines = text_of(page, 8)
        found = [re.search(r"(\S+) × \[ (.+?) \] += \[ (.+?) \]", line) for line in lines]
        rows = [row.groups() for row in found if row]
        assert len(rows) == len(page.shown_keys)
        parts = []
        for weight, values, products in rows:
            pairs = list(zip(values.replace("…", "").split(), products.replace("…", "").split(), strict=True))
            for value, product in pairs:
                assert rounded_like(product, Decimal(weight) * Decimal(value)) == product, (name, weight, value)
            parts.append([product for _, product in pairs])
        parts += [re.findall(NUMBER, line.partition("=")[2]) for line in lines if re.match(r" +\d+ more =", line)]
        (total,) = (re.findall(NUMBER, line.partition("=")[2]) for line in lines if re.match(r" +sum =", line))
        for shown, terms in zip(total, zip(*parts, strict=True), strict=True):
            assert rounded_like(shown, sum(map(Decimal, terms), Decimal())) == shown, name


def test_printed_loss(pages: dict[str, Page]) -> None:
    for name in ("cats", "across", "seq2seq, 2017", "seq2seq, learned, pre"):
        page = pages[name]
        walked = page.block.loss
        assert walked is not None
        lines = text_of(page, 16)
        start = next(index for index, line in enumerate(lines) if "target × -ln p" in line) + 1
        end = next(index for index, line in enumerate(lines) if re.match(r" +loss ", line))
        terms = []
        for line in lines[start:end]:
            terms.append(line.split()[-1])
            if " more " not in line:
                target, p, surprise, term = line.split()[-4:]
                assert rounded_like(surprise, -Decimal(p).ln()) == surprise, line
                assert rounded_like(term, Decimal(target) * Decimal(surprise)) == term, line
        loss = lines[end].split()[-1]
        assert rounded_like(loss, sum(map(Decimal, terms), Decimal())) == loss
        assert float(loss) == pytest.approx(walked.loss, abs=5.1e-4)
        assert "1 - ε = 1 - 0.1 = 0.9" in "\n".join(lines)


def test_smoothed_targets_of_five_words(pages: dict[str, Page]) -> None:
    text = "\n".join(text_of(pages["cats"], 16))
    assert "ε / (V - 1) = 0.1 / 4 = 0.025" in text
    assert re.search(r"love +0\.9 ", text)
    assert len(re.findall(r" 0\.025 ", text)) == 4
    assert "without label smoothing" in "\n".join(text_of(pages["language, 2017"], 16))


def test_norms_shift_with_padding_as_printed(pages: dict[str, Page]) -> None:
    for name in ("worked", "cats", "bundle"):
        lines = text_of(pages[name], 12)
        titles = r"LayerNorm: over|BatchNorm: per feature, over|Naive Batch|Per-sample norm: over"
        layer, batch, naive, sample = re.split(titles, "\n".join(lines))[1:5]
        assert "with padding: the same" in layer
        assert "with padding: the same" in batch
        for shifted, kind in ((naive, "batch-with-padding"), (sample, "sample")):
            change = re.search(r"largest change: (\S+)", shifted)
            assert change, name
            assert float(change[1]) == pytest.approx(pages[name].block.norms[kind].shift, abs=6e-4)
            assert float(change[1]) > 0.05


def test_decoder_step_says_what_is_read_and_written(pages: dict[str, Page]) -> None:
    page = Page(walk_sentence("the cat sleeps", answer="猫正在睡", layer="decoder.0.cross", query="猫"), "untrained")
    heading = "\n".join(line.plain for line in show_heading(page))
    assert "query  1 猫  (reads 猫, writes 正)" in heading
    text = "\n".join(text_of(page, 7, 14, 15))
    assert "1 猫 → 正" in text
    assert "reads 猫, writes 正" in text
    assert re.search(r"reads +<s> 猫\n +masked +正 在 睡\n +writes +正\n", text)
    assert "The position that reads 猫 should write 正." in text
    with using("zh"):
        assert "读 猫，写 正" in "\n".join(text_of(page, 14))


def test_what_a_model_does_not_have_is_said(pages: dict[str, Page]) -> None:
    for name in ("worked", "classify, 2017"):
        text = "\n".join(text_of(pages[name], 14, 15, 16))
        assert text.count("There is no") == 3, name
    assert "no feed-forward" in "\n".join(text_of(pages["worked"], 13))
    for model, said in (
        ("rotary, grouped, rms", "rotary positions rotate q and k"),
        ("alibi, one key head, pre", "ALiBi lowers the scores"),
        ("learned, pre", "learned vector of its position"),
        ("no positions, batch norm", "This model has no positions"),
    ):
        assert said in " ".join(" ".join(text_of(pages[f"seq2seq, {model}"], 1)).split())
    for model, said in (
        ("rotary, grouped, rms", "RMSNorm"),
        ("learned, pre", "Pre-norm"),
        ("no positions, batch norm", "BatchNorm at inference"),
        ("2017", "Post-norm"),
    ):
        assert said in " ".join(text_of(pages[f"seq2seq, {model}"], 11))
    assert "one more norm after its last block" in " ".join(text_of(pages["seq2seq, learned, pre"], 15))


def test_worked_example_names_the_mistakes_of_the_notes(pages: dict[str, Page]) -> None:
    text = " ".join(" ".join(text_of(pages["worked"])).split())
    assert "d_model = 9 for this example. That does not fit" in text
    assert "1×1 + 2×2 + 3×3 = 14" in text
    assert "print 0.33 everywhere; that is a mistake" in text
    assert "[ 51 196 125 ]" in text


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
        assert not re.search(r"[a-z]{4,} [a-z]{3,} ", chinese.replace("I love cats", "").replace("love cats", "")), step
    with using("zh"):
        heading = "".join(line.plain.strip() for line in show_heading(page))
    assert "没有任何意义" in heading


@pytest.mark.parametrize("scores", ["additive", "dense-synthesizer", "random-synthesizer", "cosine", "bilinear", "dot"])
def test_every_form_of_score(scores: str) -> None:
    shown = [one for one, _ in each_walk(small(scores=scores))[::3] if one.visible.any()]
    assert len(shown) == 6
    for one in shown:
        text = "\n".join(text_of(Page(one, "bundle"), *range(2, 11)))
        assert number(float(one.products[0, 0])) in text


@pytest.mark.parametrize(("positions", "text"), [("rotary", "Q rotated"), ("alibi", "ALiBi")])
def test_relative_positions_and_biases(positions: str, text: str) -> None:
    (one, _), *_ = each_walk(small(positions=positions, attention_bias=True))
    shown = "\n".join(text_of(Page(one, "bundle"), *range(2, 11)))
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


def test_long_vectors_show_their_ends() -> None:
    assert vector(np.arange(1.0, 21.0)) == "[ 1  2  3  … 15 more …  19  20 ]"
    assert vector(np.array([0.3, -0.5])) == "[ 0.3  -0.5 ]"  # no more decimals than needed


def test_prose_wraps_between_words_and_characters() -> None:
    lines = wrapped("除以 √d_k 就是 1。分数太大，softmax 会饱和（见最后一步）。", 14)
    assert all(cell_len(line) <= 16 for line in lines)  # closing punctuation stays on the line
    assert not any(line[0] in "，。）" for line in lines)
    assert wrapped("reads 猫, writes 正.", 17) == ["reads 猫, writes", "正."]
    assert "".join(lines).replace(" ", "") == "除以√d_k就是1。分数太大，softmax会饱和（见最后一步）。"
