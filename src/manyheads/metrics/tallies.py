"""`Tally`: a score taken apart, so that two models can be compared on the same texts, drawn again for both alike."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.metrics.bootstrap import Sums, f1, share
from manyheads.metrics.corpus_scores import Score, lower_is_better, make_bleu, score_from_stats, sentence_stats

_SEED = 12345


@dataclass(frozen=True)
class Tally:
    """What each text adds to sums, and the score that is a function of them."""

    name: str
    counts: NDArray[np.float64]  # a row a text
    figure: Callable[[Sums], Sums]  # [..., columns] → [...]

    @property
    def value(self) -> float:
        """The score of all the texts."""
        return float(self.figure(self.counts.sum(0)))

    @property
    def goodness(self) -> float:
        """The score, with its sign turned round where less of it is better."""
        return -self.value if lower_is_better(self.name) else self.value

    def score(self, n_resamples: int = 1000) -> Score:
        """The score with its interval."""
        low, high = np.quantile(self.drawn(n_resamples), [0.025, 0.975])
        return Score(self.name, self.value, float(low), float(high), f"n:{len(self.counts)}|resamples:{n_resamples}")

    def drawn(self, n_resamples: int) -> NDArray[np.float64]:
        """The score of texts drawn again; of as many texts, always the same are drawn."""
        n_texts, rng = len(self.counts), np.random.default_rng(_SEED)
        often = rng.multinomial(n_texts, np.full(n_texts, 1 / n_texts), size=n_resamples)
        return np.asarray(self.figure(often @ self.counts), dtype=np.float64)


@dataclass(frozen=True)
class Change:
    """How a score changes from one model to another on the same texts; 95 % of resamples between low and high."""

    name: str
    value: float
    before: float
    difference: float  # value - before
    low: float
    high: float
    n_texts: int

    @property
    def cost(self) -> float:
        """How much worse it became; negative where it became better."""
        return self.difference if lower_is_better(self.name) else -self.difference


def compare_tallies(tally: Tally, before: Tally, n_resamples: int = 1000) -> Change:
    """The change of a score, with the interval of the difference (paired: the same texts are drawn for both)."""
    if tally.name != before.name or len(tally.counts) != len(before.counts):
        raise ValueError("Two different scores, or scores of different texts, cannot be compared in pairs.")
    low, high = np.quantile(tally.drawn(n_resamples) - before.drawn(n_resamples), [0.025, 0.975])
    difference = tally.value - before.value
    return Change(tally.name, tally.value, before.value, difference, float(low), float(high), len(tally.counts))


def bleu_tally(texts: Sequence[str], references: Sequence[str], language: str) -> Tally:
    """BLEU, as `bleu` has it."""
    metric = make_bleu(language, references)

    def figure(sums: Sums) -> Sums:
        return np.apply_along_axis(lambda total: score_from_stats(metric, total.astype(np.int64)), -1, sums)

    return Tally("BLEU", sentence_stats(metric, texts, references).astype(np.float64), figure)


def share_tally(name: str, part: Sequence[float], whole: Sequence[float]) -> Tally:
    """So many per cent of what there is in each text."""
    return Tally(name, np.array([part, whole], np.float64).T, lambda sums: share(sums[..., 0], sums[..., 1]))


def rate_tally(name: str, amount: Sequence[float], units: Sequence[float]) -> Tally:
    """So much for each unit of a text."""
    return Tally(name, np.array([amount, units], np.float64).T, lambda sums: np.asarray(sums[..., 0] / sums[..., 1]))


def f1_tally(name: str, gold: Sequence[AbstractSet[object]], predicted: Sequence[AbstractSet[object]]) -> Tally:
    """F1 of what was to be found in each text, all kinds together."""
    pairs = zip(gold, predicted, strict=True)
    counts = np.array([(len(wanted & given), len(given), len(wanted)) for wanted, given in pairs], np.float64)
    return Tally(name, counts, lambda sums: f1(sums[..., 0], sums[..., 1], sums[..., 2]))
