"""References of the chapter on layers: feed-forward, residual and norm, encoder layer, decoder layer, whole model."""

import math
from collections.abc import Iterator

import numpy as np

from manyheads.learn.references.attention_references import attention_weights, softmax
from manyheads.learn.references.head_references import merge_heads, split_heads
from manyheads.learn.references.norm_references import layer_norm
from manyheads.learn.references.reference import (
    FINITE,
    NO_FAULTS,
    Array,
    Draw,
    Faults,
    Inputs,
    Property,
    Reference,
    close,
)

EPSILON = 1e-5
_EMPTY_ROWS = {"hidden-row-nan", "mask-finite", "mask-finite-added"}  # what a mask may do to a row that sees nothing


def _norm(x: Array, faults: Faults) -> Array:
    """LayerNorm with γ = 1 and β = 0."""
    width = x.shape[-1]
    chosen = Faults(faults & {"over-positions", "over-sample", "not-centered", "not-divided"})
    return layer_norm(x, np.ones(width, x.dtype), np.zeros(width, x.dtype), EPSILON, faults=chosen)


def feed_forward(x: Array, w_1: Array, b_1: Array, w_2: Array, b_2: Array, *, faults: Faults = NO_FAULTS) -> Array:
    """ReLU between two linear maps, at each position."""
    if "activation-first" in faults:
        x = np.maximum(x, 0)
    hidden = x @ w_1
    if "bias-after-activation" in faults:
        hidden = np.maximum(hidden, 0) + b_1
    else:
        hidden = hidden if "no-first-bias" in faults else hidden + b_1
        hidden = _activation(hidden, faults)
    result = hidden @ w_2
    result = result if "no-second-bias" in faults else result + b_2
    if faults & {"activation-last", "activation-twice"}:
        result = np.maximum(result, 0)
    return result + x if "residual" in faults else result


def _activation(x: Array, faults: Faults) -> Array:
    if faults & {"no-activation", "activation-last", "activation-first"}:
        return x
    if "gelu" in faults:
        return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    if "sigmoid" in faults:
        return 1 / (1 + np.exp(-x))
    if "tanh" in faults:
        return np.tanh(x)
    if "leaky" in faults:
        return np.where(x > 0, x, 0.01 * x)
    if "absolute" in faults:
        return np.abs(x)
    if "negative-part" in faults:
        return np.minimum(x, 0)
    if "silu" in faults:
        return x / (1 + np.exp(-x))
    return np.maximum(x, 0)


def feed_forward_cases(draw: Draw) -> Iterator[Inputs]:
    """One position of width 2 first."""
    for n_rows, n_positions, width, inner in ((1, 1, 2, 2), (1, 1, 2, 3), (1, 2, 2, 3), (1, 3, 2, 2), (2, 3, 3, 5)):
        yield {
            "x": draw.numbers(n_rows, n_positions, width),
            "w_1": draw.numbers(width, inner),
            "b_1": draw.numbers(inner, most=1),
            "w_2": draw.numbers(inner, width),
            "b_2": draw.numbers(width, most=1),
        }


def residual(x: Array, w: Array, placement: str, *, faults: Faults = NO_FAULTS) -> Array:
    """A sub-layer y ↦ y W with its residual connection and norm, post-norm or pre-norm."""
    if "placements-swapped" in faults:
        placement = "pre" if placement == "post" else "post"
    placement = faults.pick(placement, always_post="post", always_pre="pre")

    def add(left: Array, right: Array) -> Array:
        if "subtracted" in faults:
            return left - right
        return (left + right) * (0.5 if "mean" in faults else 1.0)

    if placement == "post":
        inner = x @ w
        if "post-no-norm" in faults:
            return add(x, inner)
        if "post-no-residual" in faults:
            return _norm(inner, faults)
        if "post-norm-of-sublayer" in faults:
            return add(x, _norm(inner, faults))
        if "post-residual-after-norm" in faults:
            return add(_norm(x, faults), inner)
        return _norm(add(x, inner), faults)
    normed = _norm(x, faults)
    inner = normed @ w
    if "pre-no-norm" in faults:
        return add(x, x @ w)
    if "pre-no-residual" in faults:
        return inner
    if "pre-residual-of-norm" in faults:
        return add(normed, inner)
    if "pre-norm-again" in faults:
        return _norm(add(x, inner), faults)
    return add(x, inner)


