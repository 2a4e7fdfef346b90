"""`manyheads train`: carry out a recipe."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.program import program_name

if TYPE_CHECKING:
    from manyheads.run import Event, Finished, Recipe


@click.command(short_help="Train a model by a recipe. 按配方训练。")
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Run folder. [default: runs/NAME]")
@click.option("--plain", is_flag=True, help="Plain lines instead of a live bar, for logs.")
def train(recipe: Path, overrides: tuple[str, ...], output: Path | None, plain: bool) -> None:
    """Train a model by a recipe, score it, write its bundle. 按配方训练、评分并写出模型包。

    Run the same command again to go on where it stopped. 再次运行同一命令即可从中断处继续。

    \b
    Example · 例:
      manyheads train recipe.toml
      manyheads train recipe.toml train.steps=20000 model.dropout=0.3 -o runs/second
    """
    import shlex

    from manyheads.run import read_recipe

    resume_command = shlex.join(
        [program_name(), "train", str(recipe), *overrides, *(["-o", str(output)] if output else [])]
    )
    folder = output or Path("runs") / recipe.stem
    finished = run_with_progress(read_recipe(recipe, overrides), folder, resume_command, title=str(recipe), plain=plain)
    click.echo(f"\nYour model · 你的模型:  {finished.bundle}")
    click.echo(f"Try next · 接下来:      {program_name()} predict {finished.bundle} YOUR-FILE")
    click.echo(f"                        {program_name()} evaluate {finished.bundle}")


def run_with_progress(recipe: "Recipe", folder: Path, resume_command: str, *, title: str, plain: bool) -> "Finished":
    """Run a recipe into a folder with progress; `resume_command` is the command that goes on with it if it is stopped."""
    from manyheads.cli.progress import make_console, show_finished, show_run
    from manyheads.cli.stopping import StopRequest
    from manyheads.report import REPORT, follow
    from manyheads.run import Finished, Interrupted, run

    console = make_console(plain=plain)
    console.print(f"manyheads · {title}", style="bold", markup=False)
    try:
        with StopRequest() as stop:
            events = _announce_first(follow(run(recipe, folder, stop), folder), f"Report · 报告:  {folder / REPORT}")
            last = show_run(events, console, stop, recipe.train.steps, plain=plain)
    except KeyboardInterrupt:
        click.echo(f"\nStopped; what was saved is whole. Go on with:  {resume_command}", err=True)
        raise SystemExit(130) from None
    if isinstance(last, Interrupted):
        click.echo(f"\nStopped at step {last.step:,}; everything is saved. Go on with:  {resume_command}", err=True)
        raise SystemExit(130)
    assert isinstance(last, Finished)  # the only other way a run ends
    show_finished(last, console)
    return last


def _announce_first(events: "Iterator[Event]", told: str) -> "Iterator[Event]":
    """The events, and a word before the first of them: until it comes, the folder may still be refused."""
    first = next(events)
    click.echo(told)
    yield first
    yield from events
