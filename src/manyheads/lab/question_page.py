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
from manyheads.lab.question import Condition, Question
from manyheads.lab.result_store import Results
from manyheads.language import Bilingual, Language

_MARKS = {"as predicted": "✓", "contrary": "✗", "not distinguishable": "○"}
_CLAIMS = {
    "holds": Bilingual("It holds.", "成立。"),
    "wrong": Bilingual("Wrong.", "错误。"),
    "half": Bilingual("Only in part.", "只对了一部分。"),
}


@dataclass(frozen=True)
class _EffectView:
    """A row of the table of effects."""

    what: Bilingual
    expected: Bilingual
    because: Bilingual
    difference: str
    p: str
    verdict: Bilingual
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
        tuning=_tuning(question),
        claims=[(one.claim, _CLAIMS[one.verdict], answered.fill(one.evidence)) for one in question.claims],
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
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _summary(answered: Answered) -> Bilingual:
    results = answered.results
    n_trials, n_seeds = len(results.rows), answered.question.n_seeds
    stamp = results.stamp
    size = {
        "default": Bilingual("default size", "默认规模"),
        "full": Bilingual("full size", "完整规模"),
    }.get(results.size, Bilingual(f"on {results.size}", f"数据：{results.size}"))
    verdicts = Counter(effect.verdict for effect in answered.effects)
    predicted, contrary = verdicts["as predicted"], verdicts["contrary"]
    unclear, n_all = verdicts["not distinguishable"], len(answered.effects)
    source = (
        Bilingual("shipped with manyheads", "随 manyheads 发布")
        if answered.is_shipped
        else Bilingual("your run", "本机运行")
    )
    return Bilingual(
        f"{n_all} comparisons: {predicted} as predicted, {contrary} contrary, {unclear} not distinguishable · "
        f"{n_seeds} seeds · {n_trials:,} trials · {size.en} · {source.en}, {stamp['date']}, {stamp['machine']}, "
        f"torch {stamp['torch']}",
        f"{n_all} 项比较：{predicted} 项符合预测，{contrary} 项相反，{unclear} 项无法分辨 · {n_seeds} 个随机种子 · "
        f"{n_trials:,} 次试验 · {size.zh} · {source.zh}，{stamp['date']}，{stamp['machine']}，torch {stamp['torch']}",
    )


def _option(size: str) -> str:
    """The option that asks for results of this size."""
    return {"default": "", "full": " --full"}.get(size, f" --on {size}")


def _tuning(question: Question) -> Bilingual:
    rates = ", ".join(f"{rate:g}" for rate in question.learning_rates)
    count = question.n_tuning_seeds
    return Bilingual(
        "Arms are paired by seed: same data, same initial weights wherever shapes allow. The learning rate of each arm "
        f"is the best of {rates} on {count} other seed{'s' * (count > 1)}. ↑ and ↓ mark the highest and the lowest "
        "rate that was tried: a better one may lie beyond.",
        "各组按随机种子配对：数据相同，形状允许时初始权重也相同。"
        f"每组的学习率从 {rates} 中选出，选择时使用另外 {count} 个种子。"
        "↑ 和 ↓ 表示选中的是最高或最低的一档，更好的学习率可能在范围之外。",
    )


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


def _cells(question: Question, results: Results) -> Iterator[tuple[Bilingual, list[Any]]]:
    """For each condition and arm: labels, the mean and interval of every measure, and the learning rate."""
    for condition in question.conditions:
        rows = []
        for arm in question.arms:
            if not results.measured(arm.name, condition.name):
                continue
            rows.append(
                (
                    arm.label,
                    list(_values(question, results, arm.name, condition)),
                    _rate(question, results, arm.name, condition),
                )
            )
        yield condition.label, rows


def _values(question: Question, results: Results, arm: str, condition: Condition) -> Iterator[tuple[str, str]]:
    for measure in question.measures:
        values = list(results.values(arm, condition.name, measure.name).values())
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


def _rate(question: Question, results: Results, arm: str, condition: Condition) -> str:
    """The chosen rate; an arrow if it is at the end of the grid, beyond which a better one may lie."""
    rate = results.chosen_rate(arm, condition.name)
    if rate is None:
        return ""
    end = "↑" if rate == max(question.learning_rates) else "↓" if rate == min(question.learning_rates) else ""
    return f"{rate:g} {end}".strip()