def residual_cases(draw: Draw) -> Iterator[Inputs]:
    """Width 3: with two features, a normed vector is always (1, −1) or (−1, 1)."""
    for placement in ("post", "pre"):
        yield {"x": draw.numbers(1, 1, 3), "w": draw.numbers(3, 3), "placement": placement}
        yield {"x": draw.numbers(1, 2, 3), "w": draw.numbers(3, 3), "placement": placement}
        yield {"x": draw.numbers(2, 2, 4), "w": draw.numbers(4, 4), "placement": placement}


def _attend(x: Array, y: Array, visible: Array, w: Array, n_heads: int, faults: Faults) -> Array:
    """Multi-head attention with the four matrices of w: W^Q, W^K, W^V and W^O."""
    q, k, v = (split_heads(part @ w[n], n_heads) for n, part in enumerate((x, y, y)))
    if "scale-by-model-width" in faults:
        q = q * math.sqrt(q.shape[-1] / x.shape[-1])
    merged = merge_heads(attention_weights(q, k, visible[:, None], faults=faults) @ v)
    return merged if "no-output-projection" in faults else merged @ w[3]


def encoder_layer(
    x: Array, is_real: Array, w: Array, n_heads: int, w_1: Array, w_2: Array, *, faults: Faults = NO_FAULTS
) -> Array:
    """Self-attention and feed-forward, each with residual and norm (post-norm, γ = 1, β = 0)."""
    visible = np.broadcast_to(is_real[:, None, :], (len(x), x.shape[1], x.shape[1]))
    if "causal" in faults:
        visible = np.tril(visible)
    if "mask-of-queries" in faults:
        visible = np.broadcast_to(is_real[:, :, None], visible.shape)

    def attend(y: Array) -> Array:
        return _attend(y, y, visible, w, n_heads, faults)

    def feed(y: Array) -> Array:
        inner = y @ w_1
        return (inner if "no-activation" in faults else np.maximum(inner, 0)) @ w_2

    if "pre-norm" in faults:
        x = x + attend(_norm(x, faults))
        return x + feed(_norm(x, faults))
    if "feed-forward-first" in faults:
        x = _norm(x + feed(x), faults)
        return _norm(x + attend(x), faults)
    if "parallel" in faults:
        return _norm(x + attend(x) + feed(x), faults)
    if "no-feed-forward" in faults:
        return _norm(x + attend(x), faults)
    first = attend(x) if "no-first-residual" in faults else x + attend(x)
    middle = first if "no-first-norm" in faults else _norm(first, faults)
    base = x if "second-residual-of-x" in faults else middle
    fed = feed(x) if "feed-forward-of-x" in faults else feed(middle)
    last = fed if "no-second-residual" in faults else base + fed
    return last if "no-second-norm" in faults else _norm(last, faults)


def encoder_cases(draw: Draw) -> Iterator[Inputs]:
    """One head of width 3 first; then heads, rows and padding."""
    for shape, heads, inner, padded in (
        ((1, 2, 3), 1, 2, False),
        ((1, 3, 3), 1, 3, False),
        ((1, 2, 3), 1, 3, True),
        ((1, 3, 4), 2, 3, False),
        ((2, 3, 4), 2, 5, True),
    ):
        is_real = np.ones(shape[:2], bool)
        is_real[-1, -1] = not padded
        width = shape[-1]
        yield {
            "x": draw.numbers(*shape),
            "is_real": is_real,
            "w": draw.numbers(4, width, width, most=1),
            "n_heads": heads,
            "w_1": draw.numbers(width, inner),
            "w_2": draw.numbers(inner, width),
        }


