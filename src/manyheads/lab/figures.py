"""Figures in texts: {{…}} in an answer, a claim or a card is replaced by a number of the stored results.

    {{mean QUESTION ARM CONDITION MEASURE}}                the mean over seeds
    {{range QUESTION ARM CONDITION MEASURE}}               its 95 % interval, as [low, high]
    {{diff QUESTION ARM AGAINST CONDITION MEASURE}}        the paired difference with its interval, signed
    {{ratio QUESTION ARM AGAINST CONDITION MEASURE}}       the ratio of the two means, as "1.8"
    {{steps QUESTION ARM CONDITION}}                       the mean steps to the level, "> 900" if never reached
    {{rate QUESTION ARM CONDITION}}                        the tuned learning rate, with an arrow at an edge of its grid
    {{seeds QUESTION}}                                     the number of seeds

The condition of a question that has only one is -. To compare across conditions, write ARM@CONDITION.
"""

import re
import statistics
from collections.abc import Callable, Mapping

from manyheads.errors import LabError
from manyheads.lab.effects import mean_interval, paired_difference
from manyheads.lab.lab_texts import LabText, Shown, changed
from manyheads.lab.question import Measure, Question
from manyheads.lab.result_store import Results
from manyheads.messages import _

_FIGURE = re.compile(r"\{\{([^{}]+)\}\}")
Known = Mapping[str, tuple[Question, Results]]


class _NotMeasuredError(Exception):
    """The results lack a cell of the question: the run was interrupted, or its time was up."""


def fill(text: Shown, known: Known) -> LabText:
    """The text in every language with its figures; a line does not break between a figure and its %."""

    def put(part: str) -> str:
        return _FIGURE.sub(lambda match: figure(match[1], known), part.replace("}} %", "}}\N{NO-BREAK SPACE}%"))

    return changed(text, put)


def figure(words: str, known: Known) -> str:
    """One figure, as text."""
    verb, *rest = words.split()
    shown = f"{{{{{words}}}}}"
    if not rest or rest[0] not in known:
        raise LabError(
            _("The figure {figure} needs the results of a question.", figure=shown)
            if not rest
            else _("The figure {figure} needs the results of {question}.", figure=shown, question=rest[0])
        )
    question, results = known[rest[0]]
    try:
        return _VERBS[verb](question, results, *rest[1:])
    except _NotMeasuredError:
        return _("(not measured)")
    except (KeyError, TypeError, ValueError, StopIteration):
        raise LabError(_("The figure {figure} names something that the results do not have.", figure=shown)) from None


def format_value(value: float, measure: Measure, *, is_signed: bool = False) -> str:
    """A value of a measure; a percentage without its sign, a logarithmic one with three significant digits."""
    if measure.is_logarithmic:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    digits = measure.digits - 2 if measure.is_percentage else measure.digits
    text = f"{value * (100 if measure.is_percentage else 1):{'+' if is_signed else ''},.{max(0, digits)}f}"
    return text.replace("-", "−")


def format_difference(mean: float, low: float, high: float, measure: Measure) -> str:
    """A difference with its interval; of a logarithmic measure, a ratio."""
    if measure.is_logarithmic:
        return f"× {_ratio(mean)} [{_ratio(low)}, {_ratio(high)}]"
    values = (format_value(value, measure, is_signed=True) for value in (mean, low, high))
    return "{} [{}, {}]".format(*values)


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _values(question: Question, results: Results, arm: str, condition: str, measure: str) -> dict[int, float]:
    arm, _at, own = arm.partition("@")
    question.measure(measure)
    cell = arm, own or condition
    values = results.values(*cell, measure)
    if not values:
        known = {(known_arm.name, known_condition.name) for known_arm, known_condition in question.cells()}
        raise _NotMeasuredError if cell in known else KeyError(arm)
    return values


def _mean(question: Question, results: Results, arm: str, condition: str, measure: str) -> str:
    described = question.measure(measure)
    values = list(_values(question, results, arm, condition, measure).values())
    return format_value(mean_interval(values, is_logarithmic=described.is_logarithmic)[0], described)


def _range(question: Question, results: Results, arm: str, condition: str, measure: str) -> str:
    described = question.measure(measure)
    values = list(_values(question, results, arm, condition, measure).values())
    _, low, high = mean_interval(values, is_logarithmic=described.is_logarithmic)
    return f"[{format_value(low, described)}, {format_value(high, described)}]"


def _diff(question: Question, results: Results, arm: str, against: str, condition: str, measure: str) -> str:
    ours, theirs = (_values(question, results, name, condition, measure) for name in (arm, against))
    seeds = sorted(ours.keys() & theirs.keys())
    described = question.measure(measure)
    if len(seeds) < 2:
        raise _NotMeasuredError
    mean, low, high, _p = paired_difference(
        [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds], is_ratio=described.is_logarithmic
    )
    return format_difference(mean, low, high, described)


def _mean_ratio(question: Question, results: Results, arm: str, against: str, condition: str, measure: str) -> str:
    ours, theirs = (_values(question, results, name, condition, measure).values() for name in (arm, against))
    return _ratio(statistics.fmean(ours) / statistics.fmean(theirs))


def _rate(question: Question, results: Results, arm: str, condition: str) -> str:
    rate = results.chosen_rate(arm, condition)
    if rate is None:
        raise KeyError(arm)
    return f"{rate:g} {results.edge(arm, condition)}".strip()


def _steps(question: Question, results: Results, arm: str, condition: str) -> str:
    """The mean number of steps to the level of the question; a bound if some run did not reach it."""
    values = list(_values(question, results, arm, condition, "steps").values())
    budget = question.cell_setup(question.arm(arm), question.condition(condition), is_full=results.size == "full").steps
    n_reached = sum(value <= budget for value in values)
    if not n_reached:
        return f"> {budget:,}"
    return f"{'' if n_reached == len(values) else '≥ '}{mean_interval(values, is_logarithmic=True)[0]:,.0f}"


def _seeds(question: Question, results: Results) -> str:
    return str(max(len(results.measured(arm.name, condition.name)) for arm, condition in question.cells()))


_VERBS: dict[str, Callable[..., str]] = {
    "mean": _mean,
    "range": _range,
    "diff": _diff,
    "ratio": _mean_ratio,
    "rate": _rate,
    "steps": _steps,
    "seeds": _seeds,
}
