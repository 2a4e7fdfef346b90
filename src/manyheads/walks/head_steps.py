"""Steps of `manyheads walk` inside one attention head: from the projections to W^O."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.messages import _
from manyheads.walks import step_texts as texts
from manyheads.walks.attention_walk import slice_of
from manyheads.walks.checked_digits import Digits, calculable, dot, sum_of
from manyheads.walks.number_format import (
    MAX_NAME,
    SHORT,
    Line,
    beside,
    folded,
    heat_map,
    labels,
    matrix,
    vector,
)
from manyheads.walks.walk_page import Page, show_products, show_rows, show_sum, softmax_table


def projections(page: Page) -> Iterator[Line]:
    """x W^Q, x W^K, x W^V."""
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
        yield Text(_("q of {query_name}", query_name=page.query_name), style="bold")
        x = walk.queries_from[walk.query]
        yield from show_products(page, "q", x, matrices.query, matrices.query_bias)
        yield Text()
    source = "X" if walk.is_self else "Y"
    blocks = (
        ("Q = X W^Q", walk.q, walk.query_names, walk.query),
        (f"K = {source} W^K", walk.k, walk.key_names, None),
        (f"V = {source} W^V", walk.v, walk.key_names, None),
    )
    yield from beside((list(show_rows(*block)) for block in blocks if block[1].size), page.width)
    if page.origin == "worked":
        yield Text()
        yield from page.explain(texts.NOTES_K_V)
    if walk.rotated_q is not None and walk.rotated_k is not None:
        yield Text()
        yield from page.explain(texts.ROTATED)
        yield from show_rows(_("Q rotated"), walk.rotated_q, walk.query_names, walk.query)
        yield from show_rows(_("K rotated"), walk.rotated_k, walk.key_names)


def products(page: Page) -> Iterator[Line]:
    """q · k."""
    walk = page.walk
    matching = texts.OTHER_FORMS.get(walk.form, texts.MATCHING)
    yield from page.explain(matching, *([texts.ITSELF] if walk.is_self else []))
    yield Text()
    q = walk.q if walk.rotated_q is None else walk.rotated_q
    k = walk.k if walk.rotated_k is None else walk.rotated_k

    def render(digits: Digits) -> Iterator[Line]:
        for key in page.shown_keys:
            if walk.form in ("scaled-dot", "dot"):
                text = dot(digits, q[walk.query], k[key], with_products=True)
            else:
                text = sum_of(digits, walk.terms[walk.query, key])
            yield from folded(f"{page.key_labels[key]}  ", text, page.width)

    yield from calculable(render)
    yield from more_keys(page)


def more_keys(page: Page) -> Iterator[Line]:
    """Yield a line about the keys that are not shown."""
    count = len(page.other_keys)
    if count:
        note = _("… {count} more keys with less weight: see --json", count=count)
        yield Text(note, style="dim")


def scale(page: Page) -> Iterator[Line]:
    """÷ √d_k."""
    walk, divisor = page.walk, page.walk.softmax.scale
    if walk.form in ("scaled-dot", "bilinear"):
        yield from page.explain(texts.WHY_DIVIDE)
        name = f"√d_k = √{walk.terms.shape[-1]}"
    elif walk.form == "cosine":
        yield from page.explain(texts.LEARNED_SCALE)
        name = "1/τ"
    else:
        yield from page.explain(texts.NO_SCALE)
        return
    yield Text()
    row = walk.products[walk.query]

    def render(digits: Digits) -> Iterator[Line]:
        shown = digits.of(divisor)
        yield Text(f"{name} = {shown}", style="bold")
        dividends = _column([digits.of(float(row[key])) for key in page.shown_keys])
        quotients = [
            digits.result(float(row[key] / divisor), Decimal(text.strip()) / Decimal(shown))
            for key, text in zip(page.shown_keys, dividends, strict=True)
        ]
        for key, dividend, quotient in zip(page.shown_keys, dividends, _column(quotients), strict=True):
            yield Text(f"{page.key_labels[key]}  {dividend} / {shown} = {quotient}")

    yield from calculable(render)
    yield from more_keys(page)


def _column(shown: Sequence[str]) -> list[str]:
    """Return numbers padded to one width."""
    width = max(map(len, shown))
    return [text.rjust(width) for text in shown]


def mask(page: Page) -> Iterator[Line]:
    """ALiBi and the causal mask."""
    walk, query = page.walk, page.walk.query
    if walk.distance is not None:
        yield from page.explain(texts.DISTANCE if walk.has_learned_distance else texts.ALIBI)
        yield Text()
        divided, added = walk.products[query] / walk.softmax.scale, walk.distance[query]

        def render(digits: Digits) -> Iterator[Line]:
            for key in page.shown_keys:
                text = sum_of(digits, np.array([divided[key], added[key]]))
                yield Text(f"{page.key_labels[key]}  {text}")

        yield from calculable(render)
        yield Text()
    if walk.visible.all():
        yield from page.explain(texts.NOTHING_HIDDEN, *([texts.HINT_CAUSAL] if page.origin == "untrained" else []))
        return
    yield from page.explain(texts.CAUSAL, texts.WHY_BEFORE)
    yield Text()
    digits = Digits(3)
    scores = _column([digits.of(float(walk.softmax.scores[query, key])) for key in page.shown_keys])
    for key, score in zip(page.shown_keys, scores, strict=True):
        state = _("visible") if walk.visible[query, key] else _("masked")
        yield Text(f"{page.key_labels[key]}  {score}   {state}")
    yield from more_keys(page)


def softmax(page: Page) -> Iterator[Line]:
    """The softmax of the query's row."""
    yield from page.explain(texts.SOFTMAX)
    yield Text()
    yield from softmax_row(page)


