"""References of the chapter on training: cross-entropy, label smoothing, warm-up schedule."""

import math
from collections.abc import Iterator

import numpy as np

from manyheads.learn.references.attention_references import softmax
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


def _log_probabilities(logits: Array, faults: Faults) -> Array:
    if "not-normalized" in faults:
        return logits
    if "probabilities" in faults:
        return softmax(logits)
    if "overflow" in faults:
        powers = np.exp(logits)
        return np.log(powers / powers.sum(-1, keepdims=True))
    if "over-positions" in faults:
        logits = logits.swapaxes(-1, -2)
        shifted = logits - logits.max(-1, keepdims=True)
        return (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))).swapaxes(-1, -2)
    shifted = logits - logits.max(-1, keepdims=True)
    found = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return found / math.log(2) if "bits" in faults else found


def _mean(losses: Array, is_real: Array, faults: Faults) -> Array:
    """The mean over real tokens, and other ways to sum up."""
    if "padding-counts" in faults:
        return losses.mean()
    if "padding-inverted" in faults:
        return np.divide(losses[~is_real].sum(), (~is_real).sum())
    losses = np.where(is_real, losses, 0)
    if "summed" in faults:
        return losses.sum()
    if "divided-by-all" in faults:
        return losses.mean()
    if "mean-of-rows" in faults:
        return (losses.sum(1) / is_real.sum(1)).mean()
    if "divided-by-rows" in faults:
        return losses.sum() / len(losses)
    if "not-averaged" in faults:
        return losses
    return losses.sum() / is_real.sum()


def cross_entropy(logits: Array, targets: Array, pad: int, *, faults: Faults = NO_FAULTS) -> Array:
    """The mean of −log p(target) over tokens that are not padding."""
    found = _log_probabilities(logits, faults)
    read = np.roll(targets, -1, axis=1) if "shifted" in faults else targets
    chosen = np.take_along_axis(found, read[:, :, None], axis=-1)[:, :, 0]
    if "maximum" in faults:
        chosen = found.max(-1)
    if "one-minus" in faults:
        chosen = np.log(1 - np.exp(chosen))
    losses = chosen if "sign" in faults else -chosen
    if "pad-is-zero" in faults:
        pad = 0
    loss = _mean(losses, targets != pad, faults)
    return np.exp(loss) if "perplexity" in faults else loss


def cross_entropy_cases(draw: Draw) -> Iterator[Inputs]:
    """Without padding first; large logits last."""
    yield {"logits": draw.numbers(1, 1, 2), "targets": np.array([[0]]), "pad": 1}
    yield {"logits": draw.numbers(1, 2, 2), "targets": np.array([[1, 1]]), "pad": 0}
    yield {"logits": draw.numbers(1, 2, 3), "targets": np.array([[0, 2]]), "pad": 2}
    yield {"logits": draw.numbers(2, 2, 3), "targets": np.array([[1, 2], [0, 2]]), "pad": 2}
    yield {"logits": draw.numbers(2, 3, 3), "targets": np.array([[1, 2, 1], [1, 0, 0]]), "pad": 0}
    yield {"logits": draw.numbers(2, 3, 5), "targets": np.array([[3, 1, 4], [0, 4, 4]]), "pad": 4}
    yield {"logits": np.array([[[2000.0, 1999.0]]]), "targets": np.array([[1]]), "pad": 0}


def _change_padding(inputs: Inputs) -> Inputs | None:
    is_pad = inputs["targets"] == inputs["pad"]
    if not is_pad.any():
        return None
    change = np.arange(inputs["logits"].shape[-1]) * 1.5
    return {**inputs, "logits": np.where(is_pad[:, :, None], inputs["logits"] + change, inputs["logits"])}


def _same(_inputs: Inputs, result: Array, other: Array) -> bool:
    return close(result, other)


