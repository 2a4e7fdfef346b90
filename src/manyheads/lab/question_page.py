"""The report of an experiment: one self-contained page with plots, effects, the answer, literature and claims."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from manyheads.lab.effect_plots import draw_plot
from manyheads.lab.effects import Effect, mean_interval
from manyheads.lab.figures import format_value
from manyheads.lab.lab_answers import Answered, expectation_name, verdict_name
from manyheads.lab.lab_texts import LabText, Shown
from manyheads.lab.question import Condition, Question
from manyheads.lab.result_store import Results
from manyheads.language import Language
from manyheads.messages import Message

_MARKS = {"as predicted": "✓", "contrary": "✗", "not distinguishable": "○"}
_ASKED = {
    "ability": Message("ability: what an arm can learn"),
    "speed": Message("speed: how soon an arm learns it"),
    "property": Message("a property: what a model is like or costs"),
}
_CLAIMS = {
    "holds": Message("It holds."),
    "wrong": Message("Wrong."),
    "half": Message("Only in part."),
}


@dataclass(frozen=True)
class _EffectView:
    """A row of the table of effects."""

    what: Shown
    expected: Shown
    because: Shown
    difference: str
    p: str
    verdict: Shown
    mark: str
    kind: str


def render_question(answered: Answered, language: Language = "en") -> str:
    """The page; it opens in this language and has a switch."""
    question, results = answered.question, answered.results
    return render(
        "question.html.j2",
        language=language,
        question=question,
        answer=answered.answer,
        summary=_summary(answered),
        impossible=[(question.arm(name).label, reason) for name, reason in results.impossible.items()],
        plots=[draw_plot(plot, question, results) for plot in question.plots],
        effects=[_effect_view(answered, effect) for effect in answered.effects],
        asked=asked_and_stopped(answered),
        gaps=[(arm.label, condition.label, faults) for arm, condition, faults in answered.gaps()],
        unmeasured=[answered.describe(comparison) for comparison in answered.unmeasured],
        tuning=_tuning(question),
        headings=_effect_headings(),
        claims=[(claim.claim, _CLAIMS[claim.verdict], answered.fill(claim.evidence)) for claim in question.claims],
        cells=list(_cells(question, results)),
        command=f"manyheads lab {question.id}{_option(results.size)}",
    )


def render(template: str, **values: Any) -> str:
    """A page of the lab with the style and script that all share."""
    style = asset("manyheads.report", "base.css") + asset("manyheads.lab", "lab.css")
    return (
        _environment()
        .get_template(template)
        .render(style=Markup(style), script=Markup(asset("manyheads.lab", "lab.js")), **values)
    )


@cache
def asset(package: str, name: str) -> str:
    """A file of a package's templates."""
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    loader = PackageLoader("manyheads.lab")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["Message"] = Message
    return environment


def _summary(answered: Answered) -> Message:
    results, stamp = answered.results, answered.results.stamp
    sizes = {"default": Message("default size"), "full": Message("full size")}
    on_recipe = Message("on {recipe}", recipe=results.size)
    source = Message("shipped with manyheads") if answered.is_shipped else Message("your run")
    verdicts = Counter(effect.verdict for effect in answered.effects)
    return Message(
        "{n_comparisons} comparisons: {n_predicted} as predicted, {n_contrary} contrary, {n_unclear} not "
        "distinguishable · {n_seeds} seeds · {n_trials:,} trials · {size} · {source}, {date}, {machine}, torch {torch}",
        n_comparisons=len(answered.effects),
        n_predicted=verdicts["as predicted"],
        n_contrary=verdicts["contrary"],
        n_unclear=verdicts["not distinguishable"],
        n_seeds=answered.question.n_seeds,
        n_trials=len(results.rows),
        size=sizes.get(results.size, on_recipe),
        source=source,
        date=stamp["date"],
        machine=stamp["machine"],
        torch=stamp["torch"],
    )


def _option(size: str) -> str:
    """The option that asks for results of this size."""
    return {"default": "", "full": " --full"}.get(size, f" --on {size}")


