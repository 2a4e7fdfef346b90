"""`manyheads heads`: what every head does, how much depends on it, and the model without those that can go."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.program import program_name
from manyheads.cli.role_cards import CardOptions, show_heads, show_timeline

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.compress.pruning_curve import CurvePoint

_FILES = click.Path(path_type=Path)
_ROWS = 200  # to measure by, unless told otherwise
_CHINESE = {
    "removing heads": "移除注意力头",
    "measuring": "测量",
    "learning gates": "学习门控",
    "fine-tuning": "微调",
    "ablating": "逐一屏蔽",
}


@click.command(short_help="What each attention head does; prune those that can go. 查看并剪除注意力头。")
@click.argument("bundle", type=_FILES)
@click.option("--importance", is_flag=True, help="How much depends on each head. 各个头的重要性。")
@click.option("--prune", "share", type=float, help="Remove this share of all heads, like 0.4. 剪除这一比例的头。")
@click.option(
    "--method",
    "by",
    type=click.Choice(["greedy", "gates", "gradient"]),
    default="greedy",
    show_default=True,
    help="How to choose: by what is lost without a head, by gates learned in training, by the gradient (quickest).",
)
@click.option("--sample", type=click.IntRange(min=2), help="Rows to measure by. [default: 200; 300 for roles]")
@click.option("--valid", multiple=True, type=_FILES, help="Measure by these rows instead.")
@click.option("--fine-tune", type=int, default=0, help="Train so many steps after heads went. 剪枝后再训练的步数。")
@click.option(
    "--learning-rate", type=float, help="Learning rate of --fine-tune at its peak. [default: a fifth of the recipe's]"
)
@click.option("--gate-steps", type=int, default=300, show_default=True, help="Steps in which gates are learned.")
@click.option("--train", "train_files", multiple=True, type=_FILES, help="Train on these files.")
@click.option("-o", "--output", type=_FILES, help="The pruned bundle. [default: BUNDLE-pruned]")
@click.option("--overwrite", is_flag=True, help="Replace what is there already. 覆盖已有的文件夹。")
@click.option("--gold", multiple=True, type=_FILES, help="Roles by gold: .conllu trees, or source, target, links.")
@click.option("--text", multiple=True, type=_FILES, help="Roles on this text; of pairs give both sides.")
@click.option("--lowercase", is_flag=True, help="Read gold text in lower case, as the model was trained.")
@click.option("--timeline", is_flag=True, help="BUNDLE is a run: when did each role appear in training?")
@click.option("--svg", type=_FILES, help="Draw roles and how alike heads are, or the timeline, to this file.")
@click.option("--all", "show_all", is_flag=True, help="Roles of every head, not only the best and the worst.")
@click.option("--json", "as_json", is_flag=True, help="The findings as JSON.")
def heads(
    bundle: Path,
    importance: bool,
    share: float | None,
    sample: int | None,
    gold: tuple[Path, ...],
    text: tuple[Path, ...],
    lowercase: bool,
    timeline: bool,
    svg: Path | None,
    show_all: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Say what every attention head does, how much depends on it; prune. 每个注意力头做什么、有多重要；剪除多余的头。

    Without --importance or --prune: a role card for every head, by published definitions, each figure beside a fixed
    baseline and the same model untrained, with an interval over texts; a head that does nothing nameable is unknown. A
    bundle of the built-in corpus brings its own gold; others take their valid text, --text or --gold: CoNLL-U trees of
    the text that is read, or word alignments (source words, target words, links: three files).

    What is measured is measured on rows of the bundle's own valid set, texts being written greedily. [In brackets] is
    where 95 % of resamples of these rows lie. Pruning takes as many rows again to say what it cost. A pruned bundle is
    an ordinary one, smaller and faster; beside it stand the curve of its scores as numbers (.curve.json) and as a
    picture (.curve.svg).

    \b
    Example · 例:
      manyheads heads runs/quickstart/bundle
      manyheads heads runs/mail/bundle --gold words.en --gold words.de --gold links.txt --lowercase
      manyheads heads runs/quickstart --timeline --svg timeline.svg
      manyheads heads runs/mail/bundle --importance
      manyheads heads runs/mail/bundle --prune 0.4
      manyheads heads runs/mail/bundle --prune 0.6 --method gates --fine-tune 300 -o runs/mail/small
    """
    from manyheads.bundle import load

    if importance + timeline + (share is not None) > 1:
        raise click.UsageError("--importance, --prune and --timeline exclude one another. Choose one.")
    options = CardOptions(gold, text, sample, lowercase, svg, as_json, show_all)
    if importance:
        _measure_importance(load(bundle), sample or _ROWS, how["valid"], as_json=as_json)
    elif share is not None:
        _prune(bundle, share, sample=sample or _ROWS, as_json=as_json, **how)
    elif timeline:
        show_timeline(bundle, options)
    else:
        show_heads(bundle, options)