def label_smoothing(logits: Array, targets: Array, epsilon: float, pad: int, *, faults: Faults = NO_FAULTS) -> Array:
    """Cross-entropy with the target 1 − ε for the right class and ε/(V−1) for each other, over real tokens."""
    n_classes = logits.shape[-1]
    found = _log_probabilities(logits, faults)
    right = faults.pick(1 - epsilon, right_is_one=1.0, swapped=epsilon, shared_by_all=1 - epsilon + epsilon / n_classes)
    other = faults.pick(
        epsilon / (n_classes - 1),
        shared_by_all=epsilon / n_classes,
        other_by_all=epsilon / n_classes,
        other_epsilon=epsilon,
        other_zero=0.0,
        swapped=(1 - epsilon) / (n_classes - 1),
        pad_left_out=epsilon / max(n_classes - 2, 1),
    )
    if "no-smoothing" in faults:
        right, other = 1.0, 0.0
    goal = np.full_like(found, other)
    np.put_along_axis(goal, targets[:, :, None], right, axis=-1)
    if "pad-left-out" in faults:
        goal[:, :, pad] = 0
    losses = -(goal * found).sum(-1)
    if "mean-over-classes" in faults:
        losses = losses / n_classes
    if "sign" in faults:
        losses = -losses
    if "entropy-subtracted" in faults:
        losses = losses + (goal * np.log(np.maximum(goal, 1e-30))).sum(-1)
    return _mean(losses, targets != pad, faults)


def smoothing_cases(draw: Draw) -> Iterator[Inputs]:
    """ε is large, so that it shows."""
    yield {"logits": draw.numbers(1, 1, 3), "targets": np.array([[0]]), "epsilon": 0.3, "pad": 1}
    yield {"logits": draw.numbers(1, 2, 3), "targets": np.array([[1, 1]]), "epsilon": 0.3, "pad": 0}
    yield {"logits": draw.numbers(1, 2, 3), "targets": np.array([[0, 2]]), "epsilon": 0.2, "pad": 2}
    yield {"logits": draw.numbers(2, 2, 4), "targets": np.array([[1, 2], [0, 2]]), "epsilon": 0.1, "pad": 2}
    yield {"logits": draw.numbers(2, 3, 5), "targets": np.array([[3, 1, 4], [0, 4, 4]]), "epsilon": 0.4, "pad": 4}
    yield {"logits": np.array([[[2000.0, 1999.0, 1998.0]]]), "targets": np.array([[1]]), "epsilon": 0.1, "pad": 0}


def schedule(step: int, width: int, warmup: int, *, faults: Faults = NO_FAULTS) -> float:
    """width^-½ · min(step^-½, step · warmup^-1.5)."""
    if "step-from-zero" in faults:
        step = step + 1
    falling = faults.pick(
        step**-0.5,
        falling_linearly=step**-1.0,
        falling_by_step=warmup**0.5 / step,
        constant=warmup**-0.5,
        falling_rooted=step**0.5,
    )
    rising = step * warmup ** faults.pick(-1.5, warmup_power_one=-1.0, warmup_power_half=-0.5, warmup_power_two=-2.0)
    if "warm-up-quadratic" in faults:
        rising = step**2 * warmup**-2.5
    rate = max(falling, rising) if "maximum" in faults else min(falling, rising)
    if "no-warm-up" in faults:
        rate = falling
    if "no-decay" in faults:
        rate = rising
    if "sum" in faults:
        rate = falling + rising
    if "decay-from-warmup" in faults and step > warmup:
        rate = warmup**-0.5 * (step - warmup) ** -0.5
    if "cut-off" in faults and step > warmup:
        rate = 0.0
    power = faults.pick(-0.5, no_width=0.0, width_rooted=0.5, width_inverse=-1.0)
    return float(width**power * rate)


def schedule_cases(_draw: Draw) -> Iterator[Inputs]:
    """Before, at and after the warm-up."""
    for step, width, warmup in (
        (1, 2, 4),
        (2, 4, 4),
        (4, 4, 4),
        (9, 4, 4),
        (5, 4, 4),
        (16, 16, 4),
        (3, 2, 9),
        (100, 4, 4),
    ):
        yield {"step": step, "width": width, "warmup": warmup}


_PADDING = Property(_same, _change_padding)
REFERENCES = {
    "cross-entropy": Reference(cross_entropy, cross_entropy_cases, {"finite": FINITE, "padding": _PADDING}),
    "label-smoothing": Reference(label_smoothing, smoothing_cases, {"finite": FINITE, "padding": _PADDING}),
    "schedule": Reference(schedule, schedule_cases, {"finite": FINITE}),
}
