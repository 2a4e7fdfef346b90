"""`manyheads heads importance`: gradient importance and ablation of every head, as tables or JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from manyheads.bundle import load
from manyheads.cli.head_pruning import StageBars, machine_info
from manyheads.cli.progress import make_console
from manyheads.lens.importance import (
    Ablation,
    Agreement,
    GradientImportance,
    ablate,
    gradient_importance,
    rank_agreement,
    single_heads,
    sum_of_single,
    whole_attentions,
)
from manyheads.lens.scored_rows import open_sample, valid_rows
from manyheads.messages import _
from manyheads.metrics import Change
from manyheads.tasks import LabelingTask


def measure_importance(bundle: Path, n_rows: int, valid: tuple[Path, ...], *, as_json: bool) -> None:
    """Measure the importance of every head and every attention, and show it."""
    loaded = load(bundle)
    task = loaded.task
    rows = valid_rows(loaded, n_rows, valid)
    with open_sample(task, rows, loaded.decode) as sample, StageBars() as bars:
        gradients = gradient_importance(task, sample)
        head_sets = [*single_heads(task), *whole_attentions(task)]
        done = iter(range(1, len(head_sets) + 1))
        ablations = ablate(
            task, sample, head_sets, progress=lambda ablation: bars.update("ablating", next(done), len(head_sets))
        )
    singles, joint = ablations[: len(gradients)], ablations[len(gradients) :]
    costs = [single.change.cost for single in singles]
    agreement = rank_agreement([gradient.value for gradient in gradients], costs) if len(costs) > 2 else None
    if as_json:
        _print_json(gradients, singles, joint, agreement, len(rows))
        return
    console = make_console(plain=False)
    _show_heads(gradients, singles, len(rows), console)
    if isinstance(task, LabelingTask) and task.baseline_name:
        share = f"{task.baseline_share(rows):.0%}"
        note = _(
            "  The {baseline_name} makes {share} of these decisions; the heads act on the rest.",
            baseline_name=task.baseline_name,
            share=share,
        )
        console.print(note, style="dim", markup=False)
    _show_attentions(singles, joint, console)
    if agreement:
        rho = f"ρ = {agreement.value:.2f} [{agreement.low:.2f}, {agreement.high:.2f}]"
        console.print("\n" + _("Agreement of the two rankings: ") + rho, markup=False)


def _print_json(
    gradients: Sequence[GradientImportance],
    singles: Sequence[Ablation],
    joint: Sequence[Ablation],
    agreement: Agreement | None,
    n_rows: int,
) -> None:
    payload = {
        **machine_info(),
        "sample": n_rows,
        "gradient": [{**asdict(gradient), "head": str(gradient.head)} for gradient in gradients],
        "ablation": [
            {"heads": list(map(str, ablation.heads)), **asdict(ablation.change)} for ablation in (*singles, *joint)
        ],
        "sum_of_single": {ablation.heads[0].attention: sum_of_single(ablation, singles) for ablation in joint},
        "agreement": asdict(agreement) if agreement else None,
    }
    click.echo(json.dumps(payload, ensure_ascii=False, indent=2))


def _show_heads(
    gradients: Sequence[GradientImportance], singles: Sequence[Ablation], n_rows: int, console: Console
) -> None:
    name, before = singles[0].change.name, singles[0].change.before
    title = _("{name} of the whole model", name=name)
    details = _("n = {n_rows}, greedy", n_rows=n_rows)
    console.print(f"{title}: {before:.2f} ({details})", style="bold", markup=False)
    table = _table(_("head"), _("gradient"), "", _("change of {name}", name=name), "")
    for gradient, single in sorted(zip(gradients, singles, strict=True), key=lambda pair: -pair[1].change.cost):
        interval = f"[{gradient.low:.3f}, {gradient.high:.3f}]"
        table.add_row(str(gradient.head), f"{gradient.value:.3f}", interval, *_change_cells(single.change))
    console.print(table, markup=False)


def _show_attentions(singles: Sequence[Ablation], joint: Sequence[Ablation], console: Console) -> None:
    title = _("Whole attentions, and the sum over their single heads")
    console.print(f"\n{title}", style="bold")
    table = _table(_("attention"), _("all heads"), "", _("sum of single heads"))
    for ablation in joint:
        change = ablation.change
        direction = -1.0 if change.cost == -change.difference else 1.0
        total = f"{direction * sum_of_single(ablation, singles):+.2f}"
        table.add_row(ablation.heads[0].attention, *_change_cells(change), total)
    console.print(table, markup=False)


def _change_cells(change: Change) -> tuple[str, str]:
    return f"{change.difference:+.2f}", f"[{change.low:+.2f}, {change.high:+.2f}]"


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, justify="left")
    for heading in others:
        table.add_column(heading, justify="right")
    return table
