"""`manyheads train`: carry out a recipe."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.program import program

if TYPE_CHECKING:
    from manyheads.recipe import Event, Finished, Recipe


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

    from manyheads.recipe import read_recipe

    again = shlex.join([program(), "train", str(recipe), *overrides, *(["-o", str(output)] if output else [])])
    folder = output or Path("runs") / recipe.stem
    finished = carry_out(read_recipe(recipe, overrides), folder, again, title=str(recipe), plain=plain)
    click.echo(f"\nYour model · 你的模型:  {finished.bundle}")
    click.echo(f"Try next · 接下来:      {program()} predict {finished.bundle} YOUR-FILE")
    click.echo(f"                        {program()} evaluate {finished.bundle}")


def carry_out(recipe: "Recipe", folder: Path, again: str, *, title: str, plain: bool) -> "Finished":
    """Run a recipe into a folder with progress; `again` is the command that goes on with it if it is stopped."""
    from manyheads.cli.show import make_console, show_finished, show_run
    from manyheads.cli.stopping import StopRequest
    from manyheads.recipe import Finished, Interrupted, run
    from manyheads.recipe.report import REPORT

    console = make_console(plain=plain)
    console.print(f"manyheads · {title}", style="bold", markup=False)
    try:
        with StopRequest() as stop:
            events = _announced(run(recipe, folder, stop), f"Report · 报告:  {folder / REPORT}")
            last = show_run(events, console, stop, recipe.train.steps, plain=plain)
    except KeyboardInterrupt:
        click.echo(f"\nStopped; what was saved is whole. Go on with:  {again}", err=True)
        raise SystemExit(130) from None
    if isinstance(last, Interrupted):
        click.echo(f"\nStopped at step {last.step:,}; everything is saved. Go on with:  {again}", err=True)
        raise SystemExit(130)
    assert isinstance(last, Finished)  # the only other way a run ends
    show_finished(last, console)
    return last


def _announced(events: "Iterator[Event]", told: str) -> "Iterator[Event]":
    """The events, and a word before the first of them: until it comes, the folder may still be refused."""
    first = next(events)
    click.echo(told)
    yield first
    yield from events
