"""References of the chapter on norms: LayerNorm, RMSNorm, and BatchNorm with padding."""

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
    close,
)


def _rooted(spread: Array, epsilon: float, faults: Faults) -> Array:
    """√(spread + ε), and the usual ways to get it wrong."""
    if "epsilon-outside" in faults:
        return np.sqrt(spread) + epsilon
    if "no-epsilon" in faults:
        return np.sqrt(spread)
    if "epsilon-fixed" in faults:
        return np.sqrt(spread + 1e-5)
    if "epsilon-squared" in faults:
        return np.sqrt(spread + epsilon**2)
    if "not-rooted" in faults:
        return spread + epsilon
    return np.sqrt(spread + epsilon)


def layer_norm(x: Array, weight: Array, bias: Array, epsilon: float, *, faults: Faults = NO_FAULTS) -> Array:
    """LayerNorm per token, over its features."""
    axes: tuple[int, ...] = faults.pick(
        (-1,), over_positions=(-2,), over_batch=(0,), over_sample=(-2, -1), over_all=(0, 1, 2), over_tokens=(0, 1)
    )
    mean = x.mean(axes, keepdims=True)
    centered = x if "not-centered" in faults else x - mean
    spread = (x**2).mean(axes, keepdims=True) if "mean-of-squares" in faults else x.var(axes, keepdims=True)
    if "sample-variance" in faults:
        n = math.prod(x.shape[axis] for axis in axes)
        spread = spread * np.divide(n, n - 1)
    if "sum-of-squares" in faults:
        spread = ((x - mean) ** 2).sum(axes, keepdims=True)
    root = _rooted(spread, epsilon, faults)
    if "axis-lost" in faults:
        centered, root = x - x.mean(-1), np.sqrt(x.var(-1) + epsilon)
    if "axis-lost-twice" in faults:
        centered = x - x.mean(-1)
        root = np.sqrt((centered**2).mean(-1) + epsilon)
    normalized = centered if "not-divided" in faults else centered / root
    if "bias-first" in faults:
        return (normalized + bias) * weight
    if "weight-plus-one" in faults:
        weight = weight + 1
    scaled = normalized if "no-weight" in faults else normalized * weight
    if "bias-subtracted" in faults:
        return scaled - bias
    return scaled if "no-bias" in faults else scaled + bias


def layer_norm_cases(draw: Draw) -> Iterator[Inputs]:
    """Two features first; ε is large, so that its place shows."""
    for shape in ((1, 1, 2), (1, 2, 2), (2, 2, 2), (2, 1, 3), (2, 3, 4)):
        yield {
            "x": draw.numbers(*shape),
            "weight": draw.numbers(shape[-1]),
            "bias": draw.numbers(shape[-1]),
            "epsilon": 0.1,
        }
    yield {
        "x": np.array([[[0.5, 0.5]]]),
        "weight": np.array([1.5, 0.5]),
        "bias": np.array([0.2, -0.3]),
        "epsilon": 1e-5,
    }


def _change_other_token(inputs: Inputs) -> Inputs | None:
    x = inputs["x"].copy()
    if x.shape[1] < 2:
        return None
    x[:, -1] *= -2.5
    return {**inputs, "x": x}


def _others_unchanged(_inputs: Inputs, result: Array, other: Array) -> bool:
    return close(np.asarray(result)[:, :-1], np.asarray(other)[:, :-1])


def rms_norm(x: Array, weight: Array, epsilon: float, *, faults: Faults = NO_FAULTS) -> Array:
    """RMSNorm per token."""
    axes: tuple[int, ...] = faults.pick((-1,), over_positions=(-2,), over_sample=(-2, -1), over_all=(0, 1, 2))
    squares = (x**2).mean(axes, keepdims=True)
    if "variance" in faults:
        squares = x.var(axes, keepdims=True)
    if "sum-of-squares" in faults:
        squares = (x**2).sum(axes, keepdims=True)
    if "square-of-mean" in faults:
        squares = x.mean(axes, keepdims=True) ** 2
    if "mean-absolute" in faults:
        squares = np.abs(x).mean(axes, keepdims=True) ** 2
    root = _rooted(squares, epsilon, faults)
    if "maximum" in faults:
        root = np.abs(x).max(axes, keepdims=True) + epsilon
    centered = x - x.mean(axes, keepdims=True) if "centered" in faults else x
    normalized = centered * root if "multiplied" in faults else centered / root
    if "no-weight" in faults:
        return normalized
    return normalized * (weight + 1 if "weight-plus-one" in faults else weight)


