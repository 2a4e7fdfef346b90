"""Tables and sums that several steps of `manyheads walk` share."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.messages import _
from manyheads.walks.checked_digits import Digits, calculable, dot, softmax_columns, vector_sum
from manyheads.walks.number_format import WHOLE, Floats, Line, folded, labels, matrix, vector
from manyheads.walks.walk_page import MAX_KEYS, Page

_MAX_ROWS = 8  # of a wide matrix
_BAR_WIDTH = 20  # columns for a weight of 1


def show_rows(title: str, rows: Floats, names: Sequence[str], chosen: int | None = None) -> Iterator[Line]:
    """Yield a matrix with a row per position: whole, or the ends of some rows."""
    if rows.shape[1] <= WHOLE and len(rows) <= MAX_KEYS:
        yield from matrix(title, rows, labels(names), chosen)
        return
    yield Text(f"{title}   {len(rows)} × {rows.shape[1]}", style="bold")
    shown = list(range(min(len(rows), _MAX_ROWS)))
    if chosen is not None and chosen not in shown:
        shown = [*shown[:-1], chosen]
    for position in shown:
        style = "bold cyan" if position == chosen else ""
        yield Text(f"{labels(names)[position]}  ").append(vector(rows[position]), style=style)
    if len(shown) < len(rows):
        more = len(rows) - len(shown)
        yield Text(_("… {more} more rows: see --json", more=more), style="dim")


def show_products(
    page: Page, name: str, x: Floats, columns: Floats, bias: Floats | None, n_shown: int | None = None
) -> Iterator[Line]:
    """Yield name[i] = x · column i + bias for each column, or the first of a wide matrix."""
    count = n_shown or (columns.shape[1] if page.is_small else 1)

    def render(digits: Digits) -> Iterator[Line]:
        for index in range(count):
            text = dot(digits, x, columns[:, index], None if bias is None else float(bias[index]))
            yield from folded(f"{name}[{index}] = ", text, page.width)

    yield from calculable(render)


def show_sum(
    page: Page, digits: Digits, names: Sequence[str], terms: Sequence[Floats], total: Floats
) -> Iterator[Line]:
    """Yield vectors that are added, and their sum, one below the other."""
    before = max(map(cell_len, names)) + 2
    rows = vector_sum(digits, terms, total, page.width - before)
    for index, (name, row) in enumerate(zip(names, rows, strict=True)):
        yield Text(set_cell_size(name, before)).append(row, style="bold" if index == len(terms) else "")


def softmax_table(
    page: Page,
    names: Sequence[str],
    scores: Floats,
    weights: Floats,
    others: tuple[float, float] | None = None,
    n_others: int = 0,
    score: str | None = None,
) -> list[Line]:
    """Return scores, their exponentials and weights as a table; `others` are the sums of those that are not listed."""

    def render(digits: Digits) -> Iterator[Line]:
        shown = softmax_columns(digits, scores, weights, others)
        widths = [max(10, *map(len, column)) for column in shown.columns]
        before = " " * cell_len(names[0])
        headings = (score or _("score"), _("- largest"), "e^", _("÷ sum"))
        yield cells(before, headings, widths, "bold")
        for index, name in enumerate(names):
            line = cells(name, [column[index] for column in shown.columns], widths)
            full = min(_BAR_WIDTH, page.width - line.cell_len - 2)
            yield line.append(f"  {'█' * round(full * float(weights[index]))}", style="blue")
        if shown.others is not None:
            yield cells(before, ("", _("{n_others:,} more", n_others=n_others), *shown.others), widths, "dim")
        yield cells(before, ("", _("sum"), shown.exponential_sum, shown.weight_sum), widths)

    return calculable(render)


def cells(label: str, row: Sequence[str], widths: Sequence[int], style: str = "") -> Text:
    """Return a row of a table, right-aligned."""
    joined = " ".join(" " * (width - cell_len(cell)) + cell for cell, width in zip(row, widths, strict=True))
    return Text(f"{label}  {joined}", style=style)