def _prune(
    bundle: Path,
    share: float,
    *,
    by: str,
    sample: int,
    valid: tuple[Path, ...],
    fine_tune: int,
    learning_rate: float | None,
    gate_steps: int,
    train_files: tuple[Path, ...],
    output: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    import json
    from contextlib import ExitStack

    from manyheads.bundle import load
    from manyheads.cli.output import check_output_folder
    from manyheads.compress.curve_picture import curve_svg
    from manyheads.compress.fine_tuning import FineTuneSettings, open_fine_tuner
    from manyheads.compress.head_order import count_to_remove
    from manyheads.compress.head_removal import pruned_bundle
    from manyheads.compress.pruning import prune, pruning_to_json
    from manyheads.lens.heads import heads_of
    from manyheads.lens.row_sample import open_sample, valid_rows
    from manyheads.storage import atomic_write

    out = output or bundle.with_name(f"{bundle.name}-pruned")
    check_output_folder(out, bundle, overwrite=overwrite)
    if learning_rate is not None and not fine_tune:
        raise click.UsageError(
            "--learning-rate is for --fine-tune: say how many steps, as in --fine-tune 1500 --learning-rate 0.0015."
        )
    fine_tuning = FineTuneSettings(fine_tune, learning_rate or 0.0) if fine_tune else None
    gates = FineTuneSettings(gate_steps)
    loaded = load(bundle)
    n_removed = count_to_remove(len(heads_of(loaded.task.model)), share)
    # Half of them choose the heads; the others, which had no say in it, tell what it cost.
    rows = valid_rows(loaded, 2 * sample, valid)
    half = len(rows) // 2
    with ExitStack() as stack:
        needs_data = fine_tuning is not None or by == "gates"
        fine_tuner = stack.enter_context(open_fine_tuner(loaded, bundle, out, train_files)) if needs_data else None
        choosing, reporting = (
            stack.enter_context(open_sample(loaded.task, part, loaded.decode)) for part in (rows[:half], rows[half:])
        )
        with _Bars() as bars:
            found = prune(
                loaded.task,
                choosing,
                reporting,
                share,
                by,  # type: ignore[arg-type]
                fine_tuner=fine_tuner,
                gates=gates,
                fine_tuning=fine_tuning,
                tell=bars.tell,
            )
    pruned_bundle(loaded, found.task).save(out)
    payload: dict[str, Any] = {
        "bundle": str(bundle),
        "share": share,
        "by": by,
        "chosen_by": half,
        "measured_by": len(rows) - half,
    }
    payload |= {**_machine_info(), **pruning_to_json(found)}
    curve = out.with_name(f"{out.name}.curve.json")
    atomic_write(curve, (json.dumps(payload, ensure_ascii=False, indent=2) + "\n").encode())
    atomic_write(curve.with_suffix(".svg"), (curve_svg(found.points) + "\n").encode())
    if as_json:
        click.echo(json.dumps(payload, ensure_ascii=False, indent=2))
        return
    _show_points(found.points, n_removed, len(rows) - half)
    click.echo(f"\nPruned model · 剪枝后的模型:  {out}")
    click.echo(f"Curve · 曲线:                {curve.with_suffix('.svg')}")
    click.echo(f"Try next · 接下来:           {program_name()} evaluate {out}")


def _machine_info() -> dict[str, str]:
    """When and on what machine."""
    import os
    import platform
    from datetime import UTC, datetime

    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {n_cores} core(s)",
    }


