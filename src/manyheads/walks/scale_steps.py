"""The step of `manyheads walk` that repeats a row without √d_k."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.messages import _
from manyheads.walks import step_texts as texts
from manyheads.walks.attention_walk import Softmax
from manyheads.walks.checked_digits import RESULT, Digits, calculable, printed
from manyheads.walks.head_steps import more_keys
from manyheads.walks.number_format import Line, centered, number
from manyheads.walks.toy_model import Saturation
from manyheads.walks.walk_page import Page, cells


def without_scale(page: Page) -> Iterator[Line]:
    """The same row with and without √d_k, and the effect of d_k."""
    walk = page.walk
    if walk.contrast is None:
        yield from page.explain(texts.NO_CONTRAST)
        return
    is_scaled = walk.softmax.scale >= walk.contrast.scale
    scaled, plain = (walk.softmax, walk.contrast) if is_scaled else (walk.contrast, walk.softmax)
    yield from page.explain(texts.WITHOUT_SCALE)
    yield Text()
    columns = (_("score"), _("weight"), _("slope"))
    before = " " * cell_len(page.key_labels[0])

    def render(digits: Digits) -> Iterator[Line]:
        keys = page.shown_keys
        halves = [[_slope_cells(digits, row, walk.query, key) for key in keys] for row in (scaled, plain)]
        widths = [[max(8, *map(len, column)) for column in zip(*half, strict=True)] for half in halves]
        titles = zip(("÷ √d_k", _("without")), widths, strict=True)
        yield Text("  ".join((before, *(centered(title, sum(each) + 2) for title, each in titles))), style="bold")
        yield cells(before, columns, widths[0], "bold") + cells("", columns, widths[1], "bold")
        for key, left, right in zip(keys, *halves, strict=True):
            yield cells(page.key_labels[key], left, widths[0]) + cells("", right, widths[1])

    yield from calculable(render)
    yield from more_keys(page)
    yield Text()
    yield from _summary(page, scaled, plain)
    if page.origin == "worked":
        yield from page.explain(texts.NO_HELP)
    if page.saturations:
        yield Text()
        yield from page.explain(texts.WIDER)
        yield Text()
        yield from _saturation_table(page.saturations)
        yield Text()
        yield from page.explain(texts.VANISHES)


def _slope_cells(digits: Digits, row: Softmax, query: int, key: int) -> list[str]:
    score, weight = printed(float(row.scores[query, key]), RESULT), digits.of(float(row.weights[query, key]))
    slope = Decimal(weight) * (1 - Decimal(weight)) / Decimal(digits.of(row.scale))
    return [score, weight, digits.result(float(row.slopes[query, key]), slope)]


def _summary(page: Page, scaled: Softmax, plain: Softmax) -> Iterator[Line]:
    visible = page.walk.visible
    count = int(visible.sum())
    yield Text(_("all {count:,} visible pairs of this head", count=count))
    headings = (
        _("largest weight*"),
        _("median slope"),
        _("mean slope"),
    )
    yield _summary_row("", headings, "bold")
    for title, row in (("÷ √d_k", scaled), (_("without"), plain)):
        slopes = row.slopes[visible]
        figures = (np.median(row.weights.max(-1)), np.median(slopes), slopes.mean())
        yield _summary_row(title, [number(float(value)) for value in figures])
    yield Text(_("* median over rows"), style="dim")


def _summary_row(title: str, row: Sequence[str], style: str = "") -> Line:
    padded = (" " * (17 - cell_len(cell)) + cell for cell in row)
    return Text(set_cell_size(title, 15) + "".join(padded), style=style)


def _saturation_table(saturations: Sequence[Saturation]) -> Iterator[Line]:
    widths = (5, 8, 13, 15, 13, 12)
    headings = (
        "d_k",
        "",
        _("std of score"),
        _("largest weight"),
        _("median slope"),
        _("mean slope"),
    )
    yield cells("", headings, widths, "bold")
    for row in saturations:
        title = "÷ √d_k" if row.is_scaled else _("without")
        figures = (row.spread, row.largest_weight, row.slope, row.mean_slope)
        yield cells("", (str(row.head_width), title, *map(number, figures)), widths)
