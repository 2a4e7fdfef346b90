"""Is one system better than another, or only luckier? Two paired tests on the same test set.

Paired bootstrap resampling (Koehn, 2004) draws sentences again, for both systems the same ones, and looks how often
the order is turned round. Approximate randomization (Noreen, 1989) swaps the two systems' outputs of random
sentences, as may be done if they are equally good, and looks how often that gives a difference as large.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF

from manyheads.metrics.corpus_scores import (
    TOKENIZED_BLEU,
    Counts,
    make_bleu,
    make_tokenized_bleu,
    score_from_stats,
    sentence_stats,
)

_SEED = 12345


@dataclass(frozen=True)
class Difference:
    """How far one system is ahead of another in one metric.

    95 % of resamples of the test set have a difference between low and high. Both p values are two-sided; from
    0.05 upwards the two systems cannot be told apart by this test set.
    """

    name: str
    value: float  # of the system in question
    other: float  # of the one it is compared with
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
    n_resamples: int = 1000,
    n_trials: int = 10_000,
) -> list[Difference]:
    """BLEU and chrF of two systems' outputs for the same sentences; `tokenized` adds BLEU of text as it stands."""
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


def _compare(name: str, metric: Metric, mine: Counts, other: Counts, n_resamples: int, n_trials: int) -> Difference:
    value, other_value = score_from_stats(metric, mine.sum(0)), score_from_stats(metric, other.sum(0))
    difference = value - other_value
    drawn = _resampled(metric, mine, other, n_resamples)
    shuffled = _shuffled(metric, mine, other, n_trials)
    low, high = np.quantile(drawn, [0.025, 0.975])
    turned = np.sum(drawn * np.sign(difference) <= 0)
    # Rounding alone must not tell a shuffle that changes nothing from the outputs as they are.
    as_large = np.sum(np.abs(shuffled) >= abs(difference) - 1e-9)
    return Difference(
        name=name,
        value=value,
        other=other_value,
        difference=difference,
        low=float(low),
        high=float(high),
        # The outputs as they are count as one more draw, lest p be 0.
        p_bootstrap=min(1.0, 2 * float(turned + 1) / (n_resamples + 1)),
        p_randomization=float(as_large + 1) / (n_trials + 1),
        signature=str(metric.get_signature()),
    )


def _resampled(
    metric: Metric, mine: Counts, other: Counts, n_resamples: int
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    rng, each = np.random.default_rng(_SEED), np.full(len(mine), 1 / len(mine))
    draws = (rng.multinomial(len(mine), each) for _ in range(n_resamples))
    return np.array([score_from_stats(metric, draw @ mine) - score_from_stats(metric, draw @ other) for draw in draws])


def _shuffled(
    metric: Metric, mine: Counts, other: Counts, n_trials: int
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    rng, total, ahead = np.random.default_rng(_SEED), mine.sum(0) + other.sum(0), mine - other
    # Swapping some sentences moves what they are ahead by from one sum to the other.
    sums = (mine.sum(0) - rng.integers(2, size=len(mine)) @ ahead for _ in range(n_trials))
    return np.array([score_from_stats(metric, one) - score_from_stats(metric, total - one) for one in sums])
