"""`Hypothesis`: one generated sequence, and the score that ranks it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """A generated sequence of ids, without BOS and EOS."""

    ids: tuple[int, ...]
    log_probability: float  # of the ids and of EOS, if it was generated
    score: float  # ranks hypotheses: log_probability / length_penalty(length)
    finished: bool  # False: cut off at the maximum length, or no id had a finite log-probability


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^α (Wu 2016); the length includes EOS."""
    return ((5 + length) / 6) ** alpha


def make_hypothesis(ids: list[int], log_probability: float, *, finished: bool, alpha: float, length: int) -> Hypothesis:
    """A hypothesis with its score; `length` is the number of ids that `log_probability` sums over, EOS included."""
    return Hypothesis(tuple(ids), log_probability, log_probability / length_penalty(length, alpha), finished)


def best_first(hypotheses: list[Hypothesis], n_best: int) -> list[Hypothesis]:
    """The n best hypotheses, sorted. A finished hypothesis ranks above any unfinished one."""
    return sorted(hypotheses, key=lambda h: (h.finished, h.score), reverse=True)[:n_best]
