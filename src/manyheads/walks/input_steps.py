"""The first step of `manyheads walk`: √d_model × word vector + position, and what enters the attention."""

import math
from collections.abc import Iterator
from decimal import Decimal

from rich.text import Text

from manyheads.messages import _
from manyheads.walks import step_texts as texts
from manyheads.walks.checked_digits import Digits, calculable
from manyheads.walks.number_format import Line, beside, ends, factor, number
from manyheads.walks.sublayer_walk import EmbeddingWalk
from manyheads.walks.walk_page import Page, cells, show_rows

_WIDE = 512  # d_model of the base model of 2017
_SINUSOIDS_SHOWN = 8  # widths up to this have their sines written out


def inputs(page: Page) -> Iterator[Line]:
    """The embedding, and the input of the attention."""
    walk = page.walk
    if page.origin == "worked":
        yield from page.explain(texts.INPUTS_WORKED, texts.NOTES_WIDTH)
        yield Text()
        yield from show_rows("X", walk.queries_from, walk.query_names, walk.query)
        return
    embedding = page.embedding
    assert embedding is not None
    yield from _embedding(page, embedding)
    yield Text()
    if walk.attention.endswith(".0.self"):
        yield from page.explain(texts.INPUTS_RELATIVE if embedding.positions is None else texts.INPUTS_EMBEDDED)
        return
    yield from page.explain(texts.INPUTS_CROSS if walk.attention.endswith("cross") else texts.INPUTS_LAYER)
    yield Text()
    if walk.is_self:
        yield from show_rows("X", walk.queries_from, walk.query_names, walk.query)
        return
    yield from show_rows(_("X (queries)"), walk.queries_from, walk.query_names, walk.query)
    yield Text()
    yield from show_rows(_("Y (keys and values)"), walk.keys_from, walk.key_names)


def _embedding(page: Page, embedding: EmbeddingWalk) -> Iterator[Line]:
    query, names = page.walk.query, embedding.names
    yield from page.explain(texts.EMBEDDING)
    yield from page.explain(*texts.position_notes(embedding.kind, is_scaled=embedding.scale != 1.0))
    yield Text()
    blocks = [list(show_rows(_("e (word)"), embedding.vectors, names, query))]
    if embedding.positions is not None:
        blocks.append(list(show_rows(_("position"), embedding.positions, names, query)))
    blocks.append(list(show_rows("X", embedding.output, names, query)))
    yield from beside(blocks, page.width)
    yield Text()
    yield from calculable(lambda digits: _sums(page, embedding, digits))
    if embedding.is_normalized:
        yield Text()
        yield from page.explain(texts.EMBEDDING_NORM)
    if embedding.kind == "sinusoidal" and embedding.scale != 1.0:
        yield Text()
        yield from page.explain(texts.WHY_SCALE_EMBEDDING)
        yield Text()
        yield from calculable(lambda digits: _lengths(page, embedding, digits))


def _sums(page: Page, embedding: EmbeddingWalk, digits: Digits) -> Iterator[Line]:
    """Yield 2×0.3 + 0.841 = 1.441 for each number of the query, or the first and the last."""
    query, width = page.walk.query, embedding.vectors.shape[1]
    scale = digits.of(embedding.scale)
    if embedding.scale != 1.0:
        yield Text(f"√d_model = √{width} = {scale}", style="bold")
    front, back = ends(width, 1, 1)
    for index in (*front, *back):
        word = digits.of(float(embedding.vectors[query, index]))
        text, value = f"{scale}×{factor(word)}", Decimal(scale) * Decimal(word)
        if embedding.positions is not None:
            added = digits.of(float(embedding.positions[query, index]))
            text, value = f"{text} + {factor(added)}", value + Decimal(added)
        sine = _sine(query, index, width) if embedding.kind == "sinusoidal" and width <= _SINUSOIDS_SHOWN else ""
        total = digits.result(float(embedding.output[query, index]), value)
        yield Text(f"X[{index}] = {text} = {total}").append(f"   {sine}" if sine else "", style="dim")


def _sine(position: int, index: int, width: int) -> str:
    function = "cos" if index % 2 else "sin"
    divisor = 10_000 ** (2 * (index // 2) / width)
    return f"{function}({position}/{divisor:g})"


def _lengths(page: Page, embedding: EmbeddingWalk, digits: Digits) -> Iterator[Line]:
    """Yield the lengths of a word vector before and after the scale, beside the length of a position."""
    query, width = page.walk.query, embedding.vectors.shape[1]
    lengths = embedding.position_lengths
    assert lengths is not None
    rows = [(page.query_name, width, float(embedding.word_lengths[query]), float(lengths[query]))]
    # Word vectors are initialized as N(0, 1/d_model), so that their mean squared length is 1 at any width.
    for each in (width, _WIDE):
        rows.append((_("at the start*"), each, 1.0, math.sqrt(each / 2)))
    widths = (14, 9, 10, 16, 11)
    headings = (
        "",
        "d_model",
        _("‖word‖"),
        _("‖word‖×√d_model"),
        _("‖position‖"),
    )
    yield cells("", headings, widths, "bold")
    for name, each, word, position in rows:
        shown = digits.of(word)
        scaled = digits.result(word * math.sqrt(each), Decimal(shown) * Decimal(digits.of(math.sqrt(each))))
        yield cells("", (name, str(each), shown, scaled, number(position)), widths)
    yield Text(_("* expected: N(0, 1/d_model)"), style="dim")
