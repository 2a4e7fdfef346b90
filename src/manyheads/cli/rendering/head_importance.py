"""`manyheads heads importance`: what is lost without each head, by log-probability, by gradient and by score."""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from manyheads.bundle import load
from manyheads.cli.rendering.head_results import StageBars, machine_info
from manyheads.cli.rendering.progress import make_console
from manyheads.lens.ablated_probability import WAYS, Ablated, LostProbability, answered_texts, lost_probabilities
from manyheads.lens.importance import (
    Ablation,
    GradientImportance,
    ablate,
    gradient_importance,
    rank_agreement,
    single_heads,
    sum_of_single,
    whole_attentions,
)
from manyheads.lens.scored_rows import Sample, open_sample, valid_rows
from manyheads.messages import _
from manyheads.metrics import Change, format_change
from manyheads.tasks import LabelingTask, Task
from manyheads.text.reading.readers import Row


@dataclass(frozen=True)
class _Measured:
    """What was measured of the heads; without gradients or ablations if they were not asked for."""

    lost: dict[Ablated, list[LostProbability]]
    gradients: list[GradientImportance]
    singles: list[Ablation]
    joint: list[Ablation]

    @property
    def agreements(self) -> dict[str, Any]:
        """How far other rankings agree with that by zero ablation."""
        importance = [one.value for one in self.lost["zero"]]
        rankings: dict[str, list[float]] = {way: [one.value for one in self.lost[way]] for way in WAYS[1:]}
        rankings["gradient"] = [one.value for one in self.gradients]
        rankings["score"] = [one.change.cost for one in self.singles]
        if len(importance) < 3:
            return {}
        return {name: rank_agreement(values, importance) for name, values in rankings.items() if values}


def measure_importance(
    bundle: Path, also_by: Collection[str], n_rows: int, valid: tuple[Path, ...], *, as_json: bool
) -> None:
    """Measure the importance of every head, and show it."""
    loaded = load(bundle)
    rows = valid_rows(loaded, n_rows, valid)
    with open_sample(loaded.task, rows, loaded.decode) as sample, StageBars() as bars:
        measured = _measure(loaded.task, sample, also_by, bars)
    if as_json:
        _print_json(measured, len(rows))
        return
    console = make_console(plain=False)
    _show_probabilities(measured, console)
    if isinstance(loaded.task, LabelingTask):
        _show_baseline(loaded.task, rows, console)
    if measured.singles:
        _show_scores(measured, len(rows), console)


def _measure(task: Task, sample: Sample, also_by: Collection[str], bars: StageBars) -> _Measured:
    texts = answered_texts(task, sample.rows, len(sample.rows))
    n_done = 0

    def advance(done: int) -> None:
        nonlocal n_done
        n_done += done
        bars.update("ablating", n_done, len(texts) * len(WAYS))

    lost = lost_probabilities(task, texts, progress=advance)
    gradients = gradient_importance(task, sample) if "gradient" in also_by else []
    if "score" not in also_by:
        return _Measured(lost, gradients, [], [])
    head_sets = [*single_heads(task), *whole_attentions(task)]
    done = iter(range(1, len(head_sets) + 1))
    ablations = ablate(
        task, sample, head_sets, progress=lambda _: bars.update("scoring without heads", next(done), len(head_sets))
    )
    n_heads = len(lost["zero"])
    return _Measured(lost, gradients, ablations[:n_heads], ablations[n_heads:])


def _print_json(measured: _Measured, n_rows: int) -> None:
    payload: dict[str, Any] = {
        **machine_info(),
        "sample": n_rows,
        "unit": "nats",
        "lost_probability": {way: _with_names(measured.lost[way]) for way in WAYS},
        "agreement": {name: asdict(agreement) for name, agreement in measured.agreements.items()},
    }
    if measured.gradients:
        payload["gradient"] = _with_names(measured.gradients)
    if measured.singles:
        ablations = (*measured.singles, *measured.joint)
        payload["score"] = [{"heads": list(map(str, one.heads)), **asdict(one.change)} for one in ablations]
        payload["sum_of_single"] = {
            one.heads[0].attention: sum_of_single(one, measured.singles) for one in measured.joint
        }
    click.echo(json.dumps(payload, ensure_ascii=False, indent=2))