def softmax_row(page: Page) -> Iterator[Line]:
    """Yield the scores and weights of the query's row."""
    walk, row, query = page.walk, page.walk.softmax, page.walk.query
    shown, other = page.shown_keys, page.other_keys
    names = [page.key_labels[key] for key in shown]
    others = (float(row.exponentials[query, other].sum()), float(row.weights[query, other].sum())) if other else None
    yield from softmax_table(page, names, row.scores[query, shown], row.weights[query, shown], others, len(other))
    if (walk.visible[query] & (row.exponentials[query] == 0)).any():
        yield from page.explain(texts.UNDERFLOW)


def all_weights(page: Page) -> Iterator[Line]:
    """The weights of all queries."""
    walk = page.walk
    yield from page.explain(texts.ALL_ROWS)
    if walk.written_names:
        read, written = walk.query_names[walk.query], page.written_name
        yield from page.explain(texts.rows_read(read, written) if written else texts.ROWS_READ)
    yield Text()
    yield from heat_map(
        walk.softmax.weights, walk.visible, labels(page.row_names, 2 * MAX_NAME + 3), walk.key_names, page.width
    )
    if page.origin == "worked":
        yield Text()
        yield from page.explain(texts.NOT_A_THIRD)


def weighted_sum(page: Page) -> Iterator[Line]:
    """Weights · V."""
    yield from page.explain(texts.WEIGHTED_SUM)
    yield Text()
    width = page.walk.v.shape[1]
    features = list(range(width)) if width <= SHORT else [0, width - 1]
    lines = calculable(lambda digits: _weighted_lines(page, features, digits))
    if max(line.cell_len for line in lines) > page.width:
        features = [0]
        lines = calculable(lambda digits: _weighted_lines(page, features, digits))
    if len(features) < width:
        which = _("the first") if len(features) == 1 else _("the first and the last")
        yield Text(_("{which} of {width} numbers", which=which, width=width), style="dim")
    yield from lines


