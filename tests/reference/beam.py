"""A slow twin of manyheads.decode.beam_search: one sentence, plain lists, no early stop."""

import math
from collections.abc import Callable, Sequence

Ids = tuple[int, ...]
Found = tuple[Ids, float, float, bool]  # ids, log-probability, score, finished


def score(log_probability: float, length: int, alpha: float) -> float:
    return log_probability / ((5 + length) / 6) ** alpha


def beam_search(
    next_log_probabilities: Callable[[Ids], Sequence[float]],
    *,
    beam: int,
    alpha: float,
    n_best: int,
    max_length: int,
    eos: int,
    forbidden: Sequence[int],
) -> list[Found]:
    live: list[tuple[Ids, float]] = [((), 0.0)]
    finished: list[Found] = []
    for length in range(1, max_length + 1):
        candidates = [
            ((*ids, word), total + log_probability)
            for ids, total in live
            for word, log_probability in enumerate(next_log_probabilities(ids))
            if word not in forbidden and log_probability > -math.inf
        ]
        if not candidates:
            break
        best = sorted(candidates, key=lambda candidate: -candidate[1])[:beam]
        finished += [(ids[:-1], total, score(total, length, alpha), True) for ids, total in best if ids[-1] == eos]
        live = [(ids, total) for ids, total in best if ids[-1] != eos]
        if not live:
            break
    found = finished or [(ids, total, score(total, len(ids), alpha), False) for ids, total in live]
    return sorted(found, key=lambda one: -one[2])[:n_best]
