"""`Tally`: a score kept as per-text counts, so that two models can be compared on the same resamples."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF

from manyheads.metrics.bootstrap import (
    N_RESAMPLES,
    Extremes,
    Sums,
    confidence_interval,
    dense_sums,
    f1,
    outer_interval,
    percentage,
    rate_extremes,
    resample_matrix,
)
from manyheads.metrics.corpus_scores import make_bleu, score_from_stats, sentence_stats, stats_extremes
from manyheads.metrics.score import Score, lower_is_better


@dataclass(frozen=True)
class Tally:
    """Counts of each text and the score as a function of their sums."""

    name: str
    counts: NDArray[np.float64]  # [texts, columns]
    statistic: Callable[[Sums], Sums]  # [..., columns] → [...]
    extremes: Extremes

    @property
    def value(self) -> float:
        """The score of all texts."""
        return float(self.statistic(self.counts.sum(0)))

    @property
    def goodness(self) -> float:
        """The score, negated where lower is better."""
        return -self.value if lower_is_better(self.name) else self.value

    def score(self, n_resamples: int = N_RESAMPLES) -> Score:
        """Return the score with its confidence interval."""
        n_texts = len(self.counts)
        low, high = outer_interval(self.value, self.statistic(dense_sums(self.counts, self.extremes, n_resamples)))
        return Score(self.name, self.value, low, high, f"n:{n_texts}|resamples:{n_resamples}", n_texts)

    def resampled(self, n_resamples: int = N_RESAMPLES) -> NDArray[np.float64]:
        """Return the score of each resample; tallies of the same texts use the same resamples."""
        draws = resample_matrix(len(self.counts), n_resamples)
        return np.asarray(self.statistic(draws @ self.counts), dtype=np.float64)


@dataclass(frozen=True)
class Change:
    """The change of a score between two models on the same texts, with its 95 % interval."""

    name: str
    value: float
    before: float
    difference: float  # value - before
    low: float
    high: float
    n_texts: int

    @property
    def cost(self) -> float:
        """How much worse the score is than before; negative where it is better."""
        return self.difference if lower_is_better(self.name) else -self.difference


def compare_tallies(tally: Tally, before: Tally, n_resamples: int = N_RESAMPLES) -> Change:
    """Return the change of a score with the interval of the paired difference."""
    if tally.name != before.name or len(tally.counts) != len(before.counts):
        raise ValueError(
            f"Cannot compare {tally.name} of {len(tally.counts)} texts with {before.name} of {len(before.counts)} "
            "texts: both must be the same score of the same texts."
        )
    low, high = confidence_interval(tally.resampled(n_resamples) - before.resampled(n_resamples))
    difference = tally.value - before.value
    return Change(tally.name, tally.value, before.value, difference, float(low), float(high), len(tally.counts))


def bleu_tally(texts: Sequence[str], references: Sequence[str], language: str) -> Tally:
    """Return the tally of BLEU as computed by `bleu`."""
    return overlap_tally("BLEU", texts, references, language)


def overlap_tally(name: str, texts: Sequence[str], references: Sequence[str], language: str) -> Tally:
    """Return the tally of BLEU or chrF."""
    metric: Metric = CHRF() if name == "chrF" else make_bleu(language, references)

    def statistic(sums: Sums) -> Sums:
        return np.apply_along_axis(partial(score_from_stats, metric), -1, sums)

    stats = sentence_stats(metric, texts, references).astype(np.float64)
    return Tally(name, stats, statistic, partial(stats_extremes, metric))


def share_tally(name: str, part: Sequence[float], whole: Sequence[float]) -> Tally:
    """Return the tally of a percentage, such as correct answers of all answers."""
    return Tally(
        name,
        np.array([part, whole], np.float64).T,
        lambda sums: percentage(sums[..., 0], sums[..., 1]),
        lambda mean: (np.array([0.0, mean[1]]), np.array([mean[1], mean[1]])),
    )


def rate_tally(name: str, amounts: Sequence[float], sizes: Sequence[float]) -> Tally:
    """Return the tally of a rate, such as nats per character."""
    factors = rate_extremes(amounts, sizes)
    return Tally(
        name,
        np.array([amounts, sizes], np.float64).T,
        lambda sums: np.asarray(sums[..., 0] / sums[..., 1]),
        lambda mean: [mean * [factor, 1.0] for factor in factors],
    )


def f1_tally(name: str, gold: Sequence[AbstractSet[object]], predicted: Sequence[AbstractSet[object]]) -> Tally:
    """Return the tally of micro-averaged F1 over sets, one of each text."""
    pairs = zip(gold, predicted, strict=True)
    counts = np.array([(len(true & found), len(found), len(true)) for true, found in pairs], np.float64)
    return Tally(
        name,
        counts,
        lambda sums: f1(sums[..., 0], sums[..., 1], sums[..., 2]),
        lambda mean: (np.array([0.0, *mean[1:]]), np.full(3, mean[1:].mean())),
    )