def _weighted_lines(page: Page, features: list[int], digits: Digits) -> Iterator[Line]:
    """Yield weight × value = product for these features of each key, and the sum of the products."""
    walk, is_cut = page.walk, len(features) < page.walk.v.shape[1]
    weights = walk.softmax.weights[walk.query]
    shown = [digits.of(float(weights[key])) for key in page.shown_keys]
    values = [digits.each(walk.v[key, features]) for key in page.shown_keys]
    products = [
        [digits.rounded(Decimal(weight) * Decimal(value)) for value in row]
        for weight, row in zip(shown, values, strict=True)
    ]
    if page.other_keys:
        products.append(digits.each((weights[page.other_keys] @ walk.v[page.other_keys])[features]))
    totals = [
        digits.result(float(walk.weighted_sum[walk.query, feature]), sum(map(Decimal, column), Decimal()))
        for feature, column in zip(features, zip(*products, strict=True), strict=True)
    ]
    results = [_short(row, is_cut) for row in _columns([*products, totals])]
    lines = [
        f"{page.key_labels[key]}  {weight} × {_short(row, is_cut)}"
        for key, weight, row in zip(page.shown_keys, _column(shown), _columns(values), strict=True)
    ]
    before = cell_len(lines[0])
    for line, result in zip(lines, results, strict=False):
        yield Text(f"{line} = {result}")
    if page.other_keys:
        label = _("{n_other_keys} more", n_other_keys=len(page.other_keys))
        yield Text(f"{' ' * (before - cell_len(label))}{label} = {results[-2]}", style="dim")
    label = _("sum")
    yield Text(f"{' ' * (before - cell_len(label))}{label} = ").append(results[-1], style="bold cyan")


def _columns(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return rows of numbers with each column padded to one width."""
    return list(zip(*(_column(column) for column in zip(*rows, strict=True)), strict=True))


def _short(shown: Sequence[str], is_cut: bool) -> str:
    if not is_cut:
        return f"[ {'  '.join(shown)} ]"
    return f"[ {shown[0]}  … ]" if len(shown) == 1 else f"[ {shown[0]}  …  {shown[1]} ]"


def output(page: Page) -> Iterator[Line]:
    """Concat and W^O."""
    walk, query, w_o = page.walk, page.walk.query, page.walk.matrices.output
    yield from page.explain(texts.CONCAT)
    yield Text()
    for head in range(walk.n_heads):
        is_this = head == walk.head and walk.n_heads > 1
        part = walk.heads[query, slice_of(head, walk.weighted_sum.shape[1])]
        style = "bold cyan" if is_this else ""
        title = _("head {head}", head=head)
        name = set_cell_size(f"{'→' if is_this else ' '} {title}", 10)
        yield Text(f"{name}{vector(part)}", style=style)
    yield Text(f"  Concat  {vector(walk.heads[query])}")
    if not walk.has_output:
        yield from page.explain(texts.NO_OUTPUT)
        yield Text("  " + set_cell_size(_("output"), 8) + vector(walk.output[query]), style="bold")
        return
    yield Text()
    if page.is_small:
        yield from matrix("W^O", w_o)
    else:
        yield Text(f"W^O   {w_o.shape[0]} × {w_o.shape[1]}", style="bold")
    yield Text()
    yield from show_products(page, _("output"), walk.heads[query], w_o, walk.matrices.output_bias)
    yield Text()
    yield from page.explain(texts.HEAD_BY_HEAD)
    yield from calculable(lambda digits: _by_head(page, digits))


def _by_head(page: Page, digits: Digits) -> Iterator[Line]:
    walk = page.walk
    this, total = walk.contribution[walk.query], walk.output[walk.query]
    has_bias = walk.matrices.output_bias is not None
    others = _("other heads and bias") if has_bias else _("other heads")
    names = (_("head {head}", head=walk.head), others, _("output"))
    yield from show_sum(page, digits, names, [this, total - this], total)
