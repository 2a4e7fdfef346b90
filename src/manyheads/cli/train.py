"""`manyheads train`: run a recipe, in one process or in several."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from manyheads import language
from manyheads.cli.rendering.output import program_name, quoted
from manyheads.messages import _

if TYPE_CHECKING:
    from manyheads.run import Event, Finished, Recipe
    from manyheads.training import ProcessGroup


@click.command(
    short_help=_("Train a model from a recipe."),
    help=_("""Train a model from a recipe, score it, and write its bundle.

        Run the same command again to resume an interrupted run. With few rows, --folds 5 says how good the recipe is:
        it trains five models, each without a fifth of the rows, and scores each on the rows it has not seen.

        \b
        Examples:
          manyheads train recipe.toml
          manyheads train recipe.toml train.steps=20000 model.dropout=0.3 -o runs/second
          manyheads train recipe.toml --folds 5
          manyheads train recipe.toml --processes 4
        """),
)
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]…")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=_("Run folder. [default: runs/NAME]"),
)
@click.option(
    "--folds",
    type=click.IntRange(2, 100),
    help=_("Cross-validate: train this many models, each scored on its own part of the rows."),
)
@click.option(
    "--processes",
    type=click.IntRange(1, 1024),
    help=_("Train with this many processes on this machine. On several machines, use torchrun."),
)
@click.option(
    "--restarts",
    type=click.IntRange(0, 1000),
    default=3,
    show_default=True,
    help=_("With --processes: how often all are restarted from the last checkpoint after one died."),
)
@click.option("--plain", is_flag=True, help=_("Print plain lines instead of a live progress bar."))
def train(
    recipe: Path,
    overrides: tuple[str, ...],
    output: Path | None,
    folds: int | None,
    processes: int | None,
    restarts: int,
    plain: bool,
) -> None:
    """Train a model from a recipe."""
    import shlex

    from manyheads.settings import read_toml

    read_toml(recipe)  # raises before torch is imported
    from manyheads.run import read_recipe
    from manyheads.training import ProcessGroup

    words = ["train", str(recipe), *overrides, *(["-o", str(output)] if output else [])]
    if folds and (processes or int(os.environ.get("WORLD_SIZE", "1")) > 1):
        raise click.UsageError(
            _("--folds trains one model after another and takes one process. Leave --processes out.")
        )
    if folds:
        resume_command = shlex.join([program_name(), *words, "--folds", str(folds)])
        _cross_validate(recipe, overrides, folds, output, resume_command, plain=plain)
        return
    folder = output or Path("runs") / recipe.stem
    if processes and "RANK" not in os.environ:
        read_recipe(recipe, overrides)  # a faulty one is reported once, before the processes start
        start_processes([*words, *(["--plain"] if plain else [])], processes, restarts)
    if processes:
        words += ["--processes", str(processes)]
    group = ProcessGroup.join()
    if not group.is_first:
        run_as_follower(recipe, overrides, folder, group)
    checked = read_recipe(recipe, overrides)
    resume_command = shlex.join([program_name(), *words])
    finished = run_with_progress(checked, folder, resume_command, title=str(recipe), plain=plain, group=group)
    bundle = quoted(finished.bundle)
    lines = [
        (_("Your model:"), str(finished.bundle)),
        (_("Try next:"), f"{program_name()} predict {bundle} " + _("YOUR-FILE")),
        ("", f"{program_name()} evaluate {bundle}"),
    ]
    click.echo()
    echo_table(lines)


def _cross_validate(
    path: Path, overrides: tuple[str, ...], n_folds: int, output: Path | None, resume_command: str, *, plain: bool
) -> None:
    """Train one model for each fold, unless it is finished, and print the score of all rows together."""
    import json
    import shlex
    from dataclasses import asdict

    from manyheads.cli.rendering.progress import make_console
    from manyheads.cli.rendering.scorecard import show_scores
    from manyheads.metrics import display_name, format_score
    from manyheads.run import RunFolder, check_same_recipe, fold_recipes, read_recipe, score_folds
    from manyheads.storage import atomic_write

    folder = output or Path("runs") / f"{path.stem}-folds"
    bundles = []
    for number, recipe in enumerate(fold_recipes(read_recipe(path, overrides), n_folds), start=1):
        run_folder = RunFolder(folder / f"fold-{number}")
        check_same_recipe(recipe, run_folder.path)
        if not run_folder.bundle.exists():
            title = _("{recipe} · fold {number} of {n_folds}", recipe=path, number=number, n_folds=n_folds)
            run_with_progress(recipe, run_folder.path, resume_command, title=title, plain=plain)
            click.echo()
        bundles.append(run_folder.bundle)
    result = score_folds(bundles)
    atomic_write(folder / "folds.json", json.dumps(asdict(result), indent=2).encode())
    click.echo(_("Cross-validation in {n_folds} folds", n_folds=n_folds))
    for number, score in enumerate(result.folds, start=1):
        name, value = _("fold {number}", number=number), format_score(score.name, score.value)
        click.echo(f"  {name}  {display_name(score.name)} {value}  n = {score.n:,}")
    show_scores({"cross-validation": [result.score]}, make_console(plain=plain))
    click.echo()
    next_command = shlex.join([program_name(), "train", str(path), *overrides])
    echo_table([(_("Train the final model:"), next_command)])


def echo_table(rows: list[tuple[str, str]], gap: int = 2) -> None:
    """Print rows of a label and a text, aligned by their width on the screen."""
    from rich.cells import cell_len

    width = max(cell_len(label) for label, _text in rows) + gap
    for label, text in rows:
        click.echo(f"{label}{' ' * (width - cell_len(label))}{text}")


def run_with_progress(
    recipe: "Recipe",
    folder: Path,
    resume_command: str,
    *,
    title: str,
    plain: bool,
    group: "ProcessGroup | None" = None,
) -> "Finished":
    """Run a recipe in a folder and show its progress; `resume_command` is printed if the run is interrupted."""
    from manyheads.cli.rendering.progress import make_console, show_finished, show_run
    from manyheads.report import follow
    from manyheads.run import Finished, Interrupted, RunFolder, StopRequest, run

    console = make_console(plain=plain)
    console.print(f"manyheads · {title}", style="bold", markup=False)
    report_line = _("Report: {path}", path=RunFolder(folder).report_file)
    try:
        with StopRequest() as stop:
            events = _announce_first(follow(run(recipe, folder, stop, group), folder), report_line)
            last = show_run(events, console, recipe.train, plain=plain)
    except KeyboardInterrupt:
        _exit_stopped(RunFolder(folder).newest_step or 0, recipe.train.steps, resume_command)
    if isinstance(last, Interrupted):
        _exit_stopped(last.step, recipe.train.steps, resume_command)
    assert isinstance(last, Finished)  # the only other way a run ends
    show_finished(last, console)
    return last


def _exit_stopped(step: int, n_steps: int, resume_command: str) -> NoReturn:
    """Say what is stored of an interrupted run and how to continue, and exit."""
    if step == 0:
        stopped = _("Stopped before the first checkpoint. Start again with:")
    elif step < n_steps:
        stopped = _("Stopped; everything up to step {step:,} is saved. Resume with:", step=step)
    else:
        stopped = _(
            "Stopped after the last step; all {step:,} steps are saved. For scores and bundle, finish with:", step=step
        )
    click.echo(f"\n{stopped}  {resume_command}", err=True)
    raise SystemExit(130)


def _announce_first(events: "Iterator[Event]", line: str) -> "Iterator[Event]":
    """Yield the events; print the line before the first one, since until then the folder may be refused."""
    first = next(events)
    click.echo(line)
    yield first
    yield from events


def start_processes(words: Sequence[str], n_processes: int, n_restarts: int) -> NoReturn:
    """Run a command of manyheads in several processes, restart them after a crash, and exit as they do."""
    from manyheads.run.supervisor import supervise

    os.environ[language.VARIABLE] = language.current()
    # Rank 0 shows how to resume, so it has to know how it was started.
    command = [sys.executable, "-m", "manyheads", *words, "--processes", str(n_processes)]
    sys.exit(supervise(command, n_processes, n_restarts, lambda line: click.echo(line, err=True)))


def run_as_follower(recipe: Path, overrides: Sequence[str], folder: Path, group: "ProcessGroup") -> NoReturn:
    """Take part in a run as a process other than rank 0, and exit without a word: rank 0 reports."""
    from manyheads.errors import LostProcessError, ManyheadsError
    from manyheads.run import follow_run, read_recipe
    from manyheads.run.follower import refuse_start
    from manyheads.run.stopping import stop_signals

    def request_stop(number: int, frame: FrameType | None) -> None:
        if group.is_stop_requested:
            sys.exit(130)
        group.is_stop_requested = True

    for number in stop_signals():
        signal.signal(number, request_stop)
    try:
        with refuse_start(group):
            checked = read_recipe(recipe, overrides)
        follow_run(checked, folder, group)
    except LostProcessError:
        if not group.has_leader_failed():
            raise
        sys.exit(1)
    except (ManyheadsError, OSError):  # rank 0 reports it
        sys.exit(1)
    sys.exit(0)