def _change_padding(inputs: Inputs) -> Inputs | None:
    if inputs["is_real"].all():
        return None
    return {**inputs, "x": np.where(inputs["is_real"][:, :, None], inputs["x"], 3.0)}


def _real_unchanged(inputs: Inputs, result: Array, other: Array) -> bool:
    return close(np.asarray(result)[inputs["is_real"]], np.asarray(other)[inputs["is_real"]])


def decoder_layer(
    y: Array,
    memory: Array,
    memory_is_real: Array,
    w_self: Array,
    w_cross: Array,
    n_heads: int,
    w_1: Array,
    w_2: Array,
    *,
    faults: Faults = NO_FAULTS,
) -> Array:
    """Causal self-attention, cross-attention and feed-forward, each with residual and norm (post-norm)."""
    n = y.shape[1]
    earlier = np.broadcast_to(np.tril(np.ones((n, n), bool), -1 if "no-diagonal" in faults else 0), (len(y), n, n))
    if "not-causal" in faults:
        earlier = np.ones_like(earlier)
    seen = np.broadcast_to(memory_is_real[:, None, :], (len(y), n, memory.shape[1]))
    if "memory-mask-ignored" in faults:
        seen = np.ones_like(seen)
    if "cross-causal" in faults:
        seen = np.tril(seen)
    inner = Faults(faults & {"no-scale", "scale-by-model-width", "over-queries", "no-output-projection", *_EMPTY_ROWS})
    w_cross = w_self if "cross-with-self-weights" in faults else w_cross

    def attend_self(x: Array) -> Array:
        return _attend(x, x, earlier, w_self, n_heads, inner)

    def attend_memory(x: Array) -> Array:
        if "cross-is-self" in faults:
            return _attend(x, x, earlier, w_cross, n_heads, inner)
        return _attend(x, memory, seen, w_cross, n_heads, inner)

    def feed(x: Array) -> Array:
        hidden = x @ w_1
        return (hidden if "no-activation" in faults else np.maximum(hidden, 0)) @ w_2

    if "pre-norm" in faults:
        y = y + attend_self(_norm(y, faults))
        y = y + attend_memory(_norm(y, faults))
        return y + feed(_norm(y, faults))
    steps = [attend_self, attend_memory, feed]
    if "cross-first" in faults:
        steps = [attend_memory, attend_self, feed]
    if "no-cross" in faults:
        steps = [attend_self, feed]
    for number, step in enumerate(steps):
        lacks = faults & {f"no-residual-{number + 1}"}
        y = step(y) if lacks else y + step(y)
        y = y if f"no-norm-{number + 1}" in faults else _norm(y, faults)
    return y


def decoder_cases(draw: Draw) -> Iterator[Inputs]:
    """One head of width 3 first; then heads, rows and padding."""
    for rows, length, memory, width, heads, inner, padded in (
        (1, 2, 2, 3, 1, 2, False),
        (1, 3, 2, 3, 1, 2, False),
        (1, 2, 3, 3, 1, 2, True),
        (1, 2, 2, 4, 2, 3, False),
        (1, 3, 2, 3, 1, 2, True),
        (2, 3, 4, 4, 2, 5, True),
    ):
        is_real = np.ones((rows, memory), bool)
        is_real[-1, -1] = not padded
        yield {
            "y": draw.numbers(rows, length, width),
            "memory": draw.numbers(rows, memory, width),
            "memory_is_real": is_real,
            "w_self": draw.numbers(4, width, width, most=1),
            "w_cross": draw.numbers(4, width, width, most=1),
            "n_heads": heads,
            "w_1": draw.numbers(width, inner),
            "w_2": draw.numbers(inner, width),
        }


def _change_last(inputs: Inputs) -> Inputs:
    y = inputs["y"].copy()
    y[:, -1] *= -1.5
    return {**inputs, "y": y}