def asked_and_stopped(answered: Answered) -> Message:
    """Whether a question asks about ability or speed, and when its runs ended."""
    question = answered.question
    asks = Message("This question asks about {asked}.", asked=_ASKED[question.asks])
    setup = question.setup
    if setup is None or (question.asks == "property" and setup.convergence is None):
        return asks
    if setup.convergence is None:
        return Message(
            "{asks} Its runs end after a fixed number of steps (older protocol, {date}), so that an arm that learns "
            "slowly looks like one that cannot learn.",
            asks=asks,
            date=answered.results.stamp["date"],
        )
    return Message(
        "{asks} Both are reported: the score after a run has stopped improving, and the steps to {level} % on the "
        "validation set. A run ends at {solved} %, or after {patience:,} steps without an improvement; one that still "
        "improves after {budget:,} steps did not converge.",
        asks=asks,
        level=f"{100 * setup.convergence.level:g}",
        solved=f"{100 * setup.convergence.solved:g}",
        patience=setup.convergence.patience,
        budget=setup.steps,
    )


def _tuning(question: Question) -> Message:
    n_seeds = question.n_tuning_seeds
    return Message(
        "Arms are paired by seed: same data, same initial weights wherever shapes allow. The learning rate of each arm "
        "and condition is the best one on {seeds}. The search starts with {rates} and goes on until rates on both "
        "sides of the best one are tried. ↑ and ↓ mark a rate that stayed at the edge: a better one may lie beyond.",
        rates=", ".join(f"{rate:g}" for rate in question.learning_rates),
        seeds=Message("1 other seed") if n_seeds == 1 else Message("{n_seeds} other seeds", n_seeds=n_seeds),
    )


def _effect_headings() -> list[LabText]:
    rows = Message("comparison|predicted|measured|outcome").by_language()
    return [LabText({language: row.split("|")[column] for language, row in rows.items()}) for column in range(4)]


def _effect_view(answered: Answered, effect: Effect) -> _EffectView:
    return _EffectView(
        what=answered.describe(effect.comparison),
        expected=expectation_name(effect),
        because=effect.comparison.because,
        difference=answered.difference(effect),
        p=_p_value(effect),
        verdict=verdict_name(effect),
        mark=_MARKS[effect.verdict],
        kind=effect.verdict.replace(" ", "-"),
    )


def _p_value(effect: Effect) -> str:
    if effect.is_computed:
        return "–"
    return "< 0.001" if effect.corrected_p < 0.001 else f"{effect.corrected_p:.3f}"


def _cells(question: Question, results: Results) -> Iterator[tuple[Shown, list[Any]]]:
    """For each condition and arm: labels, the mean and interval of every measure, and the learning rate."""
    for condition in question.conditions:
        rows = []
        for arm in question.arms:
            if (arm.name, condition.name) in question.skipped or arm.name in results.impossible:
                continue
            rows.append(
                (
                    arm.label,
                    list(_values(question, results, arm.name, condition)),
                    _rate(results, arm.name, condition),
                )
            )
        yield condition.label, rows


def _values(question: Question, results: Results, arm: str, condition: Condition) -> Iterator[tuple[str, str]]:
    for measure in question.measures:
        values = list(results.values(arm, condition.name, measure.name).values())
        if not values:
            yield "–", ""
            continue
        mean, low, high = mean_interval(values, is_logarithmic=measure.is_logarithmic)
        if measure.is_percentage and min(values) >= 0 and max(values) <= 1:  # a t interval knows no bounds
            low, high = max(low, 0.0), min(high, 1.0)
        interval = f"[{format_value(low, measure)}, {format_value(high, measure)}]"
        if measure.is_censored:
            n_steps = question.cell_setup(question.arm(arm), condition, is_full=results.size == "full").steps
            n_reached = sum(value <= n_steps for value in values)
            if n_reached < len(values):
                yield (
                    f"> {n_steps}" if not n_reached else f"≥ {format_value(mean, measure)}",
                    f"{n_reached}/{len(values)} ✓",
                )
                continue
        yield format_value(mean, measure), interval


def _rate(results: Results, arm: str, condition: Condition) -> str:
    """The chosen rate; an arrow if no rate beyond it was tried."""
    rate = results.chosen_rate(arm, condition.name)
    return "" if rate is None else f"{rate:g} {results.edge(arm, condition.name)}".strip()
