"""`manyheads init`: look at the data, propose a recipe for it, say what it will cost."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.program import program

if TYPE_CHECKING:
    from manyheads.recipe.estimating import Machine
    from manyheads.recipe.finding import Sets
    from manyheads.recipe.proposing import Plan
    from manyheads.recipe.surveying import Survey

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_FILES = click.Path(path_type=Path)


class _Budget(click.ParamType[float]):
    """Seconds, written as 45m, 3h or 1h30m."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        parts = re.findall(r"(\d+(?:\.\d+)?) ?(min|[smhd])", str(value))
        if not parts or re.sub(r"(\d+(?:\.\d+)?) ?(min|[smhd])| ", "", str(value)):
            self.fail(f"{value!r} is not a time. Write 45m, 3h or 1h30m.", param, ctx)
        return sum(float(number) * _UNITS[unit] for number, unit in parts)


@click.command(short_help="Look at your data and propose a recipe. 查看数据并建议配方。")
@click.argument("data", nargs=-1, required=True, type=_FILES)
@click.option("-o", "--output", type=_FILES, default=Path("recipe.toml"), show_default=True, help="Recipe to write.")
@click.option("--valid", multiple=True, type=_FILES, help="Valid set; for two parallel files give it twice.")
@click.option("--test", multiple=True, type=_FILES, help="Test set; for two parallel files give it twice.")
@click.option("--source-column", default="", help="Column or key to translate from, by name or number.")
@click.option("--target-column", default="", help="Column or key to translate into.")
@click.option("--source-language", default="", help="Its code, like en. [default: told by names and script]")
@click.option("--target-language", default="", help="Its code, like zh.")
@click.option("--budget", type=_Budget(), help="How long training may take: 45m, 3h. [default: by the data's size]")
@click.option("--force", is_flag=True, help="Replace a recipe that is there already.")
def init(
    data: tuple[Path, ...],
    output: Path,
    valid: tuple[Path, ...],
    test: tuple[Path, ...],
    source_column: str,
    target_column: str,
    source_language: str,
    target_language: str,
    budget: float | None,
    force: bool,
) -> None:
    """Look at your data, write a commented recipe for it and this machine. 查看数据，写出带注释的配方并估计时间。

    DATA is two parallel files (source first), one .tsv, .csv, .jsonl or .parquet file, or a folder of them. Valid and
    test sets that stand beside train.* are found. A few training steps are tried to tell how long it will take.

    \b
    Example · 例:
      manyheads init train.en train.de
      manyheads init mail.tsv --source-language en --target-language zh --budget 3h -o mail.toml
    """
    from manyheads.errors import RecipeError
    from manyheads.recipe.estimating import measure, this_machine
    from manyheads.recipe.finding import find_sets
    from manyheads.recipe.proposing import propose
    from manyheads.recipe.surveying import survey

    if output.is_dir():
        raise RecipeError(f"{output} is a folder. Name a file to write with -o, such as {output / 'recipe.toml'}.")
    if output.exists() and not force:
        raise RecipeError(f"{output} is there already. Replace it with --force, or name another with -o.")
    if not output.parent.is_dir():
        raise RecipeError(f"{output}: there is no folder {output.parent}.")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise RecipeError(f"{output} cannot be written: permission denied. Name another place with -o.")
    if output.resolve() in (file.resolve() for file in (*data, *valid, *test)):
        raise RecipeError(f"{output} is part of the data. Name another file with -o.")
    direction = (source_language, target_language)
    sets = find_sets(data, valid, test, direction, columns=(source_column, target_column))
    found = survey(sets.settings, named=sets.languages, told=direction)
    _show_data(sets, found)
    machine = this_machine()
    plan = propose(found, budget, measure)
    output.write_text(_recipe_text(plan, machine, output.parent), encoding="utf-8")
    _show_plan(plan, machine)
    click.echo(f"Wrote {output} (commented). Next · 下一步:  {program()} train {output}")


def _show_data(sets: "Sets", found: "Survey") -> None:
    from manyheads.recipe.surveying import counted

    data = found.data
    about = "" if found.is_exact else "about "
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in found.left_out.items())
    n_left_out = sum(found.left_out.values())
    told = f" · {n_left_out:,} dropped ({left_out})" if n_left_out else ""
    if told and not found.is_exact:
        told += f" of {found.n_looked_at:,} looked at"
    click.echo(f"{_names(data.train)}: {about}{counted(found.n_read, 'pair')}{told}")
    for purpose, files in (("valid", data.valid), ("test", data.test)):
        beside = ", found beside" if purpose in sets.found else ""
        if files:
            click.echo(f"  {purpose:<10}{_names(files)}{beside}")
    if not data.valid:
        kept_out = counted(found.n_held_out, "pair")
        click.echo(f"  {'valid':<10}{kept_out} kept out of training (name a set with --valid)")
    source, target = (language or "?" for language in found.languages)
    hint = "" if "?" not in (source, target) else "   (say it with --source-language and --target-language)"
    click.echo(f"  {'languages':<10}{source} → {target}{hint}")
    if data.source_column:
        click.echo(f'  {"columns":<10}"{data.source_column}" → "{data.target_column}"')


def _show_plan(plan: "Plan", machine: "Machine") -> None:
    from manyheads.recipe.proposing import round_off

    proposal, pace = plan.proposal, plan.pace
    click.echo(
        f"Proposed: preset {proposal.preset} ({_millions(pace.n_parameters)}), {pace.vocabulary:,} pieces, "
        f"dropout {proposal.get('model.dropout', 0.1)}, {proposal.get('train.steps', 0):,} steps "
        f"(≈ {round_off(plan.n_epochs)} epochs)"
    )
    click.echo(f"          {_cost(plan, machine)}")
    for note in _notes(plan, machine):
        click.echo(f"Note:     {note}")


def _cost(plan: "Plan", machine: "Machine") -> str:
    threads = f"{machine.n_threads} thread{'s' if machine.n_threads > 1 else ''}"
    where = threads if machine.device == "cpu" else machine.device
    return f"about {_duration(plan.seconds)} on this machine ({where}), {plan.pace.memory / 1e9:.1f} GB of memory"


def _notes(plan: "Plan", machine: "Machine") -> list[str]:
    from manyheads.recipe.proposing import round_off

    notes = []
    if plan.is_cut:
        notes.append(
            f"the time allows {round_off(plan.n_epochs)} of the {round_off(plan.n_epochs_wanted)} epochs that would do "
            "this text good; for more, give --budget."
        )
    if machine.is_busy:
        notes.append(
            f"the machine is busy (load {machine.load:.1f} on {machine.n_cores} cores), and the time holds for it as "
            f"it is now; with nothing else running it would be about {_duration(plan.free_seconds)}."
        )
    return notes


def _recipe_text(plan: "Plan", machine: "Machine", folder: Path) -> str:
    from manyheads.recipe.proposing import to_commented_toml

    heading = [
        "Proposed by manyheads init; change what you like. 由 manyheads init 建议的配方，可随意修改。",
        f"{_millions(plan.pace.n_parameters)} parameters, {_cost(plan, machine)}.",
        *(note[0].upper() + note[1:] for note in _notes(plan, machine)),
    ]
    return to_commented_toml(plan.proposal.with_files_from(folder), heading)


def _names(files: tuple[str, ...]) -> str:
    """a/train.en + train.de: the folder once."""
    first, *others = map(Path, files)
    return " + ".join([str(first), *(other.name if other.parent == first.parent else str(other) for other in others)])


def _millions(number: int) -> str:
    return f"{number / 1e6:.1f} M"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{max(1, round(seconds)):,} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d}"
