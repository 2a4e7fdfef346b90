"""References of the chapter on attention: softmax, masks, scaled dot-product attention and its gradient."""

import math
from collections.abc import Iterator

import numpy as np

from manyheads.learn.references.reference import (
    FINITE,
    NO_FAULTS,
    Array,
    Draw,
    Faults,
    Inputs,
    Property,
    Reference,
    unchanged,
)


def softmax(x: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """Softmax over the last axis."""
    axis = faults.pick(-1, over_rows=0)
    over = None if "over-all" in faults else axis
    if "sigmoid" in faults:
        return 1 / (1 + np.exp(-x))
    if "hard-maximum" in faults:
        return (x == x.max(axis, keepdims=True)).astype(x.dtype)
    shift = x.max(over, keepdims=True)
    shift = faults.pick(
        shift,
        no_shift=np.zeros_like(shift),
        shift_by_minimum=x.min(over, keepdims=True),
        shift_by_global_maximum=x.max(keepdims=True),
        shift_by_absolute_maximum=np.abs(x).max(over, keepdims=True),
        shift_added=-shift,
    )
    if "maximum-loses-axis" in faults:
        shift = x.max(-1)
    shifted = np.clip(x, -10, 10) if "clipped" in faults else x - shift
    if "negated" in faults:
        shifted = -(x - x.min(over, keepdims=True))
    powers = x if "no-exponential" in faults else np.exp2(shifted) if "base-two" in faults else np.exp(shifted)
    total = powers.sum(over, keepdims=True)
    total = faults.pick(
        total,
        not_divided=np.ones_like(total),
        divided_by_norm=np.sqrt((powers**2).sum(over, keepdims=True)),
        divided_by_count=np.full_like(total, x.shape[-1]),
    )
    weights: Array = powers / (powers.sum(-1) if "sum-loses-axis" in faults else total)
    if "softmax-twice" in faults:
        return softmax(weights)
    return np.log(weights) if "logarithm" in faults else weights


def softmax_cases(draw: Draw) -> Iterator[Inputs]:
    """Small numbers, then numbers that overflow in one way or the other."""
    yield {"x": np.array([[1.0, 2.0]])}
    yield {"x": np.array([[0.5, -0.3], [-1.2, 0.8]])}
    yield {"x": draw.numbers(3, 2)}
    yield {"x": draw.numbers(2, 3)}
    for row in ([2000.0, 0.0], [-2000.0, -2000.0], [60.0, 59.0], [450.0, 449.0], [0.0, -2000.0], [-60.0, -59.0]):
        yield {"x": np.array([row])}
    yield {"x": np.array([[0.0, 1.0], [-2000.0, -2001.0]])}
    yield {"x": np.array([[30.0, 20.0], [1.0, 15.0]])}
    yield {"x": draw.numbers(3, 4, most=5)}


def sums_to_one(_inputs: Inputs, result: Array, _other: Array) -> bool:
    """Whether every row sums to 1."""
    total = np.asarray(result).sum(-1)
    return bool(np.allclose(total, 1, atol=1e-3))


def attention_weights(q: Array, k: Array, visible: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """The weights of scaled dot-product attention; the mistakes of scale, mask and softmax."""
    width = q.shape[-1]
    root = math.sqrt(width)
    products = k @ np.swapaxes(q, -1, -2) if "scores-transposed" in faults else q @ np.swapaxes(k, -1, -2)
    if "cosine" in faults:
        norms = np.linalg.norm(q, axis=-1, keepdims=True) * np.swapaxes(
            np.linalg.norm(k, axis=-1, keepdims=True), -1, -2
        )
        products = products / norms
    divisor = faults.pick(
        root,
        no_scale=1.0,
        scale_by_width=float(width),
        scale_multiplied=1 / root,
        scale_by_keys=math.sqrt(k.shape[-2]),
        scale_by_queries=math.sqrt(q.shape[-2]),
        scale_after_softmax=1.0,
        scale_fourth_root=math.sqrt(root),
    )
    scores = products / divisor
    hidden = ~visible
    if "mask-inverted" in faults:
        hidden = ~hidden
    if "mask-transposed" in faults:
        hidden = np.swapaxes(hidden, -1, -2)
    is_masked = not faults & {"mask-ignored", "mask-after-softmax"}
    fill = faults.pick(-np.inf, mask_finite=-1e9, mask_zero=0.0, mask_minus_one=-1.0, mask_plus_infinity=np.inf)
    if "mask-added" in faults:
        scores = scores + ~hidden
    elif "mask-finite-added" in faults:
        scores = scores + np.where(hidden, -1e4, 0).astype(scores.dtype)
    elif is_masked:
        scores = np.where(hidden, fill, scores)
    if "no-softmax" in faults:
        return np.where(hidden, 0, products / divisor)
    axis = faults.pick(-1, over_queries=-2, over_heads=-3)
    over: int | tuple[int, int] = (-2, -1) if "over-all" in faults else axis
    shift = scores.max(over, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(shift), shift, 0 if "hidden-row-nan" not in faults else shift))
    total = powers.sum(over, keepdims=True)
    if "sum-loses-axis" in faults:
        total = powers.sum(-1)
    weights: Array = powers / (total if "hidden-row-nan" in faults else np.where(total == 0, 1, total))
    if "softmax-twice" in faults:
        weights = np.exp(weights) / np.exp(weights).sum(-1, keepdims=True)
    if "mask-after-softmax" in faults:
        weights = np.where(hidden, 0, weights)
    return weights / root if "scale-after-softmax" in faults else weights


def attention(q: Array, k: Array, v: Array, visible: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """Scaled dot-product attention."""
    if "scale-by-value-width" in faults:
        q = q * math.sqrt(q.shape[-1] / v.shape[-1])
    weights = attention_weights(q, k, visible, faults=faults)
    if "weights-transposed" in faults:
        weights = np.swapaxes(weights, -1, -2)
    return weights @ (k if "keys-as-values" in faults else v)


def attention_cases(draw: Draw) -> Iterator[Inputs]:
    """From 2 queries and 2 keys of width 2; widths and lengths differ in later ones, and a row sees nothing."""

    def case(n_queries: int, n_keys: int, width: int, value_width: int, visible: Array) -> Inputs:
        return {
            "q": draw.numbers(n_queries, width),
            "k": draw.numbers(n_keys, width),
            "v": draw.numbers(n_keys, value_width),
            "visible": visible,
        }

    yield case(2, 2, 2, 2, np.ones((2, 2), bool))
    yield case(2, 2, 2, 2, np.array([[True, False], [True, True]]))
    yield case(2, 2, 2, 2, np.array([[True, True], [False, False]]))
    yield case(2, 3, 2, 2, np.ones((2, 3), bool))
    yield case(3, 2, 2, 1, np.ones((3, 2), bool))
    yield case(3, 3, 2, 2, np.tril(np.ones((3, 3), bool)))
    yield case(2, 3, 2, 3, np.array([[True, False, True], [False, True, True]]))
    yield case(3, 3, 3, 2, np.ones((3, 3), bool))
    yield case(3, 4, 5, 2, draw.mask(3, 4))
    yield case(4, 4, 4, 3, np.tril(np.ones((4, 4), bool)))


def _within_values(inputs: Inputs, result: Array, _other: Array) -> bool:
    """Whether a result lies between the least and the greatest value, or is 0 where nothing is seen."""
    result = np.asarray(result)
    least, most = inputs["v"].min(0), inputs["v"].max(0)
    is_zero = ~inputs["visible"].any(-1)[:, None]
    return result.shape == (len(inputs["q"]), inputs["v"].shape[-1]) and bool(
        ((result >= least - 1e-3) & (result <= most + 1e-3) | is_zero).all()
    )


def _empty_row_is_zero(inputs: Inputs, result: Array, _other: Array) -> bool:
    return bool((np.asarray(result)[~inputs["visible"].any(-1)] == 0).all())


def padding_mask(lengths: list[int], n_positions: int, *, faults: Faults = NO_FAULTS) -> Array:
    """(B, 1, N): which positions of each row are real."""
    limits = np.array(lengths)
    limits = faults.pick(
        limits,
        one_more=limits + 1,
        one_less=limits - 1,
        first_length=np.full_like(limits, limits[0]),
        longest_length=np.full_like(limits, limits.max()),
        shortest_length=np.full_like(limits, limits.min()),
        all_visible=np.full_like(limits, n_positions),
    )
    positions = np.arange(n_positions)
    if "left-aligned" in faults:
        positions = positions[::-1]
    is_real = positions < limits[:, None]
    if "skips-first" in faults:
        is_real = is_real & (positions > 0)
    if "inverted" in faults:
        is_real = ~is_real
    if "no-axis" in faults:
        return is_real
    if "axis-last" in faults:
        return is_real[:, :, None]
    if "axis-first" in faults:
        return is_real[None]
    if "square" in faults:
        return is_real[:, :, None] & is_real[:, None, :]
    return is_real[:, None, :]


def padding_mask_cases(_draw: Draw) -> Iterator[Inputs]:
    """Rows of one and two positions first."""
    for lengths, n_positions in (([1, 2], 2), ([2, 1], 3), ([1], 3), ([1, 3, 2], 3), ([2, 2], 3), ([4, 1, 3], 5)):
        yield {"lengths": lengths, "n_positions": n_positions}


def causal_mask(is_real: Array, n_queries: int, *, faults: Faults = NO_FAULTS) -> Array:
    """(B, Q, K): real keys up to the query, for queries that are the last positions of the row."""
    n_keys = is_real.shape[1]
    offset = 0 if "offset-missing" in faults else n_keys - n_queries
    offset += faults.pick(0, no_diagonal=-1, one_ahead=1)
    square = np.ones((n_queries, n_keys), bool)
    earlier = np.tril(square, offset)
    if "future" in faults:
        earlier = np.triu(square, offset)
    if "not-causal" in faults:
        earlier = square
    if "two-positions" in faults:
        earlier = earlier & np.triu(square, offset - 1)
    if "only-itself" in faults:
        earlier = earlier & np.triu(square, offset)
    real = is_real[:, None, :]
    if "padding-inverted" in faults:
        real = ~real
    if "padding-ignored" in faults:
        real = np.ones_like(real)
    if "padding-first-row" in faults:
        real = np.repeat(real[:1], len(real), axis=0)
    of_queries = is_real[:, n_keys - n_queries :, None]
    if "padding-of-queries" in faults:
        real = np.broadcast_to(of_queries, (len(is_real), n_queries, n_keys))
    if "padding-of-both" in faults:
        real = real & of_queries
    visible = earlier | real if "either" in faults else earlier & real
    if "inverted" in faults:
        visible = ~visible
    return visible.swapaxes(1, 2) if "transposed" in faults else visible


def causal_mask_cases(draw: Draw) -> Iterator[Inputs]:
    """Two positions without padding first; then padding, then fewer queries than keys."""
    real = np.array
    yield {"is_real": real([[True, True]]), "n_queries": 2}
    yield {"is_real": real([[True, True, True]]), "n_queries": 3}
    yield {"is_real": real([[True, True], [True, False]]), "n_queries": 2}
    yield {"is_real": real([[True, True, False]]), "n_queries": 3}
    yield {"is_real": real([[True, True, True]]), "n_queries": 1}
    yield {"is_real": real([[False, True, True], [True, True, False]]), "n_queries": 2}
    yield {"is_real": draw.mask(3, 5), "n_queries": 3}


def attention_backward(
    q: Array, k: Array, v: Array, gradient: Array, *, faults: Faults = NO_FAULTS
) -> tuple[Array, ...]:
    """Gradients of q, k and v for the gradient of the output."""
    root = math.sqrt(q.shape[-1])
    scale = 1.0 if faults & {"forward-no-scale", "no-scale-at-all"} else root
    weights = softmax(q @ k.T / scale)
    of_values = weights.T @ gradient
    if "value-weights-not-transposed" in faults:
        of_values = weights @ gradient
    if "value-by-scores" in faults:
        of_values = (q @ k.T / root).T @ gradient
    of_weights = gradient @ (v if "values-not-transposed" in faults else v.T)
    product = weights * of_weights
    inner = product.sum(0 if "sum-over-queries" in faults else -1, keepdims=True)
    of_scores = product - weights * inner
    if "no-row-sum" in faults:
        of_scores = product
    if "no-softmax" in faults:
        of_scores = of_weights
    if "diagonal-only" in faults:
        of_scores = of_weights * weights * (1 - weights)
    if "sum-not-weighted" in faults:
        of_scores = product - inner
    if "mean-for-sum" in faults:
        of_scores = product - weights * product.mean(-1, keepdims=True)
    if "sign" in faults:
        of_scores = -of_scores
    divisor = faults.pick(root, no_scale=1.0, no_scale_at_all=1.0, scale_twice=root**2)
    of_scores = of_scores / divisor
    of_queries, of_keys = of_scores @ k, of_scores.T @ q
    if "keys-not-transposed" in faults:
        of_keys = of_scores @ q
    if "queries-transposed" in faults:
        of_queries = of_scores.T @ k
    if "sources-swapped" in faults:
        of_queries, of_keys = of_scores @ q, of_scores.T @ k
    if "order" in faults:
        return of_keys, of_queries, of_values
    return of_queries, of_keys, of_values


def backward_cases(draw: Draw) -> Iterator[Inputs]:
    """Square ones first, then lengths and widths that differ."""
    for n_queries, n_keys, width, value_width in ((2, 2, 2, 2), (1, 2, 2, 2), (2, 3, 2, 2), (3, 2, 2, 1), (3, 4, 5, 2)):
        yield {
            "q": draw.numbers(n_queries, width),
            "k": draw.numbers(n_keys, width),
            "v": draw.numbers(n_keys, value_width),
            "gradient": draw.numbers(n_queries, value_width),
        }


REFERENCES = {
    "padding-mask": Reference(padding_mask, padding_mask_cases),
    "causal-mask": Reference(causal_mask, causal_mask_cases),
    "attention-backward": Reference(attention_backward, backward_cases, {"finite": FINITE}),
    "softmax": Reference(
        softmax,
        softmax_cases,
        {
            "finite": FINITE,
            "sums-to-one": Property(sums_to_one),
            "shift": Property(unchanged(lambda _inputs, result: result), lambda inputs: {"x": inputs["x"] + 3.0}),
        },
    ),
    "attention": Reference(
        attention,
        attention_cases,
        {
            "finite": FINITE,
            "empty-row": Property(_empty_row_is_zero),
            "mean": Property(_within_values),
        },
    ),
}