def rms_norm_cases(draw: Draw) -> Iterator[Inputs]:
    """Two features first; ε is large, so that its place shows."""
    for shape in ((1, 1, 2), (1, 2, 2), (2, 2, 2), (2, 1, 3), (2, 3, 4)):
        yield {"x": draw.numbers(*shape), "weight": draw.numbers(shape[-1]), "epsilon": 0.1}
    yield {"x": np.array([[[0.0, 0.0]]]), "weight": np.array([1.5, 0.5]), "epsilon": 1e-5}


def batch_norm(
    x: Array, is_real: Array, weight: Array, bias: Array, epsilon: float, *, faults: Faults = NO_FAULTS
) -> Array:
    """BatchNorm per feature over all real tokens; padding gives 0."""
    real = is_real[:, :, None].astype(x.dtype)
    of_mean = np.ones_like(real) if faults & {"padding-counts", "padding-counts-in-mean"} else real
    of_spread = np.ones_like(real) if faults & {"padding-counts", "padding-counts-in-variance"} else real
    axes: tuple[int, ...] = faults.pick((0, 1), per_position=(0,), per_sample=(1,), per_token=(2,), over_all=(0, 1, 2))

    def mean_of(values: Array, counts: Array) -> Array:
        counts = np.broadcast_to(counts, values.shape)
        return (values * counts).sum(axes, keepdims=True) / counts.sum(axes, keepdims=True)

    mean = mean_of(x, of_mean)
    if "padding-is-zero-token" in faults:
        mean = (x * real).sum((0, 1), keepdims=True) / (x.shape[0] * x.shape[1])
    spread = mean_of((x - mean) ** 2, of_spread)
    if "sample-variance" in faults:
        spread = spread * real.sum() / (real.sum() - 1)
    normalized = (x if "not-centered" in faults else x - mean) / _rooted(spread, epsilon, faults)
    scaled = normalized if "no-weight" in faults else normalized * weight
    scaled = scaled if "no-bias" in faults else scaled + bias
    return scaled if "padding-kept" in faults else np.where(is_real[:, :, None], scaled, 0)


def batch_norm_cases(draw: Draw) -> Iterator[Inputs]:
    """Without padding first, then with some."""
    for is_real in (
        np.array([[True], [True]]),
        np.array([[True, True]]),
        np.array([[True, True], [True, True]]),
        np.array([[True, True], [True, False]]),
        np.array([[True, True, False]]),
        np.array([[True, True, True], [True, True, False], [True, True, False]]),
    ):
        for width in (1, 2) if is_real.size < 5 else (3,):
            yield {
                "x": draw.numbers(*is_real.shape, width),
                "is_real": is_real,
                "weight": draw.numbers(width),
                "bias": draw.numbers(width),
                "epsilon": 0.1,
            }
    yield {
        "x": np.array([[[0.5], [0.5]]]),
        "is_real": np.array([[True, True]]),
        "weight": np.array([1.5]),
        "bias": np.array([0.2]),
        "epsilon": 1e-5,
    }


def _change_padding(inputs: Inputs) -> Inputs | None:
    if inputs["is_real"].all():
        return None
    return {**inputs, "x": np.where(inputs["is_real"][:, :, None], inputs["x"], 7.0)}


def _same(_inputs: Inputs, result: Array, other: Array) -> bool:
    return close(result, other)


_OTHER_TOKENS = Property(_others_unchanged, _change_other_token)
REFERENCES = {
    "layer-norm": Reference(layer_norm, layer_norm_cases, {"finite": FINITE, "other-tokens": _OTHER_TOKENS}),
    "rms-norm": Reference(rms_norm, rms_norm_cases, {"finite": FINITE, "other-tokens": _OTHER_TOKENS}),
    "batch-norm": Reference(batch_norm, batch_norm_cases, {"padding": Property(_same, _change_padding)}),
}
