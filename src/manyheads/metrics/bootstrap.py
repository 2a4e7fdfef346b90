"""The bootstrap: confidence intervals of scores, and resamples to compare two systems on.

The interval of a score comes from the Bayesian bootstrap (Rubin, 1981): the texts of a test set get random weights. If
all texts are right, any weights give the same score, and the interval would have no width. The lower limit is therefore
that of the test set with one more text which is wholly wrong, the upper limit that with one more which is perfect. For
a share of texts, such as accuracy, this is the interval of Clopper and Pearson (1934), up to the noise of the draws.
See decision 0024.

Two systems are compared on the same resamples, drawn with replacement (Efron, 1979; Koehn, 2004). All seeds are fixed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.metrics.score import Score

N_RESAMPLES = 1000
Draw = NDArray[np.int64]  # [items]: how often each item is drawn
Sums = NDArray[np.float64]  # [..., columns]: counts summed over the texts of a test set or of a resample
Count = tuple[int, int, float]  # index of a text, column, amount
Extremes = Callable[[Sums], Sequence[Sums]]  # counts of the mean text → of wholly wrong and of perfect texts

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
    matrix = np.empty((n_resamples, n_items))
    for row, draw in zip(matrix, resamples(n_items, n_resamples), strict=True):
        row[:] = draw
    return matrix


def confidence_interval(resampled: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the 95 % interval of statistics [resamples, ...]: the quantiles along the first axis."""
    low, high = np.quantile(resampled, _QUANTILES, axis=0)
    return low, high


def weightings(n_texts: int, n_resamples: int = N_RESAMPLES) -> Iterator[NDArray[np.float64]]:
    """Yield random weights of `n_texts` texts and of one more text, the last; they are 1 on average."""
    rng = np.random.default_rng(_SEED)
    for _ in range(n_resamples):
        weights = rng.standard_exponential(n_texts + 1)
        yield weights * ((n_texts + 1) / weights.sum())


@dataclass(frozen=True)
class ResampledSums:
    """Per-column sums of counts over a test set, and over random weightings of it with one more text."""

    total: Sums  # [columns]
    drawn: Sums  # [extremes, resamples, columns]: the additional text is wholly wrong, or perfect
    n_texts: int
    signature: str  # size of the test set and number of resamples

    def score(self, name: str, statistic: Callable[[Sums], Sums], *details: str) -> Score:
        """Return a statistic of the sums with its interval; `details` are added to the signature."""
        value = float(statistic(self.total))
        low, high = outer_interval(value, statistic(self.drawn))
        return Score(name, value, low, high, "|".join([self.signature, *details]), self.n_texts)


def outer_interval(value: float, resampled: Any) -> tuple[float, float]:
    """Return the 95 % interval from statistics [extremes, resamples] with a wrong or a perfect text added."""
    lows, highs = confidence_interval(np.swapaxes(np.asarray(resampled), 0, 1))
    return min(value, float(lows.min())), max(value, float(highs.max()))


def dense_sums(counts: NDArray[Any], extremes: Extremes, n_resamples: int = N_RESAMPLES) -> Sums:
    """Return the sums [extremes, resamples, columns] of counts [texts, columns]; see `ResampledSums`."""
    # All weights at once would take 8 kB for each text.
    drawn = [(weights[:-1] @ counts, weights[-1]) for weights in weightings(len(counts), n_resamples)]
    sums, last = (np.array(column) for column in zip(*drawn, strict=True))
    return _with_extremes(sums, last, extremes(counts.mean(0)))


def _with_extremes(drawn: Sums, weights: Sums, extremes: Sequence[Sums]) -> Sums:
    return np.stack([drawn + np.outer(weights, text) for text in extremes])


def sum_resamples(
    counts: Iterable[Count],
    n_texts: int,
    n_columns: int,
    extremes: Extremes,
    n_resamples: int = N_RESAMPLES,
    item: str = "n",
) -> ResampledSums:
    """Sum sparse counts by column over all texts and over each weighting; `item` names the texts in signatures."""
    rows = list(counts)
    texts = np.array([text for text, _, _ in rows], dtype=np.int64)
    columns = np.array([column for _, column, _ in rows], dtype=np.int64)
    amounts = np.array([amount for _, _, amount in rows], dtype=np.float64)
    drawn, last = np.empty((n_resamples, n_columns)), np.empty(n_resamples)
    for index, weights in enumerate(weightings(n_texts, n_resamples)):
        # A dense matrix of texts × columns would not fit in memory for many labels: most counts are 0.
        drawn[index] = np.bincount(columns, weights=amounts * weights[texts], minlength=n_columns)
        last[index] = weights[-1]
    total = np.asarray(np.bincount(columns, weights=amounts, minlength=n_columns), dtype=np.float64)
    drawn = _with_extremes(drawn, last, extremes(total / n_texts))
    return ResampledSums(total, drawn, n_texts, f"{item}:{n_texts}|resamples:{n_resamples}")


def percentage(part: Sums, whole: Sums) -> Sums:
    """Return part / whole in percent; 0 where the whole is 0."""
    return 100 * np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def f1(correct: Sums, predicted: Sums, gold: Sums) -> Sums:
    """Return the harmonic mean of precision and recall in percent; 0 where nothing is gold or predicted."""
    return percentage(2 * correct, predicted + gold)


def rate_extremes(amounts: Sequence[float], sizes: Sequence[float]) -> tuple[float, float]:
    """Return by which factor the rate of one more text may be higher or lower than the mean rate.

    No text is wholly wrong or perfect by a rate such as nats per character. The factors are those of the hardest and of
    the easiest text, but at most 2, and 2 where there is only one text.
    """
    total = sum(amounts) / sum(sizes)
    ratios = [amount / size / total for amount, size in zip(amounts, sizes, strict=True) if size and total]
    least = 2 ** (1 / max(1, len(ratios)))
    hard, easy = max([least, *ratios]), min([1 / least, *ratios])
    return min(hard, 2.0), max(easy, 0.5)


def f1_extremes(correct: Sums, predicted: Sums, gold: Sums) -> tuple[list[Sums], list[Sums]]:
    """Return (correct, predicted, gold) of a text whose predictions are all wrong, and of one where all are right."""
    right = (predicted + gold) / 2
    return [np.zeros_like(correct), predicted, gold], [right, right, right]
