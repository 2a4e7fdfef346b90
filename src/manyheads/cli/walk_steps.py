"""The ten steps of `manyheads walk` in a terminal, each with its numbers and an explanation."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.cli import walk_text as texts
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
from manyheads.cli.walk_page import INDENT, MAX_KEYS, Page
from manyheads.language import pick
from manyheads.lens.attention_walk import Softmax, slice_of
from manyheads.lens.toy_model import Saturation

_MAX_ROWS = 8  # of a wide matrix
_BAR_WIDTH = 20  # columns for a weight of 1


Step = Callable[[Page], Iterator[Line]]


def show_steps(page: Page, chosen: Sequence[int] | None = None) -> Iterator[Line]:
    """Yield the lines of the chosen steps, by default of all."""
    for step_number, (title, step) in enumerate(zip(texts.TITLES, STEPS, strict=True), start=1):
        if chosen is None or step_number in chosen:
            yield Text()
            yield Text(f"{step_number:>2}  {title}", style="bold green")
            for line in step(page):
                indented = Text(" " * INDENT) + line
                indented.rstrip()
                yield indented


def _inputs(page: Page) -> Iterator[Line]:
    walk = page.walk
    if page.origin == "worked":
        yield from page.explain(texts.INPUTS_WORKED)
    elif walk.attention.endswith("cross"):
        yield from page.explain(texts.INPUTS_CROSS)
    else:
        yield from page.explain(texts.INPUTS_EMBEDDED if page.origin == "untrained" else texts.INPUTS_LAYER)
    yield Text()
    if walk.is_self:
        yield from _rows("X", walk.queries_from, walk.query_names, walk.query)
        return
    yield from _rows(pick("X (queries)", "X（查询）"), walk.queries_from, walk.query_names, walk.query)
    yield Text()
    yield from _rows(pick("Y (keys and values)", "Y（键和值）"), walk.keys_from, walk.key_names)


def _rows(title: str, rows: Floats, names: Sequence[str], chosen: int | None = None) -> Iterator[Line]:
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
        n_more = len(rows) - len(shown)
        yield Text(pick(f"… {n_more} more rows: see --json", f"……其余 {n_more} 行见 --json"), style="dim")


def _projections(page: Page) -> Iterator[Line]:
    walk, matrices = page.walk, page.walk.matrices
    yield from page.explain(texts.ROLES)
    if not walk.has_projections:
        yield from page.explain(texts.NO_PROJECTIONS)
    elif walk.n_heads > 1:
        yield from page.explain(texts.OWN_COLUMNS)
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
        yield Text(pick(f"q of {page.query_name}", f"{page.query_name} 的 q"), style="bold")
        for index in range(walk.q.shape[1] if page.is_small else 1):
            column = matrices.query[:, index]
            yield from _sum(page, f"q[{index}] = ", walk.queries_from[walk.query], column, matrices.query_bias, index)
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
        yield from page.explain(texts.ROTATED)
        yield from _rows(pick("Q rotated", "旋转后的 Q"), walk.rotated_q, walk.query_names, walk.query)
        yield from _rows(pick("K rotated", "旋转后的 K"), walk.rotated_k, walk.key_names)


def _sum(page: Page, name: str, x: Floats, column: Floats, bias: Floats | None, index: int) -> Iterator[Line]:
    text = sum_of_products(x, column)
    if bias is not None:
        total = float((x * column).sum() + bias[index])
        text = f"{text.rpartition(' = ')[0]} + {factor(number(float(bias[index])))} (bias) = {number(total)}"
    yield from folded(name, text, page.width)


def _products(page: Page) -> Iterator[Line]:
    walk = page.walk
    matching = texts.OTHER_FORMS.get(walk.form, texts.MATCHING)
    yield from page.explain(matching, *([texts.ITSELF] if walk.is_self else []))
    yield Text()
    q = walk.q if walk.rotated_q is None else walk.rotated_q
    k = walk.k if walk.rotated_k is None else walk.rotated_k
    for key in page.shown_keys:
        if walk.form in ("scaled-dot", "dot"):
            text = sum_of_products(q[walk.query], k[key], with_products=True)
        else:
            text = sum_of(walk.terms[walk.query, key])
        yield from folded(f"{page.key_labels[key]}  ", text, page.width)
    yield from _more_keys(page)


def _more_keys(page: Page) -> Iterator[Line]:
    n_more = len(page.other_keys)
    if n_more:
        note = pick(f"… {n_more} more keys with less weight: see --json", f"……其余 {n_more} 个权重较小的键见 --json")
        yield Text(note, style="dim")


def _scale(page: Page) -> Iterator[Line]:
    walk, scale = page.walk, page.walk.softmax.scale
    if walk.form in ("scaled-dot", "bilinear"):
        yield from page.explain(texts.WHY_DIVIDE)
        yield Text()
        yield Text(f"√d_k = √{walk.terms.shape[-1]} = {number(scale)}", style="bold")
    elif walk.form == "cosine":
        yield from page.explain(texts.LEARNED_SCALE)
        yield Text()
        yield Text(f"1/τ = {number(scale)}", style="bold")
    else:
        yield from page.explain(texts.NO_SCALE)
        return
    products, divided = _column(walk.products[walk.query]), _column(walk.products[walk.query] / scale)
    for key in page.shown_keys:
        yield Text(f"{page.key_labels[key]}  {products[key]} / {number(scale)} = {divided[key]}")
    yield from _more_keys(page)


def _column(values: Floats) -> list[str]:
    """Return numbers padded to one width."""
    shown = numbers(values)
    width = max(map(len, shown))
    return [text.rjust(width) for text in shown]


def _mask(page: Page) -> Iterator[Line]:
    walk = page.walk
    if walk.distance is not None:
        yield from page.explain(texts.ALIBI)
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
        yield from page.explain(texts.NOTHING_HIDDEN, *([texts.HINT_CAUSAL] if page.origin == "untrained" else []))
        return
    yield from page.explain(texts.CAUSAL, texts.WHY_BEFORE)
    yield Text()
    scores = _column(walk.softmax.scores[walk.query])
    for key in page.shown_keys:
        is_visible = walk.visible[walk.query, key]
        state = pick("visible", "可见") if is_visible else pick("masked", "掩去")
        yield Text(f"{page.key_labels[key]}  {scores[key]}   {state}")
    yield from _more_keys(page)


def _softmax(page: Page) -> Iterator[Line]:
    walk, row, query = page.walk, page.walk.softmax, page.walk.query
    yield from page.explain(texts.SOFTMAX)
    yield Text()
    scores = row.scores[query]
    below = np.where(walk.visible[query], scores - max(scores.max(), -1e300), -np.inf)  # a row can be fully masked
    each = zip(scores, below, row.exponentials[query], row.weights[query], strict=True)
    table = [[number(value) for value in cells] for cells in each]
    widths = [max(10, *(len(line[column]) for line in table)) for column in range(4)]
    before = " " * cell_len(page.key_labels[0])
    yield _cells(
        before, (pick("score", "分数"), pick("- largest", "- 最大"), "e^", pick("÷ sum", "÷ 和")), widths, "bold"
    )
    for key in page.shown_keys:
        bar = "█" * round(_BAR_WIDTH * float(row.weights[query, key]))
        yield _cells(page.key_labels[key], table[key], widths).append(f"  {bar}", style="blue")
    if page.other_keys:
        rest = (float(each[query, page.other_keys].sum()) for each in (row.exponentials, row.weights))
        yield _cells(before, ("", _n_more(page), *map(number, rest)), widths, "dim")
    total = ("", pick("sum", "和"), number(float(row.sums[query])), number(float(row.weights[query].sum())))
    yield _cells(before, total, widths)
    if (walk.visible[query] & (row.exponentials[query] == 0)).any():
        yield from page.explain(texts.UNDERFLOW)


def _n_more(page: Page) -> str:
    n_more = len(page.other_keys)
    return pick(f"{n_more} more", f"其余 {n_more} 个")


def _cells(label: str, cells: Sequence[str], widths: Sequence[int], style: str = "") -> Text:
    row = " ".join(" " * (width - cell_len(cell)) + cell for cell, width in zip(cells, widths, strict=True))
    return Text(f"{label}  {row}", style=style)


def _map(page: Page) -> Iterator[Line]:
    walk = page.walk
    yield from page.explain(texts.ALL_ROWS)
    yield Text()
    yield from heat_map(walk.softmax.weights, walk.visible, labels(walk.query_names), walk.key_names, page.width)
    if page.origin == "worked":
        yield Text()
        yield from page.explain(texts.NOT_A_THIRD)


def _weighted_sum(page: Page) -> Iterator[Line]:
    walk = page.walk
    yield from page.explain(texts.WEIGHTED_SUM)
    yield Text()
    weights = walk.softmax.weights[walk.query]
    shown, parts = _column(weights), weights[:, None] * walk.v
    values = {key: short_vector(walk.v[key]) for key in page.shown_keys}
    wide = max(map(len, values.values()))
    if walk.v.shape[1] > SHORT:
        width = walk.v.shape[1]
        note = pick(f"the first and the last of {width} numbers", f"共 {width} 个数，只写首尾")
        yield Text(note, style="dim")
    for key, value in values.items():
        yield Text(f"{page.key_labels[key]}  {shown[key]} × {value:<{wide}} = {short_vector(parts[key])}")
    before = cell_len(page.key_labels[0]) + 2 + len(shown[0]) + 3 + wide
    if page.other_keys:
        rest = short_vector(parts[page.other_keys].sum(0))
        yield Text(f"{' ' * (before - cell_len(_n_more(page)))}{_n_more(page)} = {rest}", style="dim")
    label = pick("sum", "和")
    total = Text(f"{' ' * (before - cell_len(label))}{label} = ")
    yield total.append(short_vector(walk.weighted_sum[walk.query]), style="bold cyan")


def _output(page: Page) -> Iterator[Line]:
    walk, query, output = page.walk, page.walk.query, page.walk.matrices.output
    yield from page.explain(texts.CONCAT)
    yield Text()
    for head in range(walk.n_heads):
        is_this = head == walk.head and walk.n_heads > 1
        part = walk.heads[query, slice_of(head, walk.weighted_sum.shape[1])]
        style = "bold cyan" if is_this else ""
        yield Text(f"{'→' if is_this else ' '} {pick('head', '头')} {head:<2} {vector(part)}", style=style)
    yield Text(f"  Concat  {vector(walk.heads[query])}")
    if not walk.has_output:
        yield from page.explain(texts.NO_OUTPUT)
        yield Text(f"  {pick('output', '输出')}  {vector(walk.output[query])}", style="bold")
        return
    yield Text()
    if page.is_small:
        yield from matrix("W^O", output)
    else:
        yield Text(f"W^O   {output.shape[0]} × {output.shape[1]}", style="bold")
    yield Text()
    bias = walk.matrices.output_bias
    for index in range(output.shape[1] if page.is_small else 1):
        yield from _sum(page, f"{pick('output', '输出')}[{index}] = ", walk.heads[query], output[:, index], bias, index)
    yield Text()
    yield from page.explain(texts.HEAD_BY_HEAD)
    others = pick("other heads", "其余的头") + (pick(" and bias", "与偏置") if bias is not None else "")
    names = (pick(f"head {walk.head}", f"头 {walk.head}"), others, pick("output", "输出"))
    width = max(map(cell_len, names))
    this, rest, total = (set_cell_size(name, width) + "  " for name in names)
    yield Text(this).append(vector(walk.contribution[query]), style="bold cyan")
    yield Text(rest + vector(walk.output[query] - walk.contribution[query]))
    yield Text(total + vector(walk.output[query]), style="bold")


def _without_scale(page: Page) -> Iterator[Line]:
    walk = page.walk
    if walk.contrast is None:
        yield from page.explain(texts.NO_CONTRAST)
        return
    is_scaled = walk.softmax.scale >= walk.contrast.scale
    scaled, plain = (walk.softmax, walk.contrast) if is_scaled else (walk.contrast, walk.softmax)
    yield from page.explain(texts.WITHOUT_SCALE)
    yield Text()
    columns, widths = (pick("score", "分数"), pick("weight", "权重"), pick("slope", "斜率")), (9, 8, 8)
    before = " " * cell_len(page.key_labels[0])
    yield Text(f"{before}  {centered('÷ √d_k', 27)}  {centered(pick('without', '不除'), 27)}", style="bold")
    yield _cells(before, columns, widths, "bold") + _cells("", columns, widths, "bold")
    for key in page.shown_keys:
        left, right = (_contrast_cells(row, walk.query, key) for row in (scaled, plain))
        yield _cells(page.key_labels[key], left, widths) + _cells("", right, widths)
    yield from _more_keys(page)
    yield Text()
    count = int(walk.visible.sum())
    yield Text(pick(f"all {count:,} visible pairs of this head", f"这个头全部 {count:,} 对可见位置"))
    headings = (
        pick("largest weight*", "最大权重*"),
        pick("median slope", "斜率中位数"),
        pick("mean slope", "斜率均值"),
    )
    yield _summary("", headings, "bold")
    for title, row in (("÷ √d_k", scaled), (pick("without", "不除"), plain)):
        slopes = row.slopes[walk.visible]
        figures = (np.median(row.weights.max(-1)), np.median(slopes), slopes.mean())
        yield _summary(title, [number(float(value)) for value in figures])
    yield Text(pick("* median over rows", "* 各行的中位数"), style="dim")
    if page.origin == "worked":
        yield from page.explain(texts.NO_HELP)
    if page.saturations:
        yield Text()
        yield from page.explain(texts.WIDER)
        yield Text()
        yield from _saturation_table(page.saturations)
        yield Text()
        yield from page.explain(texts.VANISHES)


def _contrast_cells(row: Softmax, query: int, key: int) -> list[str]:
    figures = (row.scores[query, key], row.weights[query, key], row.slopes[query, key])
    return [number(float(value)) for value in figures]


def _summary(title: str, cells: Sequence[str], style: str = "") -> Line:
    padded = (" " * (17 - cell_len(cell)) + cell for cell in cells)
    return Text(set_cell_size(title, 15) + "".join(padded), style=style)


def _saturation_table(saturations: Sequence[Saturation]) -> Iterator[Line]:
    widths = (5, 8, 13, 15, 13, 12)
    headings = (
        "d_k",
        "",
        pick("std of score", "分数标准差"),
        pick("largest weight", "最大权重"),
        pick("median slope", "斜率中位数"),
        pick("mean slope", "斜率均值"),
    )
    yield _cells("", headings, widths, "bold")
    for row in saturations:
        scale = "÷ √d_k" if row.is_scaled else pick("without", "不除")
        figures = (row.spread, row.largest_weight, row.slope, row.mean_slope)
        yield _cells("", (str(row.head_width), scale, *map(number, figures)), widths)


STEPS: tuple[Step, ...] = (  # titles are in texts.TITLES
    _inputs,
    _projections,
    _products,
    _scale,
    _mask,
    _softmax,
    _map,
    _weighted_sum,
    _output,
    _without_scale,
)
