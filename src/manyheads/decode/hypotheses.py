"""`Hypothesis`: one generated sequence and the score that ranks it; sequences that repeat themselves."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, inf

NO_REPEAT_NGRAM = 3  # of the second search, where the first one ended in a loop

_MIN_REPEATS = 4
_MIN_LOOP = 8  # ids
_LONGEST_SOURCE = 10_000  # ids, the last ones: the time grows with the square


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


def is_looping(ids: Sequence[int], source: Sequence[int] = ()) -> bool:
    """Whether the ids contain a loop that is more than twice as long as any repetition in the source."""
    length = loop_length(ids)
    return length >= _MIN_LOOP and length > 2 * loop_length(source[-_LONGEST_SOURCE:])


def loop_length(ids: Sequence[int]) -> int:
    """The number of ids of the longest run of a block that occurs at least four times in a row; 0 without one."""
    if len(ids) - len(set(ids)) < _MIN_REPEATS - 1 or max(Counter(ids).values()) < _MIN_REPEATS:
        return 0
    array, longest = np.asarray(ids), 0
    for period in range(1, len(array) // _MIN_REPEATS + 1):
        # A block of `period` ids is repeated where each id equals the one `period` before it.
        breaks = np.flatnonzero(np.concatenate([[True], array[period:] != array[:-period], [True]]))
        run = int(np.diff(breaks).max()) - 1 + period
        if run >= _MIN_REPEATS * period:
            longest = max(longest, run)
    return longest


def forbid_repeats(log_probabilities: Float[Tensor, "R V"], generated: Int[Tensor, "R T"], n: int) -> None:
    """Set the log-probability of every id that would complete an n-gram of its row a second time to −∞, in place."""
    if generated.size(1) < n:
        return
    ngrams = generated.unfold(1, n, 1)  # R × positions × n
    latest = generated[:, generated.size(1) - n + 1 :]  # n − 1 ids
    row, position = (ngrams[:, :, :-1] == latest[:, None]).all(dim=2).nonzero(as_tuple=True)
    log_probabilities[row, ngrams[row, position, -1]] = -inf
