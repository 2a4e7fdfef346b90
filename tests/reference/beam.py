"""A slow reference of `manyheads.decode.beam_search`: one sentence, plain lists, no early stopping."""

import math
from collections.abc import Callable, Sequence

Ids = tuple[int, ...]
Hypothesis = tuple[Ids, float, float, bool]  # ids, log-probability, score, finished


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
) -> list[Hypothesis]:
    live: list[tuple[Ids, float]] = [((), 0.0)]
    finished: list[Hypothesis] = []
    for length in range(1, max_length + 1):
        candidates = [
            ((*ids, token), total + log_probability)
            for ids, total in live
            for token, log_probability in enumerate(next_log_probabilities(ids))
            if token not in forbidden and log_probability > -math.inf
        ]
        if not candidates:
            break
        best = sorted(candidates, key=lambda candidate: -candidate[1])[:beam]
        finished += [(ids[:-1], total, score(total, length, alpha), True) for ids, total in best if ids[-1] == eos]
        live = [(ids, total) for ids, total in best if ids[-1] != eos]
        if not live:
            break
    hypotheses = finished or [(ids, total, score(total, len(ids), alpha), False) for ids, total in live]
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis[2])[:n_best]
