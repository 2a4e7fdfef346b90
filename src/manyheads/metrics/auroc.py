"""AUROC: how well a score separates texts out of scope from texts in scope."""

from collections.abc import Sequence

import numpy as np

from manyheads.metrics.bootstrap import N_RESAMPLES, outer_interval, weightings
from manyheads.metrics.score import Score

_MAX_TEXTS = 500  # of each kind: more would make the interval hardly narrower and much slower


def auroc(
    name: str, inside: Sequence[float], outside: Sequence[float], *details: str, n_resamples: int = N_RESAMPLES
) -> Score:
    """Return the probability in percent that a text out of scope scores higher than one in scope, with its interval.

    50 is chance. Like other scores, the interval counts one more text of each kind, ranked as badly or as well as
    possible.
    """
    chosen = [np.asarray(_spread(values), np.float64) for values in (inside, outside)]
    wins = (np.sign(chosen[1][None, :] - chosen[0][:, None]) + 1) / 2  # a tie counts half
    value = 100 * float(wins.mean())
    weights = [np.stack(list(weightings(len(values), n_resamples))) for values in chosen]
    weights[1] = weights[1][::-1]  # the two kinds are drawn independently
    resampled = []
    for added in (0.0, 1.0):
        padded = np.pad(wins, (0, 1), constant_values=added)
        total = weights[0].sum(1) * weights[1].sum(1)
        resampled.append(100 * np.minimum(((weights[0] @ padded) * weights[1]).sum(1) / total, 1.0))
    low, high = outer_interval(value, resampled)
    signature = "|".join([f"in:{len(chosen[0])}|out:{len(chosen[1])}|resamples:{n_resamples}", *details])
    return Score(name, value, low, high, signature, len(chosen[0]) + len(chosen[1]))


def _spread(values: Sequence[float]) -> Sequence[float]:
    """Return at most `_MAX_TEXTS` values, evenly spread over all."""
    return values[:: -(-len(values) // _MAX_TEXTS)] if len(values) > _MAX_TEXTS else values
