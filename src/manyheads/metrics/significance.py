"""Significance of the difference between two systems: two paired tests on the same test set.

Paired bootstrap resampling (Koehn, 2004) draws sentences with replacement, the same ones for both systems, and counts
how often the better system loses. Approximate randomization (Noreen, 1989) swaps the outputs of random sentences
between the two systems and counts how often the difference is at least as large as the observed one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF

from manyheads.metrics.bootstrap import N_RESAMPLES, confidence_interval, resamples
from manyheads.metrics.corpus_scores import (
    TOKENIZED_BLEU,
    Stats,
    make_bleu,
    make_tokenized_bleu,
    score_from_stats,
    sentence_stats,
)

_SEED = 12345


@dataclass(frozen=True)
class Difference:
    """The difference between two systems in one metric.

    95 % of resamples of the test set have a difference between low and high. Both p values are two-sided. At 0.05 or
    above, this test set does not separate the two systems.
    """

    name: str
    value: float  # of the evaluated system
    other: float  # of the system it is compared with
    difference: float  # value - other
    low: float
    high: float
    p_bootstrap: float
    p_randomization: float
    signature: str


def compare(
    hypotheses: Sequence[str],
    other: Sequence[str],
    references: Sequence[str],
    language: str = "",
    *,
    tokenized: bool = False,
    n_resamples: int = N_RESAMPLES,
    n_trials: int = 10_000,
) -> list[Difference]:
    """Compare two systems' outputs for the same sentences by BLEU and chrF; `tokenized` adds `tokenized_bleu`."""
    if not len(hypotheses) == len(other) == len(references):
        raise ValueError(
            f"{len(hypotheses)}, {len(other)} and {len(references)} sentences cannot be compared in pairs."
        )
    metrics = {"BLEU": make_bleu(language, references), "chrF": CHRF()}
    if tokenized:
        metrics[TOKENIZED_BLEU] = make_tokenized_bleu()
    return [
        _compare(
            name,
            metric,
            sentence_stats(metric, hypotheses, references),
            sentence_stats(metric, other, references),
            n_resamples,
            n_trials,
        )
        for name, metric in metrics.items()
    ]


def _compare(name: str, metric: Metric, ours: Stats, theirs: Stats, n_resamples: int, n_trials: int) -> Difference:
    value, other_value = score_from_stats(metric, ours.sum(0)), score_from_stats(metric, theirs.sum(0))
    difference = value - other_value
    resampled = _resampled_differences(metric, ours, theirs, n_resamples)
    shuffled = _shuffled_differences(metric, ours, theirs, n_trials)
    low, high = confidence_interval(resampled)
    n_reversed = np.sum(resampled * np.sign(difference) <= 0)
    # The tolerance keeps rounding errors from separating a shuffle that changes nothing from the observed outputs.
    n_as_large = np.sum(np.abs(shuffled) >= abs(difference) - 1e-9)
    return Difference(
        name=name,
        value=value,
        other=other_value,
        difference=difference,
        low=float(low),
        high=float(high),
        # The observed outputs count as one more draw, so that p is never 0.
        p_bootstrap=min(1.0, 2 * float(n_reversed + 1) / (n_resamples + 1)),
        p_randomization=float(n_as_large + 1) / (n_trials + 1),
        signature=str(metric.get_signature()),
    )


def _resampled_differences(metric: Metric, ours: Stats, theirs: Stats, n_resamples: int) -> NDArray[np.float64]:
    return np.array(
        [
            score_from_stats(metric, draw @ ours) - score_from_stats(metric, draw @ theirs)
            for draw in resamples(len(ours), n_resamples)
        ]
    )


def _shuffled_differences(metric: Metric, ours: Stats, theirs: Stats, n_trials: int) -> NDArray[np.float64]:
    rng, total, lead = np.random.default_rng(_SEED), ours.sum(0) + theirs.sum(0), ours - theirs
    # Swapping sentences moves their lead from one sum to the other.
    sums = (ours.sum(0) - rng.integers(2, size=len(ours)) @ lead for _ in range(n_trials))
    return np.array([score_from_stats(metric, ours) - score_from_stats(metric, total - ours) for ours in sums])
