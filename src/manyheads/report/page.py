"""The whole page: a template, the style and the script of this folder, and what the log tells."""

import json
import math
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.metrics import format_score
from manyheads.report import sections
from manyheads.report.curve_thinning import bucket_starts, downsample, last_of_each
from manyheads.report.history import History, number
from manyheads.report.markup import both, duration, text, titled
from manyheads.report.page_text import PageText, display_name, page_text

_RELOAD = 20  # seconds, while the run is under way
_CURVES = (  # name, title in English and Chinese, whether it is one of the large ones
    ("loss", "Training loss", "训练损失", True),
    ("score", "Validation", "验证", True),
    ("rate", "Learning rate", "学习率", False),
    ("norm", "Gradient norm", "梯度范数", False),
    ("speed", "Tokens a second", "每秒词元数", False),
)


def render_page(name: str, recipe: str, history: History, now: float) -> str:
    """The page of a run of this name, made at a time in seconds since 1970."""
    table = _table(recipe)
    is_over = history.state in ("finished", "interrupted")
    return _asset("page.html").substitute(
        live="" if is_over else f' data-reload="{_RELOAD}"',
        refresh="" if is_over else f'<noscript><meta http-equiv="refresh" content="{_RELOAD}"></noscript>',
        made=f"{now:.0f}",
        title=f"{text(_progress(history, table))} · {text(name)}",
        style=_asset("page.css").template,
        name=text(name),
        model=_model(history, table),
        status=_status(history, table),
        progress=_bar(history, table),
        summary=sections.summary(history),
        headline=_headline(history),
        curves=_curves(history),
        rest=_rest(history, recipe, page_text(_setting(table, "task", "kind"))),
        data=_data(history),
        script=_asset("page.js").template,
    )