def _earlier_unchanged(_inputs: Inputs, result: Array, other: Array) -> bool:
    return close(np.asarray(result)[:, :-1], np.asarray(other)[:, :-1])


def transformer(
    source: Array,
    target: Array,
    table: Array,
    positions: Array,
    w_encoder: Array,
    w_self: Array,
    w_cross: Array,
    w_1: Array,
    w_2: Array,
    *,
    faults: Faults = NO_FAULTS,
) -> Array:
    """Logits of an encoder–decoder with one layer each and one head; w_1[0] is the encoder's, w_1[1] the decoder's."""
    root = math.sqrt(table.shape[1])
    places = np.zeros_like(positions) if "no-positions" in faults else positions

    def embed(ids: Array, scale: float, rows: Array) -> Array:
        return table[ids] * scale + rows[: ids.shape[1]]

    factor = 1.0 if "no-scale-of-embeddings" in faults else root
    x = embed(source, factor, places)
    y = embed(target, factor, np.zeros_like(places) if "no-target-positions" in faults else places)
    if "target-first-position" in faults:
        y = table[target] * factor + positions[1 : target.shape[1] + 1]
    real = np.ones(source.shape, bool)
    encoder = {"encoder-causal": "causal", "encoder-no-feed-forward": "no-feed-forward"}
    switches = Faults(new for old, new in encoder.items() if old in faults)
    memory = encoder_layer(x, real, w_encoder, 1, w_1[0], w_2[0], faults=switches)
    if "encoder-skipped" in faults:
        memory = x
    if "memory-of-target" in faults:
        memory = encoder_layer(y, np.ones(target.shape, bool), w_encoder, 1, w_1[0], w_2[0])
        real = np.ones(target.shape, bool)
    decoder = {
        "decoder-not-causal": "not-causal",
        "decoder-no-cross": "no-cross",
        "decoder-cross-first": "cross-first",
        "decoder-no-diagonal": "no-diagonal",
    }
    switches = Faults({new for old, new in decoder.items() if old in faults} | (faults & _EMPTY_ROWS))
    n = 0 if "feed-forward-shared" in faults else 1
    hidden = decoder_layer(y, memory, real, w_self, w_cross, 1, w_1[n], w_2[n], faults=switches)
    logits = hidden @ table.T
    if "logits-scaled" in faults:
        logits = logits * root
    if "softmax" in faults:
        return softmax(logits)
    return logits[:, -1:] if "last-position" in faults else logits


def transformer_cases(draw: Draw) -> Iterator[Inputs]:
    """Three words of width 3 first."""
    for source, target, n_words, width, inner in (
        ([[0, 1]], [[1, 2]], 3, 3, 2),
        ([[0, 1, 2]], [[2, 1]], 3, 3, 2),
        ([[1, 0]], [[2, 0, 1]], 3, 3, 2),
        ([[0, 3, 2], [1, 2, 2]], [[3, 1], [0, 2]], 4, 5, 6),
    ):
        yield {
            "source": np.array(source),
            "target": np.array(target),
            "table": draw.numbers(n_words, width, most=1),
            "positions": draw.numbers(5, width, most=1),
            **{name: draw.numbers(4, width, width, most=1) for name in ("w_encoder", "w_self", "w_cross")},
            "w_1": draw.numbers(2, width, inner),
            "w_2": draw.numbers(2, inner, width),
        }


_CAUSAL = Property(_earlier_unchanged, _change_last)
REFERENCES = {
    "feed-forward": Reference(feed_forward, feed_forward_cases, {"finite": FINITE}),
    "residual": Reference(residual, residual_cases, {"finite": FINITE}),
    "encoder-layer": Reference(
        encoder_layer, encoder_cases, {"finite": FINITE, "padding": Property(_real_unchanged, _change_padding)}
    ),
    "decoder-layer": Reference(decoder_layer, decoder_cases, {"finite": FINITE, "causal": _CAUSAL}),
    "transformer": Reference(transformer, transformer_cases, {"finite": FINITE}),
}
