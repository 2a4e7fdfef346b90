"""`Hypothesis`: one sequence a search has written, and the score that ranks it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """Ids without BOS and EOS, and how probable the model finds them."""

    ids: tuple[int, ...]
    log_probability: float  # of the ids and, where it was written, EOS
    score: float  # what it was ranked by: log_probability / length_penalty(length)
    finished: bool  # False: cut off at the maximum length, or no id was possible any more


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^α of Wu 2016, where length counts every id whose probability counts, EOS too."""
    return ((5 + length) / 6) ** alpha


def make_hypothesis(ids: list[int], log_probability: float, *, finished: bool, alpha: float, length: int) -> Hypothesis:
    """A hypothesis with its score; `length` is how many ids' probabilities count: EOS, where written, is one more."""
    # What was written nothing of has length 0 and log-probability 0.
    return Hypothesis(tuple(ids), log_probability, log_probability / length_penalty(length, alpha), finished)


def best_first(hypotheses: list[Hypothesis], n_best: int) -> list[Hypothesis]:
    """The n best, sorted; one that is finished goes before any that was cut off, whatever their scores."""
    return sorted(hypotheses, key=lambda h: (h.finished, h.score), reverse=True)[:n_best]
