"""Steps of `manyheads walk` after the attention: residual sum and norm, norms compared, feed-forward."""

from collections.abc import Generator, Iterable, Iterator
from decimal import Decimal

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.messages import _
from manyheads.walks import step_texts as texts
from manyheads.walks.attention_walk import Floats
from manyheads.walks.checked_digits import RESULT, Digits, Term, aligned, calculable, gapped, joined
from manyheads.walks.norm_walk import NormalizedToken, NormComparison, NormWalk
from manyheads.walks.number_format import (
    Line,
    beside,
    ends,
    factor,
    folded,
    labels,
    matrix,
    number,
    numbers,
    shortened,
    vector,
    wrapped,
)
from manyheads.walks.sublayer_walk import FeedForwardWalk, SublayerWalk
from manyheads.walks.walk_page import Page, show_products, show_sum

_PAD = "<pad>"


def residual(page: Page) -> Iterator[Line]:
    """The residual sum of the attention and its norm."""
    sublayer = page.block.sublayer
    yield from page.explain(texts.RESIDUAL, texts.PLACEMENTS[sublayer.placement])
    if page.origin == "worked":
        yield from page.explain(texts.NORM_WORKED)
    yield Text()
    yield from show_sublayer(page, sublayer, page.walk.query, _("+ attention"), [])


def show_sublayer(
    page: Page, sublayer: SublayerWalk, position: int, branch: str, inside: Iterable[Line], *, is_explained: bool = True
) -> Iterator[Line]:
    """Yield what is inside a sublayer, the sum x + f and the norm of one position, in the order of the model.

    `branch` is the label of f, such as "+ attention".
    """
    norm, inside = list(show_norm(page, sublayer.norm, position, is_explained=is_explained)), list(inside)
    names = ("x", branch, _("= sum"))
    terms = (sublayer.input[position], sublayer.branch[position])
    added = calculable(lambda digits: show_sum(page, digits, names, terms, sublayer.residual[position]))
    parts = [norm, inside, added] if sublayer.placement == "pre" else [inside, added, norm]
    for number_of_part, part in enumerate(part for part in parts if part):
        yield from [Text(), *part] if number_of_part else part


def show_norm(page: Page, norm: NormWalk, position: int, *, is_explained: bool = True) -> Iterator[Line]:
    """Yield mean, variance and the normalized numbers of one position, then γ and β."""
    if is_explained:
        yield from page.explain(texts.NORM_KINDS.get(norm.kind, texts.UNKNOWN_NORM))
    if norm.mean is None or norm.variance is None or norm.normalized is None:
        yield Text(f"{norm.kind}  {vector(norm.output[position])}", style="bold cyan")
        return
    x, normalized = norm.input[position], norm.normalized[position]
    mean, variance = (np.broadcast_to(each, norm.input.shape)[position] for each in (norm.mean, norm.variance))

    def render(digits: Digits) -> Iterator[Line]:
        if norm.kind in ("layer", "rms"):
            center, spread = yield from _token_statistics(
                page, digits, x, float(mean[0]), is_centered=norm.kind == "layer"
            )
            centers, spreads = [center] * len(x), [spread] * len(x)
        else:
            centers, spreads = digits.each(mean), digits.each(variance)
        front, back = ends(len(x), 1, 1)
        for i in (*front, *back):
            text, value = normalization(digits.of(float(x[i])), centers[i], spreads[i], norm.epsilon)
            yield Text(f"n[{i}] = {text} = {digits.result(float(normalized[i]), value)}")

    yield from calculable(render)
    output = norm.output[position]
    if (norm.weight == 1).all() and (norm.bias is None or not norm.bias.any()):
        yield from page.explain(*([texts.PLAIN_NORM] if is_explained else []))
    else:
        yield from calculable(lambda digits: _scaled(digits, normalized, norm.weight, norm.bias, output))
    yield Text(_("output of the norm  {vector}", vector=vector(output)), style="bold cyan")


