"""Corpus figures as functions of counts summed over texts, and the interval that drawing the texts again gives them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.metrics.corpus_scores import Score

Sums = NDArray[np.float64]  # [..., columns]: what the texts' counts come to, once or once for each resample
Count = tuple[int, int, float]  # a text's number, a column, how much it adds there

_SEED = 12345


@dataclass(frozen=True)
class Resampled:
    """The sums of a test set and of as many resamples of it as were drawn."""

    total: Sums
    drawn: Sums  # a row a resample
    signature: str  # how they were drawn

    def score(self, name: str, figure: Callable[[Sums], Sums], *how: str) -> Score:
        """The figure that a function of the sums gives, with its interval; `how` says more about the function."""
        low, high = np.quantile(figure(self.drawn), [0.025, 0.975])
        signature = "|".join([self.signature, *how])
        return Score(name, float(figure(self.total)), float(low), float(high), signature)


def resample(
    counts: Iterable[Count], n_texts: int, n_columns: int, n_resamples: int = 1000, what: str = "n"
) -> Resampled:
    """Sum the counts by column, for the texts as they are and for texts drawn again; `what` the texts are called."""
    rows = list(counts)
    texts = np.array([text for text, _, _ in rows], dtype=np.int64)
    columns = np.array([column for _, column, _ in rows], dtype=np.int64)
    amounts = np.array([amount for _, _, amount in rows], dtype=np.float64)
    rng = np.random.default_rng(_SEED)
    drawn = np.empty((n_resamples, n_columns))
    for number in range(n_resamples):
        # How often each text is drawn. Few counts of a text are not 0, so they are not kept as a matrix.
        often = np.bincount(rng.integers(n_texts, size=n_texts), minlength=n_texts)
        drawn[number] = np.bincount(columns, weights=amounts * often[texts], minlength=n_columns)
    total = np.asarray(np.bincount(columns, weights=amounts, minlength=n_columns), dtype=np.float64)
    return Resampled(total, drawn, f"{what}:{n_texts}|resamples:{n_resamples}")


def share(part: Sums, whole: Sums) -> Sums:
    """So many per cent of the whole; 0 of nothing."""
    return 100 * np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def f1(right: Sums, predicted: Sums, gold: Sums) -> Sums:
    """The harmonic mean of precision and recall, in per cent; 0 where there is nothing to find and nothing was."""
    return share(2 * right, predicted + gold)
