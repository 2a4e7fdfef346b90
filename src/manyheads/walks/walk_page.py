"""`Page`: what `manyheads walk` shows and its width, and the tables and sums that several steps share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.messages import Message, _
from manyheads.walks.attention_walk import Floats, Walk
from manyheads.walks.block_walk import BlockWalk
from manyheads.walks.checked_digits import Digits, calculable, dot, softmax_columns, vector_sum
from manyheads.walks.number_format import WHOLE, Line, folded, labels, matrix, shortened, vector, wrapped
from manyheads.walks.sublayer_walk import EmbeddingWalk
from manyheads.walks.toy_model import Saturation

INDENT = 4
MAX_KEYS = 24  # up to this many keys, all are shown
_N_LARGEST = 16  # of more keys, those with the largest weights
_MAX_ROWS = 8  # of a wide matrix
_BAR_WIDTH = 20  # columns for a weight of 1


@dataclass(frozen=True)
class Page:
    """A walk, its origin, and the width of the screen."""

    walk: Walk
    origin: Literal["worked", "untrained", "bundle"]
    columns: int = 80
    saturations: Sequence[Saturation] = ()

    @property
    def width(self) -> int:
        """The width below a title, in columns."""
        return self.columns - INDENT

    @property
    def is_small(self) -> bool:
        """Whether vectors are short enough to print whole."""
        return self.walk.queries_from.shape[1] <= WHOLE

    @property
    def query_name(self) -> str:
        """The name of the query that is shown in detail."""
        return shortened(self.walk.query_names[self.walk.query])

    @property
    def written_name(self) -> str | None:
        """The token that the query's position writes, if it is in a decoder and the token is known."""
        written = self.walk.written_names
        return shortened(written[self.walk.query]) if self.walk.query < len(written) else None

    @property
    def row_names(self) -> list[str]:
        """The names of the queries; in a decoder with what they write, as in "I → love"."""
        names, written = map(shortened, self.walk.query_names), list(map(shortened, self.walk.written_names))
        return [f"{name} → {written[row]}" if row < len(written) else name for row, name in enumerate(names)]

    @property
    def block(self) -> BlockWalk:
        """What is around the attention."""
        assert self.walk.block is not None
        return self.walk.block

    @property
    def embedding(self) -> EmbeddingWalk | None:
        """The embedding of the queries."""
        block = self.block
        return block.target_embedding if block.name.startswith("decoder") else block.source_embedding

    @property
    def target_names(self) -> tuple[str, ...]:
        """What the decoder reads."""
        embedding = self.block.target_embedding
        return () if embedding is None else embedding.names

    @property
    def has_cross(self) -> bool:
        """Whether the decoder reads an encoder."""
        return self.block.decoder is not None and self.block.decoder.cross_sublayer is not None

    @property
    def shown_keys(self) -> list[int]:
        """All keys, or those with the largest weights if there are many."""
        weights = self.walk.softmax.weights[self.walk.query]
        if len(weights) <= MAX_KEYS:
            return list(range(len(weights)))
        return sorted(np.argsort(-weights, kind="stable")[:_N_LARGEST].tolist())

    @property
    def other_keys(self) -> list[int]:
        """The keys that are not shown."""
        return sorted(set(range(len(self.walk.key_names))) - set(self.shown_keys))

    @property
    def key_labels(self) -> list[str]:
        """The numbers and names of the keys, padded to one width."""
        return labels(self.walk.key_names)

    def explain(self, *explanations: Message) -> Iterator[Line]:
        """Yield explanations as wrapped lines, in the language in use."""
        for explanation in explanations:
            yield from map(Text, wrapped(str(explanation), self.width))


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