def _token_statistics(
    page: Page, digits: Digits, x: Floats, mean: float, *, is_centered: bool
) -> Generator[Line, None, tuple[str, str]]:
    """Yield μ = (a + b) / 2 and σ² = ((a - μ)² + (b - μ)²) / 2 of a token; return both as printed."""
    shown, center = digits.each(x), "0"
    # With as many decimals as the operands, the last one would often differ from that of the true value.
    fewer = max(RESULT, digits.places - 1)
    if is_centered:
        text, value = joined(gapped(digits, x, lambda i: (factor(shown[i]), Decimal(shown[i])), 1, 1))
        center = digits.result(mean, value / len(x), fewer)
        yield from folded("μ = ", f"({text}) / {len(x)} = {center}", page.width)

    def square(i: int) -> Term:
        inside = f"({shown[i]} - {factor(center)})" if is_centered else factor(shown[i])
        return f"{inside}²", (Decimal(shown[i]) - Decimal(center)) ** 2

    squares = (x - mean) ** 2
    text, value = joined(gapped(digits, squares, square, 1, 1))
    spread = digits.result(float(squares.mean()), value / len(x), fewer)
    name = "σ²" if is_centered else _("mean of squares")
    yield from folded(f"{name} = ", f"({text}) / {len(x)} = {spread}", page.width)
    return center, spread


def normalization(x: str, mean: str, variance: str, epsilon: float) -> Term:
    """Return (x - μ) / √(σ² + ε) of printed numbers."""
    value = (Decimal(x) - Decimal(mean)) / (Decimal(variance) + Decimal(str(epsilon))).sqrt()
    above = x if mean == "0" else f"({x} - {factor(mean)})"
    return f"{above} / √({variance} + {Decimal(str(epsilon)):f})", value


def _scaled(digits: Digits, normalized: Floats, weight: Floats, bias: Floats | None, output: Floats) -> Iterator[Line]:
    front, back = ends(len(output), 1, 1)
    for i in (*front, *back):
        n, w = (digits.of(float(each[i])) for each in (normalized, weight))
        name, text, value = f"n[{i}]×γ", f"{factor(n)}×{factor(w)}", Decimal(n) * Decimal(w)
        if bias is not None:
            b = digits.of(float(bias[i]))
            name, text, value = f"{name} + β", f"{text} + {factor(b)}", value + Decimal(b)
        yield Text(f"{name} = {text} = {digits.result(float(output[i]), value)}")


def norms(page: Page) -> Iterator[Line]:
    """Layer, batch and sample norm on the same token, with and without padding."""
    compared = page.block.norms
    names = page.walk.query_names
    n_short = len(compared.shorter)
    yield from page.explain(texts.COMPARE_NORMS)
    yield Text()
    if page.is_small:
        long = matrix(_("sentence 1"), compared.sentence, labels(names), None)
        padded = np.vstack([compared.shorter, np.zeros((compared.n_padding, compared.shorter.shape[1]))])
        rows = [*names[:n_short], *[_PAD] * compared.n_padding]
        short = matrix(_("sentence 2, padded"), padded, labels(rows), compared.position)
        yield from beside((long, short), page.width)
    else:
        text = _(
            "sentence 1: {n_tokens} tokens; sentence 2: its first {n_short} tokens and {n_padding} rows of padding",
            n_tokens=len(compared.sentence),
            n_short=n_short,
            n_padding=compared.n_padding,
        )
        yield from map(Text, wrapped(text, page.width))
    yield Text()
    yield from calculable(lambda digits: _compared(page, compared, digits))
    yield Text()
    yield from page.explain(texts.NORMS_SHOW, texts.PADDING_IS_ZERO)


def _compared(page: Page, compared: NormComparison, digits: Digits) -> Iterator[Line]:
    x = compared.shorter[compared.position]
    name = shortened(page.walk.query_names[compared.position])
    yield Text(f"{name}  {aligned([digits.each(x)], page.width - cell_len(name) - 2)[0]}", style="bold")
    for norm in compared.norms:
        yield Text()
        yield Text(str(texts.COMPARED[norm.kind]), style="bold")
        without, padded = (
            _case(digits, x, token, compared.epsilon) for token in (norm.without_padding, norm.with_padding)
        )
        rows = aligned([without[1], padded[1]], page.width - 20)
        cases = [(_("without padding"), without[0], rows[0])]
        if norm.shift:
            cases.append((_("with padding"), padded[0], rows[1]))
        width = max(cell_len(case[0]) for case in cases)
        for title, statistics, row in cases:
            yield Text(f"  {set_cell_size(title, width)}  {statistics}")
            yield Text(f"  {' ' * width}  ").append(row, style="cyan")
        if norm.shift:
            change = number(norm.shift)
            yield Text(_("  largest change: {change}", change=change), style="bold yellow")
        else:
            yield Text(_("  with padding: the same"), style="bold")


