"""The learning rate of a cell: a grid that grows until its best rate has a neighbor on both sides.

The grid of a question is where the search starts. Rates are tried on seeds that do not count. While the best rate is
the highest or the lowest one tried, one more is tried beyond it, at the spacing of the grid. After `max_extension` new
rates on one side the search gives up, and the results mark the cell: a better rate may lie beyond.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from manyheads.lab.question import Question, edge_of
from manyheads.lab.result_store import Row

_USUAL_SPACING = 3.0  # of a grid of one rate
_TIE = 0.01  # shares that differ by less count as equal: the faster rate is chosen


def best_rate(question: Question, tuning: Mapping[float, Sequence[Row]]) -> float:
    """The rate with the best mean of `tuned_on`; a rate with a run that failed is chosen only if all have one.

    If runs end by convergence, rates whose scores are nearly equal are told apart by their speed, and equally fast ones
    by their score.
    """
    assert question.tuned_on is not None
    measure = question.measure(question.tuned_on)
    sign = -1.0 if measure.better == "lower" else 1.0

    def mean(rate: float, name: str) -> float:
        return fmean(row.measures.get(name, 0.0) for row in tuning[rate])

    sound = [rate for rate, rows in tuning.items() if not any(row.problem for row in rows)]
    rates = sorted(sound or tuning)
    scores = {rate: sign * mean(rate, measure.name) for rate in rates}
    highest = max(scores.values())
    if not question.converges:
        return next(rate for rate in rates if scores[rate] == highest)
    tolerance = _TIE if measure.is_percentage else 0.0
    nearly = [rate for rate in rates if scores[rate] >= highest - tolerance]
    if measure.name == "steps":
        return max(nearly, key=lambda rate: mean(rate, "accuracy"))
    return min(nearly, key=lambda rate: mean(rate, "steps"))


def rate_beyond(question: Question, rates: Sequence[float], best: float) -> float | None:
    """The next rate to try; None if the best one has neighbors, or if the grid may not grow further."""
    grid, edge = sorted(question.learning_rates), edge_of(rates, best)
    if not edge:
        return None
    end, inner = (grid[-1], grid[-2:-1]) if edge == "↑" else (grid[0], grid[1:2])
    spacing = end / inner[0] if inner else _USUAL_SPACING ** (1 if edge == "↑" else -1)
    for number in range(1, question.max_extension + 1):
        rate = float(f"{end * spacing**number:.2g}")
        if rate not in rates:
            return rate
    return None
