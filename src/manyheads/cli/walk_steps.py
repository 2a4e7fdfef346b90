"""`manyheads walk` as it reads in a terminal: ten steps of one head, each with its numbers and why it is there."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.cli import walk_words as words
from manyheads.cli.number_format import (
    SHORT,
    WHOLE,
    Floats,
    Line,
    beside,
    centered,
    factor,
    folded,
    heat_map,
    labels,
    matrix,
    number,
    numbers,
    short_vector,
    sum_of,
    sum_of_products,
    vector,
)
from manyheads.cli.walk_page import INDENT, ROWS, Page
from manyheads.lens.attention_walk import Softmax, slice_of
from manyheads.lens.toy_model import Saturation

_ROWS_IN_PART = 8  # rows of a wide matrix
_BAR = 20  # columns of a weight of 1


Step = Callable[[Page], Iterator[Line]]


def show_steps(page: Page, chosen: Sequence[int] | None = None) -> Iterator[Line]:
    """The lines of these steps, or of all."""
    for place, (title, step) in enumerate(STEPS, start=1):
        if chosen is None or place in chosen:
            yield Text()
            yield Text(f"{place:>2}  {title}", style="bold green")
            for line in step(page):
                indented = Text(" " * INDENT) + line
                indented.rstrip()
                yield indented


def _inputs(page: Page) -> Iterator[Line]:
    walk = page.walk
    if page.origin == "worked":
        yield from page.explain(words.INPUTS_WORKED)
    elif walk.attention.endswith("cross"):
        yield from page.explain(words.INPUTS_CROSS)
    else:
        yield from page.explain(words.INPUTS_EMBEDDED if page.origin == "untrained" else words.INPUTS_LAYER)
    yield Text()
    if walk.is_self:
        yield from _rows("X", walk.queries_from, walk.query_names, walk.query)
        return
    yield from _rows("X (queries · 查询)", walk.queries_from, walk.query_names, walk.query)
    yield Text()
    yield from _rows("Y (keys and values · 键和值)", walk.keys_from, walk.key_names)


def _rows(title: str, rows: Floats, names: Sequence[str], chosen: int | None = None) -> Iterator[Line]:
    """A matrix with a row a place: whole, or the ends of some of its rows."""
    if rows.shape[1] <= WHOLE and len(rows) <= ROWS:
        yield from matrix(title, rows, labels(names), chosen)
        return
    yield Text(f"{title}   {len(rows)} × {rows.shape[1]}", style="bold")
    shown = list(range(min(len(rows), _ROWS_IN_PART)))
    if chosen is not None and chosen not in shown:
        shown = [*shown[:-1], chosen]
    for place in shown:
        style = "bold cyan" if place == chosen else ""
        yield Text(f"{labels(names)[place]}  ").append(vector(rows[place]), style=style)
    if len(shown) < len(rows):
        yield Text(f"… {len(rows) - len(shown)} more rows · 其余行见 --json", style="dim")


def _projections(page: Page) -> Iterator[Line]:
    walk, matrices = page.walk, page.walk.matrices
    yield from page.explain(words.ROLES)
    if not walk.has_projections:
        yield from page.explain(words.NO_PROJECTIONS)
    elif walk.n_heads > 1:
        yield from page.explain(words.OWN_COLUMNS)
    yield Text()
    if page.is_small:
        named = (("W^Q", matrices.query), ("W^K", matrices.key), ("W^V", matrices.value))
        yield from beside((matrix(title, rows) for title, rows in named if rows.size), page.width)
        yield Text()
    elif walk.has_projections:
        (width, key_width), value_width = matrices.key.shape, matrices.value.shape[1]
        yield Text(f"W^Q, W^K  {width} × {key_width}    W^V  {width} × {value_width}", style="bold")
        yield Text()
    if walk.q.size:
        yield Text(f"q of · 的 q: {page.query_name}", style="bold")
        for place in range(walk.q.shape[1] if page.is_small else 1):
            column = matrices.query[:, place]
            yield from _sum(page, f"q[{place}] = ", walk.queries_from[walk.query], column, matrices.query_bias, place)
        yield Text()
    source = "X" if walk.is_self else "Y"
    blocks = (
        ("Q = X W^Q", walk.q, walk.query_names, walk.query),
        (f"K = {source} W^K", walk.k, walk.key_names, None),
        (f"V = {source} W^V", walk.v, walk.key_names, None),
    )
    yield from beside((list(_rows(*block)) for block in blocks if block[1].size), page.width)
    if walk.rotated_q is not None and walk.rotated_k is not None:
        yield Text()
        yield from page.explain(words.ROTATED)
        yield from _rows("Q rotated · 转过的 Q", walk.rotated_q, walk.query_names, walk.query)
        yield from _rows("K rotated · 转过的 K", walk.rotated_k, walk.key_names)


def _sum(page: Page, name: str, x: Floats, column: Floats, bias: Floats | None, place: int) -> Iterator[Line]:
    told = sum_of_products(x, column)
    if bias is not None:
        total = float((x * column).sum() + bias[place])
        told = f"{told.rpartition(' = ')[0]} + {factor(number(float(bias[place])))} (bias) = {number(total)}"
    yield from folded(name, told, page.width)


def _products(page: Page) -> Iterator[Line]:
    walk = page.walk
    said = [words.OTHER_FORMS.get(walk.form, words.MATCHING)]
    yield from page.explain(*said, *([words.ITSELF] if walk.is_self else []))
    yield Text()
    q = walk.q if walk.rotated_q is None else walk.rotated_q
    k = walk.k if walk.rotated_k is None else walk.rotated_k
    for key in page.shown_keys:
        if walk.form in ("scaled-dot", "dot"):
            told = sum_of_products(q[walk.query], k[key], with_products=True)
        else:
            told = sum_of(walk.terms[walk.query, key])
        yield from folded(f"{page.key_labels[key]}  ", told, page.width)
    yield from _left_out(page)


def _left_out(page: Page) -> Iterator[Line]:
    missing = len(page.other_keys)
    if missing:
        yield Text(f"… {missing} more keys of less weight · 其余 {missing} 个权重较小的键见 --json", style="dim")


def _scale(page: Page) -> Iterator[Line]:
    walk, scale = page.walk, page.walk.softmax.scale
    if walk.form in ("scaled-dot", "bilinear"):
        yield from page.explain(words.WHY_DIVIDE)
        yield Text()
        yield Text(f"√d_k = √{walk.terms.shape[-1]} = {number(scale)}", style="bold")
    elif walk.form == "cosine":
        yield from page.explain(words.LEARNED_SCALE)
        yield Text()
        yield Text(f"1/τ = {number(scale)}", style="bold")
    else:
        yield from page.explain(words.NO_SCALE)
        return
    products, divided = _column(walk.products[walk.query]), _column(walk.products[walk.query] / scale)
    for key in page.shown_keys:
        yield Text(f"{page.key_labels[key]}  {products[key]} / {number(scale)} = {divided[key]}")
    yield from _left_out(page)


def _column(values: Floats) -> list[str]:
    """Numbers one under another, all of one width."""
    shown = numbers(values)
    width = max(map(len, shown))
    return [text.rjust(width) for text in shown]


def _mask(page: Page) -> Iterator[Line]:
    walk = page.walk
    if walk.distance is not None:
        yield from page.explain(words.ALIBI)
        yield Text()
        divided, added = (
            _column(walk.products[walk.query] / walk.softmax.scale),
            numbers(walk.distance[walk.query]),
        )
        for key in page.shown_keys:
            score = number(float(walk.products[walk.query, key] / walk.softmax.scale + walk.distance[walk.query, key]))
            yield Text(f"{page.key_labels[key]}  {divided[key]} + {factor(added[key])} = {score}")
        yield Text()
    if walk.visible.all():
        yield from page.explain(words.NOTHING_HIDDEN, *([words.HINT_CAUSAL] if page.origin == "untrained" else []))
        return
    yield from page.explain(words.CAUSAL, words.WHY_BEFORE)
    yield Text()
    scores = _column(walk.softmax.scores[walk.query])
    for key in page.shown_keys:
        sign = "visible · 可见" if walk.visible[walk.query, key] else "hidden · 遮住"
        yield Text(f"{page.key_labels[key]}  {scores[key]}   {sign}")
    yield from _left_out(page)


def _softmax(page: Page) -> Iterator[Line]:
    walk, row, query = page.walk, page.walk.softmax, page.walk.query
    yield from page.explain(words.SOFTMAX)
    yield Text()
    scores = row.scores[query]
    below = np.where(walk.visible[query], scores - max(scores.max(), -1e300), -np.inf)  # a row may see nothing at all
    each = zip(scores, below, row.exponentials[query], row.weights[query], strict=True)
    table = [[number(value) for value in cells] for cells in each]
    widths = [max(10, *(len(line[column]) for line in table)) for column in range(4)]
    before = " " * cell_len(page.key_labels[0])
    yield _cells(before, ("score", "- largest", "e^", "÷ sum"), widths, "bold")
    for key in page.shown_keys:
        bar = "█" * round(_BAR * float(row.weights[query, key]))
        yield _cells(page.key_labels[key], table[key], widths).append(f"  {bar}", style="blue")
    if page.other_keys:
        rest = (float(each[query, page.other_keys].sum()) for each in (row.exponentials, row.weights))
        yield _cells(before, ("", f"{len(page.other_keys)} more", *map(number, rest)), widths, "dim")
    total = ("", "sum · 和", number(float(row.sums[query])), number(float(row.weights[query].sum())))
    yield _cells(before, total, widths)
    if (walk.visible[query] & (row.exponentials[query] == 0)).any():
        yield from page.explain(words.UNDERFLOW)


def _cells(label: str, cells: Sequence[str], widths: Sequence[int], style: str = "") -> Text:
    row = " ".join(" " * (width - cell_len(cell)) + cell for cell, width in zip(cells, widths, strict=True))
    return Text(f"{label}  {row}", style=style)


def _map(page: Page) -> Iterator[Line]:
    walk = page.walk
    yield from page.explain(words.ALL_ROWS)
    yield Text()
    yield from heat_map(walk.softmax.weights, walk.visible, labels(walk.query_names), walk.key_names, page.width)
    if page.origin == "worked":
        yield Text()
        yield from page.explain(words.NOT_A_THIRD)


def _mix(page: Page) -> Iterator[Line]:
    walk = page.walk
    yield from page.explain(words.MIX)
    yield Text()
    weights = walk.softmax.weights[walk.query]
    shown, parts = _column(weights), weights[:, None] * walk.v
    values = {key: short_vector(walk.v[key]) for key in page.shown_keys}
    wide = max(map(len, values.values()))
    if walk.v.shape[1] > SHORT:
        width = walk.v.shape[1]
        yield Text(f"the first and the last of {width} numbers · {width} 个数只写首尾", style="dim")
    for key, value in values.items():
        yield Text(f"{page.key_labels[key]}  {shown[key]} × {value:<{wide}} = {short_vector(parts[key])}")
    before = cell_len(page.key_labels[0]) + 2 + len(shown[0]) + 3 + wide
    if page.other_keys:
        rest = short_vector(parts[page.other_keys].sum(0))
        yield Text(f"{f'{len(page.other_keys)} more':>{before}} = {rest}", style="dim")
    total = Text(" " * (before - cell_len("sum · 和")) + "sum · 和 = ")
    yield total.append(short_vector(walk.weighted_sum[walk.query]), style="bold cyan")


def _output(page: Page) -> Iterator[Line]:
    walk, query, output = page.walk, page.walk.query, page.walk.matrices.output
    yield from page.explain(words.CONCAT)
    yield Text()
    for head in range(walk.n_heads):
        is_this = head == walk.head and walk.n_heads > 1
        part = walk.heads[query, slice_of(head, walk.weighted_sum.shape[1])]
        style = "bold cyan" if is_this else ""
        yield Text(f"{'→' if is_this else ' '} head {head:<2} {vector(part)}", style=style)
    yield Text(f"  Concat  {vector(walk.heads[query])}")
    if not walk.has_output:
        yield from page.explain(words.NO_OUTPUT)
        yield Text(f"  output  {vector(walk.output[query])}", style="bold")
        return
    yield Text()
    if page.is_small:
        yield from matrix("W^O", output)
    else:
        yield Text(f"W^O   {output.shape[0]} × {output.shape[1]}", style="bold")
    yield Text()
    bias = walk.matrices.output_bias
    for place in range(output.shape[1] if page.is_small else 1):
        yield from _sum(page, f"output[{place}] = ", walk.heads[query], output[:, place], bias, place)
    yield Text()
    yield from page.explain(words.HEAD_BY_HEAD)
    others = "others and bias" if bias is not None else "other heads"
    before = max(len(others), len(f"head {walk.head}"))
    yield Text(f"{f'head {walk.head}':<{before}}  ").append(vector(walk.contribution[query]), style="bold cyan")
    yield Text(f"{others:<{before}}  {vector(walk.output[query] - walk.contribution[query])}")
    yield Text(f"{'output':<{before}}  {vector(walk.output[query])}", style="bold")


def _without_scale(page: Page) -> Iterator[Line]:
    walk = page.walk
    if walk.contrast is None:
        yield from page.explain(words.NO_CONTRAST)
        return
    is_scaled = walk.softmax.scale >= walk.contrast.scale
    scaled, plain = (walk.softmax, walk.contrast) if is_scaled else (walk.contrast, walk.softmax)
    yield from page.explain(words.WITHOUT_SCALE)
    yield Text()
    columns, widths = ("score", "weight", "slope"), (9, 8, 8)
    before = " " * cell_len(page.key_labels[0])
    yield Text(f"{before}  {centered('÷ √d_k', 27)}  {centered('without · 不除', 27)}", style="bold")
    yield _cells(before, columns, widths, "bold") + _cells("", columns, widths, "bold")
    for key in page.shown_keys:
        left, right = (_contrast_cells(one, walk.query, key) for one in (scaled, plain))
        yield _cells(page.key_labels[key], left, widths) + _cells("", right, widths)
    yield from _left_out(page)
    yield Text()
    count = int(walk.visible.sum())
    yield Text(f"all {count:,} visible pairs of this head · 这个头全部 {count:,} 对可见位置")
    yield _summary("", ("largest weight*", "slope, median", "slope, mean"), "bold")
    for title, one in (("÷ √d_k", scaled), ("without · 不除", plain)):
        slopes = one.slopes[walk.visible]
        found = (np.median(one.weights.max(-1)), np.median(slopes), slopes.mean())
        yield _summary(title, [number(float(value)) for value in found])
    yield Text("* the median over rows · 各行的中位数", style="dim")
    if page.origin == "worked":
        yield from page.explain(words.NO_HELP)
    if page.saturations:
        yield Text()
        yield from page.explain(words.WIDER)
        yield Text()
        yield from _table_of_widths(page.saturations)
        yield Text()
        yield from page.explain(words.VANISHES)


def _contrast_cells(row: Softmax, query: int, key: int) -> list[str]:
    found = (row.scores[query, key], row.weights[query, key], row.slopes[query, key])
    return [number(float(value)) for value in found]


def _summary(title: str, cells: Sequence[str], style: str = "") -> Line:
    return Text(set_cell_size(title, 15) + "".join(f"{cell:>17}" for cell in cells), style=style)


def _table_of_widths(found: Sequence[Saturation]) -> Iterator[Line]:
    heads, widths = ("d_k", "", "std of score", "largest weight", "slope", "slope, mean"), (5, 8, 13, 15, 9, 12)
    yield _cells("", heads, widths, "bold")
    for one in found:
        told = (one.spread, one.largest_weight, one.slope, one.mean_slope)
        yield _cells("", (str(one.head_width), "÷ √d_k" if one.is_scaled else "without", *map(number, told)), widths)


STEPS: tuple[tuple[str, Step], ...] = (
    ("Inputs · 输入", _inputs),
    ("Projections · 投影   x W^Q, x W^K, x W^V", _projections),
    ("Products · 点积   q·k", _products),
    ("Scale · 缩放   ÷ √d_k", _scale),
    ("Mask · 掩码", _mask),
    ("Softmax", _softmax),
    ("All weights · 全部权重", _map),
    ("Mix · 加权求和   weights · V", _mix),
    ("Concat and W^O · 拼接与 W^O", _output),
    ("Without √d_k · 如果不除以 √d_k", _without_scale),
)