def _case(digits: Digits, x: Floats, token: NormalizedToken, epsilon: float) -> tuple[str, list[str]]:
    """Return μ = sum / count and σ² of the first number as printed, and the normalized numbers."""
    index = "[0]" if token.mean.size > 1 else ""
    total = digits.of(float(token.mean[0]) * token.count)
    center = digits.rounded(Decimal(total) / token.count)
    centers = [center] * len(x) if token.mean.size == 1 else [center, *digits.each(token.mean[1:])]
    spreads = digits.each(np.broadcast_to(token.variance, x.shape))
    front, back = ends(len(x), 3, 2)
    row = digits.each(token.normalized)  # numbers that are not shown need not agree
    for i in (*front, *back):
        _text, value = normalization(digits.of(float(x[i])), centers[i], spreads[i], epsilon)
        row[i] = digits.result(float(token.normalized[i]), value)
    return f"μ{index} = {total} / {token.count} = {center}   σ²{index} = {spreads[0]}", row


def feed_forward(page: Page) -> Iterator[Line]:
    """Both products of the feed-forward network, its activation, its residual sum and norm."""
    walk, sublayer = page.block.feed_forward, page.block.feed_forward_sublayer
    if walk is None or sublayer is None:
        yield from page.explain(texts.NO_FEED_FORWARD)
        return
    yield from page.explain(texts.FEED_FORWARD)
    if page.walk.attention.endswith("self") and page.block.name.startswith("decoder") and page.has_cross:
        yield from page.explain(texts.AFTER_CROSS)
    yield Text()
    position = page.walk.query
    inside = _network(page, walk, position)
    yield from show_sublayer(page, sublayer, position, _("+ feed-forward"), inside)


_ACTIVATED = {
    "relu": "ReLU(h)",
    "gelu": "GELU(h)",
    "gelu-tanh": "GELU(h)",
    "silu": "swish(h)",
    "swiglu": "swish(g)·h",
    "geglu": "GELU(g)·h",
    "geglu-tanh": "GELU(g)·h",
}


def _network(page: Page, walk: FeedForwardWalk, position: int) -> Iterator[Line]:
    x, hidden, activated = walk.input[position], walk.hidden[position], walk.activated[position]
    width, inner = walk.inner.shape
    if page.is_small:
        yield from beside((matrix("W_1", walk.inner), matrix("b_1", walk.inner_bias[None])), page.width)
    else:
        yield Text(f"W_1  {width} × {inner}    W_2  {inner} × {width}", style="bold")
    yield Text()
    yield from show_products(page, "h", x, walk.inner, walk.inner_bias)
    if walk.gate is not None and walk.gate_hidden is not None and walk.gate_bias is not None:
        yield from show_products(page, "g", x, walk.gate, walk.gate_bias)
        yield Text(f"g  {vector(walk.gate_hidden[position])}")
    yield Text()
    yield from page.explain(texts.ACTIVATIONS[walk.activation])
    name = _ACTIVATED[walk.activation]
    shown = aligned([numbers(hidden), numbers(activated)], page.width - 12)
    for label, row, style in (("h", shown[0], ""), (name, shown[1], "cyan")):
        yield Text(f"{label:<10}  {row}", style=style)
    if walk.activation == "relu":
        count = int((hidden <= 0).sum())
        yield Text(_("{count} of {inner} are cut to 0", count=count, inner=inner), style="dim")
    yield Text()
    if page.is_small:
        yield from beside((matrix("W_2", walk.outer), matrix("b_2", walk.outer_bias[None])), page.width)
        yield Text()
    yield from show_products(page, _("out"), activated, walk.outer, walk.outer_bias)
