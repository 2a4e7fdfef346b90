"""The bootstrap (Efron, 1979): confidence intervals from items drawn with replacement.

All confidence intervals in manyheads use these draws. The seed is fixed, so the same number of items gives the same
draws: two systems scored on one test set are compared on the same resamples (Koehn, 2004).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.metrics.score import Score

N_RESAMPLES = 1000
Draw = NDArray[np.int64]  # [items]: how often each item is drawn
Sums = NDArray[np.float64]  # [..., columns]: counts summed over the texts of a test set or of a resample
Count = tuple[int, int, float]  # index of a text, column, amount

_SEED = 12345
_QUANTILES = (0.025, 0.975)


def resamples(n_items: int, n_resamples: int = N_RESAMPLES) -> Iterator[Draw]:
    """Yield resamples of `n_items` items, each as the number of times that every item is drawn."""
    rng = np.random.default_rng(_SEED)
    probabilities = np.full(n_items, 1 / n_items)
    for _ in range(n_resamples):
        yield rng.multinomial(n_items, probabilities)


def resample_matrix(n_items: int, n_resamples: int = N_RESAMPLES) -> NDArray[np.float64]:
    """Return the draws of `resamples` as one matrix [resamples, items], to multiply per-item counts with."""
    return np.stack(list(resamples(n_items, n_resamples))).astype(np.float64)


def confidence_interval(resampled: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the 95 % interval of statistics [resamples, ...]: the quantiles along the first axis."""
    low, high = np.quantile(resampled, _QUANTILES, axis=0)
    return low, high


@dataclass(frozen=True)
class ResampledSums:
    """Per-column sums of counts over a test set and over each of its resamples."""

    total: Sums  # [columns]
    drawn: Sums  # [resamples, columns]
    signature: str  # size of the test set and number of resamples

    def score(self, name: str, statistic: Callable[[Sums], Sums], *details: str) -> Score:
        """Return a statistic of the sums with its interval; `details` are added to the signature."""
        low, high = confidence_interval(statistic(self.drawn))
        return Score(name, float(statistic(self.total)), float(low), float(high), "|".join([self.signature, *details]))


def sum_resamples(
    counts: Iterable[Count], n_texts: int, n_columns: int, n_resamples: int = N_RESAMPLES, item: str = "n"
) -> ResampledSums:
    """Sum sparse counts by column over all texts and over each resample; `item` names the texts in signatures."""
    rows = list(counts)
    texts = np.array([text for text, _, _ in rows], dtype=np.int64)
    columns = np.array([column for _, column, _ in rows], dtype=np.int64)
    amounts = np.array([amount for _, _, amount in rows], dtype=np.float64)
    drawn = np.empty((n_resamples, n_columns))
    for index, draw in enumerate(resamples(n_texts, n_resamples)):
        # A dense matrix of texts × columns would not fit in memory for many labels: most counts are 0.
        drawn[index] = np.bincount(columns, weights=amounts * draw[texts], minlength=n_columns)
    total = np.asarray(np.bincount(columns, weights=amounts, minlength=n_columns), dtype=np.float64)
    return ResampledSums(total, drawn, f"{item}:{n_texts}|resamples:{n_resamples}")


def percentage(part: Sums, whole: Sums) -> Sums:
    """Return part / whole in percent; 0 where the whole is 0."""
    return 100 * np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def f1(correct: Sums, predicted: Sums, gold: Sums) -> Sums:
    """Return the harmonic mean of precision and recall in percent; 0 where nothing is gold or predicted."""
    return percentage(2 * correct, predicted + gold)