def _show_points(points: "Any", n_removed: int, n_rows: int) -> None:
    from rich.table import Table

    from manyheads.cli.progress import make_console

    console = make_console(plain=False)
    console.print(f"{n_removed} heads removed · 已移除 {n_removed} 个头 (n = {n_rows})", style="bold", markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("heads · 头数", "parameters · 参数", points[0].score.name, "change · 变化", "speed · 速度", ""):
        table.add_column(title, justify="right")
    for point in points:
        table.add_row(*_cells(point))
    console.print(table, markup=False)


def _cells(point: "CurvePoint") -> list[str]:
    from manyheads.metrics import format_score

    score, change = point.score, point.change
    value, low, high = (format_score(score.name, one) for one in (score.value, score.low, score.high))
    moved = f"{change.difference:+.2f} [{change.low:+.2f}, {change.high:+.2f}]" if point.removed else "–"
    speed = f"× {point.speed.ratio:.2f}" if point.speed else "–"
    tuned = f"after {point.fine_tune_steps} steps · 微调后" if point.fine_tune_steps else ""
    return [str(point.n_heads), f"{point.n_parameters:,}", f"{value} [{low}, {high}]", moved, speed, tuned]


def _measure_importance(loaded: "Bundle", n_rows: int, valid: tuple[Path, ...], *, as_json: bool) -> None:
    """Gradient importance and measured ablation of every head and every attention, side by side."""
    import json
    from dataclasses import asdict

    from manyheads.lens.importance import (
        ablate,
        gradient_importance,
        rank_agreement,
        single_heads,
        sum_of_single,
        whole_attentions,
    )
    from manyheads.lens.row_sample import open_sample, valid_rows

    task = loaded.task
    rows = valid_rows(loaded, n_rows, valid)
    with open_sample(task, rows, loaded.decode) as sample, _Bars() as bars:
        gradients = gradient_importance(task, sample)
        sets = [*single_heads(task), *whole_attentions(task)]
        done = iter(range(1, len(sets) + 1))
        found = ablate(task, sample, sets, progress=lambda one: bars.tell("ablating", next(done), len(sets)))
    singles, joint = found[: len(gradients)], found[len(gradients) :]
    costs = [one.change.cost for one in singles]
    agreement = rank_agreement([one.value for one in gradients], costs) if len(costs) > 2 else None
    if as_json:
        payload = {
            **_machine_info(),
            "sample": len(rows),
            "gradient": [{**asdict(one), "head": str(one.head)} for one in gradients],
            "ablation": [{"heads": list(map(str, one.heads)), **asdict(one.change)} for one in found],
            "sum_of_single": {one.heads[0].attention: sum_of_single(one, singles) for one in joint},
            "agreement": asdict(agreement) if agreement else None,
        }
        click.echo(json.dumps(payload, ensure_ascii=False, indent=2))
        return
    _show_importance(gradients, singles, joint, agreement, len(rows))


def _show_importance(gradients: Any, singles: Any, joint: Any, agreement: Any, n_rows: int) -> None:
    from rich.table import Table

    from manyheads.cli.progress import make_console
    from manyheads.lens.importance import sum_of_single

    console = make_console(plain=False)
    name, before = singles[0].change.name, singles[0].change.before
    console.print(
        f"{name} of the whole model · 完整模型: {before:.2f} (n = {n_rows}, greedy)", style="bold", markup=False
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("head · 头", "gradient · 梯度", "", f"{name} without it · 去掉后的变化", ""):
        table.add_column(title, justify="left" if title.startswith("head") else "right")
    for gradient, single in sorted(zip(gradients, singles, strict=True), key=lambda pair: -pair[1].change.cost):
        change = single.change
        table.add_row(
            str(gradient.head),
            f"{gradient.value:.3f}",
            f"[{gradient.low:.3f}, {gradient.high:.3f}]",
            f"{change.difference:+.2f}",
            f"[{change.low:+.2f}, {change.high:+.2f}]",
        )
    console.print(table, markup=False)
    console.print("\nWhole attentions, and what their heads cost one by one · 整个注意力层与单头之和", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("attention · 注意力", "together · 一起去掉", "", "sum of single · 单头之和"):
        table.add_column(title, justify="left" if title.startswith("attention") else "right")
    for one in joint:
        change, turned = one.change, -1.0 if one.change.cost == -one.change.difference else 1.0
        table.add_row(
            one.heads[0].attention,
            f"{change.difference:+.2f}",
            f"[{change.low:+.2f}, {change.high:+.2f}]",
            f"{turned * sum_of_single(one, singles):+.2f}",
        )
    console.print(table, markup=False)
    if agreement:
        told = f"ρ = {agreement.value:.2f} [{agreement.low:.2f}, {agreement.high:.2f}]"
        console.print(f"\nGradient and ablation agree · 两种排序的一致性: {told}", markup=False)


class _Bars:
    """A bar for each thing that takes long, on the screen only."""

    def __enter__(self) -> "_Bars":
        from rich.console import Console
        from rich.progress import Progress

        screen = Console(stderr=True)
        self.progress = Progress(console=screen, transient=True, disable=not screen.is_terminal)
        self.bars: dict[str, Any] = {}
        self.progress.__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        self.progress.__exit__(*reason)

    def tell(self, what: str, done: int, total: int) -> None:
        """How far it is."""
        if what not in self.bars:
            self.bars[what] = self.progress.add_task(f"{what} · {_CHINESE[what]}", total=total)
        self.progress.update(self.bars[what], completed=done)
