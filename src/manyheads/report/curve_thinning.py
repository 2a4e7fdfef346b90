"""Long curves made short enough to draw, without losing their spikes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_POINTS = 1000  # more than a curve has pixels


@dataclass(frozen=True)
class Downsampled:
    """The mean, the least and the most of each bucket of a curve; not a number where a bucket holds none."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def bucket_starts(n_values: int, n_points: int = _POINTS) -> NDArray[np.intp]:
    """Where each of at most `n_points` buckets of nearly equal size begins."""
    return np.unique(np.arange(min(n_values, n_points)) * n_values // max(1, min(n_values, n_points)))


def downsample(values: Sequence[float], starts: NDArray[np.intp]) -> Downsampled:
    """A curve by buckets; what is not a finite number is left out of them."""
    if not len(starts):
        return Downsampled(*(np.empty(0) for _ in range(3)))
    known = np.array(values, dtype=np.float64)
    known[~np.isfinite(known)] = np.nan
    is_known = np.isfinite(known)
    counts = np.add.reduceat(is_known, starts, dtype=np.float64)
    sums = np.add.reduceat(np.where(is_known, known, 0.0), starts)
    means = np.divide(sums, counts, out=np.full(len(starts), np.nan), where=counts > 0)
    return Downsampled(means, np.fmin.reduceat(known, starts), np.fmax.reduceat(known, starts))


def last_of_each(values: Sequence[float], starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """The last value of each bucket."""
    return np.array(values, dtype=np.float64)[np.append(starts[1:], len(values)) - 1] if len(starts) else np.empty(0)
