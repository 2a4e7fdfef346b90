"""`manyheads heads example|prune`: search an example, write the pruned bundle and its curve, show tables or JSON."""

import json
import platform
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from manyheads.bundle import load
from manyheads.cli.rendering.output import check_output_folder, program_name, quoted
from manyheads.cli.rendering.progress import make_console
from manyheads.cli.train import echo_table
from manyheads.compress.fine_tuning import FineTuneSettings, make_fine_tuner
from manyheads.compress.pruning import Method, PruningReport, count_to_remove, prune
from manyheads.compress.pruning_curve import CurvePoint, curve_svg
from manyheads.compress.trade_off import Compressed
from manyheads.cores import count_cores
from manyheads.lens.heads import heads_of
from manyheads.lens.scored_rows import open_sample, valid_rows
from manyheads.lens.visible_ablation import VisibleAblation, find_visible_ablation
from manyheads.messages import Message, _, _n
from manyheads.metrics import display_name, format_change, format_score
from manyheads.storage import atomic_write

_STAGES = {
    "removing heads": Message("removing heads"),
    "measuring": Message("measuring"),
    "learning gates": Message("learning gates"),
    "fine-tuning": Message("fine-tuning"),
    "ablating": Message("ablating"),
    "scoring without heads": Message("scoring without heads"),
}


@dataclass(frozen=True, kw_only=True)
class PruneOptions:
    """The options of the command."""

    share: float
    method: Method
    sample: int
    valid: tuple[Path, ...]
    fine_tune: int | None
    learning_rate: float | None
    gate_steps: int
    train_files: tuple[Path, ...]
    max_cost: float
    output: Path | None
    overwrite: bool
    as_json: bool


def prune_bundle(bundle: Path, options: PruneOptions) -> None:
    """Prune a bundle, write the result and show its curve."""
    out = options.output or bundle.with_name(f"{bundle.name}-pruned")
    check_output_folder(out, bundle, overwrite=options.overwrite)
    compressed, n_choosing, n_measuring = _run(bundle, out, options)
    compressed.bundle.save(out)
    payload: dict[str, Any] = {
        "bundle": str(bundle),
        "share": options.share,
        "method": options.method,
        "n_choosing": n_choosing,
        "n_measuring": n_measuring,
        **machine_info(),
        **compressed.report.to_json(),
    }
    curve = out.with_name(f"{out.name}.curve.json")
    atomic_write(curve, (json.dumps(payload, ensure_ascii=False, indent=2) + "\n").encode())
    atomic_write(curve.with_suffix(".svg"), (curve_svg(compressed.report.points) + "\n").encode())
    if options.as_json:
        click.echo(json.dumps(payload, ensure_ascii=False, indent=2))
        return
    _show_points(compressed.report.points, len(compressed.report.order), n_measuring)
    click.echo()
    echo_table(
        [
            (_("Pruned bundle:"), str(out)),
            (_("Curve:"), str(curve.with_suffix(".svg"))),
            (_("Try next:"), f"{program_name()} evaluate {quoted(out)}"),
        ]
    )


def _run(bundle: Path, out: Path, options: PruneOptions) -> tuple[Compressed[PruningReport], int, int]:
    """Prune the bundle; also return how many rows chose the heads and how many measured the cost."""
    if options.learning_rate is not None and options.fine_tune is None:
        raise click.UsageError(
            _("--learning-rate needs --fine-tune STEPS, for example --fine-tune 1500 --learning-rate 0.0015.")
        )
    fine_tuning = FineTuneSettings(options.fine_tune, options.learning_rate) if options.fine_tune else None
    loaded = load(bundle)
    count_to_remove(len(heads_of(loaded.task.model)), options.share)  # an invalid share fails before any work
    rows = valid_rows(loaded, 2 * options.sample, options.valid)
    half = len(rows) // 2
    needs_training = fine_tuning is not None or options.method == "gates"
    fine_tuner = make_fine_tuner(loaded, bundle, out, options.train_files) if needs_training else None
    with ExitStack() as stack:
        choosing, reporting = (
            stack.enter_context(open_sample(loaded.task, part, loaded.decode)) for part in (rows[:half], rows[half:])
        )
        bars = stack.enter_context(StageBars())
        compressed = prune(
            loaded,
            choosing,
            reporting,
            options.share,
            options.method,
            fine_tuner=fine_tuner,
            gates=FineTuneSettings(options.gate_steps),
            fine_tuning=fine_tuning,
            max_cost=options.max_cost,
            progress=bars.update,
        )
    return compressed, half, len(rows) - half