def _with_names(values: Sequence[LostProbability | GradientImportance]) -> list[dict[str, Any]]:
    return [{**asdict(value), "head": str(value.head)} for value in values]


def _show_probabilities(measured: _Measured, console: Console) -> None:
    n_texts = measured.lost["zero"][0].n_texts
    title = _("Log-probability lost without the head, in nats per answer (n = {n_texts})", n_texts=n_texts)
    console.print(title, style="bold", markup=False)
    headings = [_("zero"), "95 %", _("mean"), _("resample")]
    table = _table(_("head"), *headings, *([_("gradient")] if measured.gradients else []))
    zero, mean, resample = (measured.lost[way] for way in WAYS)
    for row in sorted(range(len(zero)), key=lambda row: -zero[row].value):
        value, interval = format_change(zero[row].value, zero[row].low, zero[row].high)
        decimals = len(value.partition(".")[2])
        others = [f"{one[row].value:+.{decimals}f}" for one in (mean, resample)]
        gradient = [f"{measured.gradients[row].value:.3f}"] if measured.gradients else []
        table.add_row(str(zero[row].head), value, interval or _("no text changes"), *others, *gradient)
    console.print(table, markup=False)
    agreements = measured.agreements
    names = {"mean": _("mean"), "resample": _("resample"), "gradient": _("gradient"), "score": _("score")}
    if not agreements:
        return
    console.print("\n" + _("Rank correlation with zero ablation (Spearman's ρ, 95 %)"), style="bold", markup=False)
    ranks = _table("", "", "")
    for name, agreement in agreements.items():
        ranks.add_row(names[name], f"{agreement.value:+.2f}", f"[{agreement.low:+.2f}, {agreement.high:+.2f}]")
    console.print(ranks, markup=False)


def _show_baseline(task: LabelingTask, rows: Sequence[Row], console: Console) -> None:
    if task.baseline_name:
        note = _(
            "  The {baseline_name} makes {share} of these decisions; the heads act on the rest.",
            baseline_name=task.baseline_name,
            share=f"{task.baseline_share(rows):.0%}",
        )
        console.print(note, style="dim", markup=False)


def _show_scores(measured: _Measured, n_rows: int, console: Console) -> None:
    """Show the change of the score without single heads, and without whole attentions."""
    name, before = measured.singles[0].change.name, measured.singles[0].change.before
    title = _("{name} of the whole model", name=name)
    details = _("n = {n_rows}, greedy", n_rows=n_rows)
    console.print(f"\n{title}: {before:.2f} ({details})", style="bold", markup=False)
    table = _table(_("head"), _("change of {name}", name=name), "95 %")
    for single in sorted(measured.singles, key=lambda single: -single.change.cost):
        table.add_row(str(single.heads[0]), *_change_cells(single.change))
    console.print(table, markup=False)
    title = _("Whole attentions, and the sum over their single heads")
    console.print(f"\n{title}", style="bold")
    table = _table(_("attention"), _("all heads"), "95 %", _("sum of single heads"))
    for ablation in measured.joint:
        change = ablation.change
        direction = -1.0 if change.cost == -change.difference else 1.0
        total = f"{direction * sum_of_single(ablation, measured.singles):+.2f}"
        table.add_row(ablation.heads[0].attention, *_change_cells(change), total)
    console.print(table, markup=False)


def _change_cells(change: Change) -> tuple[str, str]:
    value, interval = format_change(change.difference, change.low, change.high)
    return value, interval or _("no answer is scored otherwise")


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any((first, *others)))
    table.add_column(first, justify="left")
    for heading in others:
        table.add_column(heading, justify="right")
    return table
