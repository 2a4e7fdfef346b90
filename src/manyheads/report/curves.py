"""The curves of a page as JSON: long ones are downsampled without losing their spikes."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.messages import Message
from manyheads.report.history import History

_MAX_POINTS = 1000  # more than a curve has pixels
_TEXTS = {  # of the script, which fills in their fields
    "step": Message("step {value}"),
    "minute": Message("{value} min"),
    "best": Message("best {value}"),
    "range": Message("{title}: from {from} to {to}"),
    "empty": Message("No steps yet"),
    "stale": Message("Not updated for {minutes} min. The run may have stopped, or a long stage is in progress."),
}


@dataclass(frozen=True)
class Downsampled:
    """Mean, minimum and maximum of each bucket of a curve; NaN where a bucket has no finite value."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def curves_json(history: History) -> str:
    """Return the data that the script draws, as JSON that cannot end the script element around it."""
    steps, best = history.steps, history.best
    starts = bucket_starts(len(steps))
    curves: dict[str, object] = {}
    for name in ("loss", "rate", "norm", "speed"):
        downsampled = downsample(getattr(steps, name), starts)
        curves[name] = [_rounded(part) for part in (downsampled.mean, downsampled.low, downsampled.high)]
    comparable = [validation for validation in history.validations if best and validation.metric == best.metric]
    data = {
        "step": _rounded(_last_of_each(steps.step, starts), digits=12),
        "minute": _rounded(_last_of_each(steps.minute, starts)),
        "curves": curves,
        "validations": [
            [validation.step, round(validation.minute, 4), round(validation.score, 3)] for validation in comparable
        ],
        "metric": best.metric if best else "",
        "best": comparable.index(best) if best else -1,
        "texts": {name: message.by_language() for name, message in _TEXTS.items()},
    }
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def bucket_starts(n_values: int, n_points: int = _MAX_POINTS) -> NDArray[np.intp]:
    """Return where each of at most `n_points` buckets of nearly equal size starts."""
    return np.unique(np.arange(min(n_values, n_points)) * n_values // max(1, min(n_values, n_points)))


def downsample(values: Sequence[float], starts: NDArray[np.intp]) -> Downsampled:
    """Return a curve by buckets; values that are not finite are left out."""
    if not len(starts):
        return Downsampled(*(np.empty(0) for _ in range(3)))
    finite = np.array(values, dtype=np.float64)
    finite[~np.isfinite(finite)] = np.nan
    is_finite = np.isfinite(finite)
    counts = np.add.reduceat(is_finite, starts, dtype=np.float64)
    sums = np.add.reduceat(np.where(is_finite, finite, 0.0), starts)
    means = np.divide(sums, counts, out=np.full(len(starts), np.nan), where=counts > 0)
    return Downsampled(means, np.fmin.reduceat(finite, starts), np.fmax.reduceat(finite, starts))


def _last_of_each(values: Sequence[float], starts: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)[np.append(starts[1:], len(values)) - 1] if len(starts) else np.empty(0)


def _rounded(values: NDArray[np.float64], digits: int = 5) -> list[float | None]:
    numbers = (float(f"{value:.{digits}g}") for value in values.tolist())
    return [(int(x) if x.is_integer() else x) if math.isfinite(x) else None for x in numbers]