def machine_info() -> dict[str, str]:
    """Return the date and a description of this machine."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {count_cores()} core(s)",
    }


def _show_points(points: Sequence[CurvePoint], n_removed: int, n_rows: int) -> None:
    console = make_console(plain=False)
    title = _n("1 head removed (n = {n_rows})", "{n} heads removed (n = {n_rows})", n_removed, n_rows=n_rows)
    console.print(title, style="bold", markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in (
        _("heads"),
        _("parameters"),
        str(display_name(points[0].score.name)),
        _("change"),
        _("speed"),
        "",
    ):
        table.add_column(heading, justify="right")
    for point in points:
        table.add_row(*_cells(point))
    console.print(table, markup=False)


def _cells(point: CurvePoint) -> list[str]:
    score, change = point.score, point.change
    value, low, high = (format_score(score.name, number) for number in (score.value, score.low, score.high))
    difference = " ".join(format_change(change.difference, change.low, change.high)) if point.removed else "–"
    speed = f"× {point.speed.ratio:.2f}" if point.speed else "–"
    steps = point.fine_tune_steps
    note = _n("fine-tuned for 1 step", "fine-tuned for {n} steps", steps) if steps else ""
    return [str(point.n_heads), f"{point.n_parameters:,}", f"{value} [{low}, {high}]", difference, speed, note]


class StageBars:
    """A progress bar for each stage, on a terminal only."""

    def __enter__(self) -> "StageBars":
        console = Console(stderr=True)
        self.progress = Progress(console=console, transient=True, disable=not console.is_terminal)
        self.bars: dict[str, TaskID] = {}
        self.progress.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.progress.__exit__(*error)

    def update(self, stage: str, done: int, total: int) -> None:
        """Show how much of a stage is done."""
        if stage not in self.bars:
            self.bars[stage] = self.progress.add_task(str(_STAGES[stage]), total=total)
        self.progress.update(self.bars[stage], completed=done)


def show_example(bundle: Path, *, as_json: bool) -> None:
    """Search the example of a bundle and print it."""
    found = find_visible_ablation(load(bundle))
    if as_json:
        table = None if found is None else {**asdict(found), "head": str(found.head)}
        click.echo(json.dumps(table, ensure_ascii=False, indent=2))
        return
    echo_table(example_rows(bundle, found))


def example_rows(bundle: Path, found: VisibleAblation | None) -> list[tuple[str, str]]:
    """Return rows of a label and a text: what changes without the head, and how to see it."""
    label = _("Look inside:")
    if found is None:
        nothing = _("no single head changes an answer. How much depends on each:")
        return [(label, nothing), ("", f"{program_name()} heads importance {bundle}")]
    text = json.dumps(found.text, ensure_ascii=False)
    return [
        (label, _describe(found)),
        *(("", f"  {line}") for line in (found.text, found.answer, found.without)),
        (_("In the browser:"), f"{program_name()} lens {bundle} \\"),
        ("", f"  {shell_word(found.text)} --off {found.head}"),
        (_("In Python:"), f"model = manyheads.load({json.dumps(str(bundle), ensure_ascii=False)})"),
        ("", f"text = {text}"),
        ("", f'model.ablate("{found.head}").predict([text])'),
    ]


def shell_word(text: str) -> str:
    """Quote a text for a shell: with double quotes, which most sentences allow."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def _describe(found: VisibleAblation) -> str:
    before, after = found.before, found.after
    if not before:
        change = _("{after} is added", after=after)
    elif not after:
        change = _("{before} is missing", before=before)
    else:
        change = _("{before} becomes {after}", before=before, after=after)
    return _("switch off {head}, and {change}:", head=found.head, change=change)