def _asset(name: str) -> Template:
    return Template(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _table(recipe: str) -> dict[str, Any]:
    try:
        return tomllib.loads(recipe)
    except tomllib.TOMLDecodeError:
        return {}


def _setting(table: Mapping[str, Any], section: str, key: str) -> object:
    found = table.get(section)
    return found.get(key) if isinstance(found, Mapping) else None


def _n_steps(table: Mapping[str, Any]) -> int:
    steps = number(_setting(table, "train", "steps"))
    return int(steps) if math.isfinite(steps) else 0


def _progress(history: History, table: Mapping[str, Any]) -> str:
    """How far it is, short enough for the title of a browser's tab."""
    if history.state in ("finished", "interrupted"):
        return {"finished": "✓", "interrupted": "‖"}[history.state]
    return f"{100 * history.step // max(1, _n_steps(table), history.step)} %"


def _model(history: History, table: Mapping[str, Any]) -> str:
    source, target = (str(_setting(table, "task", f"{side}_language") or "") for side in ("source", "target"))
    if not (source and target):
        source, _, target = str(_setting(table, "data", "builtin") or "").partition("-")
    parts = []
    if source and target:
        languages = (f'<span data-language="{text(one)}">{text(one)}</span>' for one in (source, target))
        parts.append(" → ".join(languages))
    size = number(history.prepared.get("n_parameters"))
    if math.isfinite(size):
        parts.append(both(f"{size / 1e6:.1f} M parameters", f"{size / 1e6:.1f} M 参数"))
    return " · ".join(parts)


def _status(history: History, table: Mapping[str, Any]) -> str:
    step, total = f"{history.step:,}", f"{max(_n_steps(table), history.step):,}"
    if history.state == "finished":
        return both(f"Finished after step {step}", f"已完成，共 {step} 步")
    if history.state == "interrupted":
        return both(f"Interrupted at step {step} of {total}; it can go on", f"在第 {step} / {total} 步中断，可以继续")
    if history.state == "stage":
        return both(f"Under way: {text(history.stage)}", f"进行中：{text(history.stage)}")
    if history.state == "starting":
        return both("Starting", "正在开始")
    english, chinese = duration(history.seconds_left(_n_steps(table)))
    return both(
        f"Training, step {step} of {total}, {english} left", f"正在训练，第 {step} / {total} 步，剩余 {chinese}"
    )


def _bar(history: History, table: Mapping[str, Any]) -> str:
    total = _n_steps(table)
    if not total or history.state == "finished":
        return ""
    share = min(100.0, 100 * history.step / total)
    return (
        f'<div class="progress" role="progressbar" aria-label="training" aria-valuemin="0" aria-valuemax="100" '
        f'aria-valuenow="{share:.0f}"><div style="width:{share:.2f}%"></div></div>'
    )


def _headline(history: History) -> str:
    groups = [
        (both(*map(text, display_name(name))), sections.scores_of(card))
        for name, card in sections.cards_of(history.finished).items()
    ]
    best = history.best
    if not groups and best:
        where = both(f"valid, best so far: step {best.step:,.0f}", f"验证集，目前最佳：第 {best.step:,.0f} 步")
        groups = [(where, [{"name": best.metric, "value": best.score}])]
    told = "".join(
        f'<div><h2>{where}</h2><div class="set">{"".join(map(_score, scores))}</div></div>'
        for where, scores in groups
        if scores
    )
    return f'<div class="headlines">{told}</div>' if told else ""


def _score(score: Mapping[str, Any]) -> str:
    figure = format_score(str(score["name"]), number(score["value"]))
    value = f'<div class="value">{figure}<small>{titled(score["name"])}</small></div>'
    return f'<div class="headline">{value}<div class="interval">{sections.interval(score)}</div></div>'


def _curves(history: History) -> str:
    shown = [curve for curve in _CURVES if curve[0] != "score" or history.validations]
    metric = titled(history.validations[-1].metric) if history.validations else ""
    return "".join(
        f'<figure class="{"large" if is_large else "small"}"><figcaption><h3>{both(english, chinese)}'
        f"{f' {metric}' if name == 'score' else ''}</h3>"
        f'<output aria-live="polite"></output></figcaption><div class="plot" data-curve="{name}"></div></figure>'
        for name, english, chinese, is_large in shown
    )


def _rest(history: History, recipe: str, words: PageText) -> str:
    finished = history.finished
    parts = [
        sections.section("data", "Data", "数据", sections.funnel(history.prepared)),
        sections.section(
            "samples",
            *words.samples,
            sections.samples_over_time(history.validations, words),
            f'<p class="note">{both(*words.valid)} {both(*words.marked)}</p>',
        ),
        sections.section("scorecard", "TranslationCard", "成绩单", sections.scorecards(finished, words)),
        sections.section("recipe", "Recipe", "配方", _recipe(recipe)),
        sections.section("signatures", "Signatures", "评测签名", sections.signatures(finished)),
    ]
    return "".join(parts)


def _recipe(recipe: str) -> str:
    told = both("The recipe as it was carried out", "实际使用的完整配方")
    return f"<details><summary>{told}</summary><pre>{text(recipe)}</pre></details>" if recipe.strip() else ""


def _data(history: History) -> str:
    """What the script draws, as JSON that cannot end the script it stands in."""
    steps, best = history.steps, history.best
    starts = bucket_starts(len(steps))
    curves: dict[str, object] = {}
    for name in ("loss", "rate", "norm", "speed"):
        downsampled = downsample(getattr(steps, name), starts)
        curves[name] = [_short(part) for part in (downsampled.mean, downsampled.low, downsampled.high)]
    alike = [one for one in history.validations if best and one.metric == best.metric]
    data = {
        "step": _short(last_of_each(steps.step, starts), digits=12),
        "minute": _short(last_of_each(steps.minute, starts)),
        "curves": curves,
        "validations": [[one.step, round(one.minute, 4), round(one.score, 3)] for one in alike],
        "metric": best.metric if best else "",
        "best": alike.index(best) if best else -1,
    }
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _short(values: NDArray[np.float64], digits: int = 5) -> list[float | None]:
    numbers = (float(f"{value:.{digits}g}") for value in values.tolist())
    return [(int(one) if one.is_integer() else one) if math.isfinite(one) else None for one in numbers]
