"""`manyheads init`: look at the data, propose a recipe for it, say what it will cost."""

import os
import re
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.program import program_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from manyheads.init.cost_estimate import Machine
    from manyheads.init.data_files import RecognizedData
    from manyheads.init.plan import Plan
    from manyheads.init.survey import DatasetStats

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_FILES = click.Path(path_type=Path)
_TASKS = ("translate", "classify", "tag", "language", "masked")
_SHOWN_LABELS = 5
_IMBALANCE = 10  # times as many rows as another label has


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
@click.option("--task", type=click.Choice(_TASKS), help="What to learn. [default: told by the data]")
@click.option("--text-column", default="", help="Column or key of the text that is read, by name or number.")
@click.option("--label-column", default="", help="Column or key of its label.")
@click.option("--tags-column", default="", help="Column or key of the tags of its words.")
@click.option("--source-column", default="", help="Column or key to translate from, by name or number.")
@click.option("--target-column", default="", help="Column or key to translate into.")
@click.option("--source-language", default="", help="Its code, like en. [default: told by names and script]")
@click.option("--target-language", default="", help="Its code, like zh.")
@click.option("--budget", type=_Budget(), help="How long training may take: 45m, 3h. [default: by the data's size]")
@click.option("--overwrite", is_flag=True, help="Replace a recipe that is there already.")
def init(
    data: tuple[Path, ...],
    output: Path,
    valid: tuple[Path, ...],
    test: tuple[Path, ...],
    task: str | None,
    text_column: str,
    label_column: str,
    tags_column: str,
    source_column: str,
    target_column: str,
    source_language: str,
    target_language: str,
    budget: float | None,
    overwrite: bool,
) -> None:
    """Look at your data, write a commented recipe for it and this machine. 查看数据，写出带注释的配方并估计时间。

    DATA is a table (.tsv, .csv, .jsonl or .parquet) of texts and labels, words and tags, or texts and translations;
    two parallel files (source first); CoNLL columns; plain text (.txt); or a folder of them. Valid and test sets that
    stand beside train.* are found. A few training steps are tried to tell how long it will take.

    \b
    Example · 例:
      manyheads init reviews.csv --label-column stars
      manyheads init train.en train.de
      manyheads init mail.tsv --source-language en --target-language zh --budget 3h -o mail.toml
    """
    from manyheads.errors import RecipeError
    from manyheads.init.cost_estimate import measure_cost, this_machine
    from manyheads.init.plan import propose
    from manyheads.init.recognition import recognize
    from manyheads.init.request import Request
    from manyheads.init.survey import compute_stats

    if output.is_dir():
        raise RecipeError(f"{output} is a folder. Name a file to write with -o, such as {output / 'recipe.toml'}.")
    if output.exists() and not overwrite:
        raise RecipeError(f"{output} is there already. Replace it with --overwrite, or name another with -o.")
    if not output.parent.is_dir():
        raise RecipeError(f"{output}: there is no folder {output.parent}.")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise RecipeError(f"{output} cannot be written: permission denied. Name another place with -o.")
    if output.resolve() in (file.resolve() for file in (*data, *valid, *test)):
        raise RecipeError(f"{output} is part of the data. Name another file with -o.")
    direction = (source_language, target_language)
    columns = {
        "source": source_column,
        "target": target_column,
        "text": text_column,
        "tags": tags_column,
        "label": label_column,
    }
    told = {field: column for field, column in columns.items() if column}
    sets = recognize(data, valid, test, Request(task=task or "", columns=told, direction=direction))
    _show_task(sets)
    found = compute_stats(sets.settings, sets.languages, direction, sets.task, sets.clean)
    _show_data(sets, found)
    machine = this_machine()
    plan = propose(found, budget, partial(measure_cost, start=time.process_time()))
    output.write_text(_recipe_text(plan, machine, output.parent), encoding="utf-8")
    _show_plan(plan, machine)
    click.echo(f"Wrote {output} (commented). Next · 下一步:  {program_name()} train {output}")


def _show_task(sets: "RecognizedData") -> None:
    from manyheads.tasks import Seq2SeqSettings

    kind = sets.task.kind
    told = {"seq2seq": "translate", "tag": "tag with intents" if getattr(sets.task, "intents", False) else "tag"}
    name = told.get(kind, kind)
    if isinstance(sets.task, Seq2SeqSettings) and sets.task.purpose != "translation":
        name = sets.task.purpose
    others = "|".join(task for task in _TASKS if task != name.partition(" ")[0])
    options = {"seq2seq": ("source", "target"), "classify": ("text", "label"), "tag": ("text", "tags")}
    columns = ", ".join(f"--{field}-column" for field in options.get(kind, ("text",)))
    reason = sets.reason if sets.reason.startswith("as ") else f"since {sets.reason}"
    click.echo(f"Task · 任务: {name}, {reason}. If it is not: --task {others}; {columns}.")


def _show_data(sets: "RecognizedData", found: "DatasetStats") -> None:
    from manyheads.init.survey import pluralized

    data = found.data
    about = "" if found.is_exact else "about "
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in found.dropped.items())
    n_dropped = sum(found.dropped.values())
    told = f" · {n_dropped:,} dropped ({dropped})" if n_dropped else ""
    if told and not found.is_exact:
        told += f" of {found.n_examined:,} looked at"
    click.echo(f"{_names(data.train)}: {about}{pluralized(found.n_read, found.noun)}{told}")
    for split, files in (("valid", data.valid), ("test", data.test)):
        beside = ", found beside" if split in sets.found_splits else ""
        if files:
            click.echo(f"  {split:<10}{_names(files)}{beside}")
    if not data.valid:
        kept_out = pluralized(found.n_held_out, "character" if found.are_documents else found.noun)
        kept_out = f"the last {kept_out}" if found.are_documents else kept_out
        click.echo(f"  {'valid':<10}{kept_out} kept out of training (name a set with --valid)")
    for heading, line in _summary_rows(found):
        click.echo(f"  {heading:<10}{line}")
    for warning in _warnings(found):
        click.echo(f"Note:     {warning}")


def _summary_rows(found: "DatasetStats") -> "Iterator[tuple[str, str]]":
    columns = [f'"{column}"' for column in found.data.columns().values()]
    if found.task.kind == "seq2seq":
        source, target = (language or "?" for language in found.languages)
        hint = "" if "?" not in (source, target) else "   (say it with --source-language and --target-language)"
        yield "languages", f"{source} → {target}{hint}"
    if columns:
        yield "columns", " → ".join(columns)
    if found.labels:
        yield "labels", _label_list(found.labels)
    if found.intents:
        yield "intents", _label_list(found.intents)
    characters = ", written with very many characters" if found.has_many_characters else ""
    if found.are_documents:
        yield "length", f"{found.n_characters:,} characters to learn from{characters}"
    elif found.task.kind != "seq2seq":
        half, most = found.length_quantile(0.5), found.length_quantile(0.99)
        yield "length", f"{half:,} characters in the middle, {most:,} of nearly the longest (99 %){characters}"


def _label_list(labels: "Mapping[str, int]") -> str:
    shown = ", ".join(f"{label} {count:,}" for label, count in list(labels.items())[:_SHOWN_LABELS])
    more = f", … {list(labels)[-1]} {list(labels.values())[-1]:,}" if len(labels) > _SHOWN_LABELS else ""
    return f"{len(labels)}: {shown}{more}"


def _warnings(found: "DatasetStats") -> "Iterator[str]":
    if found.rare_labels:
        have = "has" if len(found.rare_labels) == 1 else "have"
        few = f"{len(found.rare_labels)} of the labels {have} fewer than 5 examples"
        yield f"{few} and will hardly be learnt: {_few(found.rare_labels)}"
    counts = list((found.intents or found.labels).values())
    thing = "intent" if found.intents else "label"
    is_lopsided = counts and counts[0] > _IMBALANCE * counts[-1] and 2 * counts[0] > sum(counts)
    if is_lopsided and (found.intents or found.task.kind == "classify"):
        yield f"{counts[0] / sum(counts):.0%} have the same {thing}; whoever always says that one is right as often."
    if found.unseen_labels:
        yield f"the valid or test set has labels that are never learnt from, and will be missed: {_few(found.unseen_labels)}"


def _few(labels: "Sequence[str]") -> str:
    return ", ".join(labels[:_SHOWN_LABELS]) + (", …" if len(labels) > _SHOWN_LABELS else ".")


def _show_plan(plan: "Plan", machine: "Machine") -> None:
    from manyheads.init.plan import round_off

    proposal, estimate = plan.proposal, plan.estimate
    size = f"preset {proposal.preset}" if proposal.preset else proposal.size
    click.echo(
        f"Proposed: {size} ({_millions(estimate.n_parameters)}), {estimate.vocab_size:,} tokens, "
        f"dropout {proposal.get('model.dropout', 0.1)}, {proposal.get('train.steps', 0):,} steps "
        f"(≈ {round_off(plan.n_epochs)} epochs)"
    )
    click.echo(f"          {_cost(plan, machine)}")
    for note in _notes(plan, machine):
        click.echo(f"Note:     {note}")


def _cost(plan: "Plan", machine: "Machine") -> str:
    threads = f"{machine.n_threads} thread{'s' if machine.n_threads > 1 else ''}"
    where = threads if machine.device == "cpu" else machine.device
    return (
        f"about {_duration(plan.seconds)} on this machine ({where}), {plan.estimate.peak_memory / 1e9:.1f} GB of memory"
    )


def _notes(plan: "Plan", machine: "Machine") -> list[str]:
    from manyheads.init.plan import round_off

    notes = []
    if plan.is_cut:
        notes.append(
            f"the time allows {round_off(plan.n_epochs)} of the {round_off(plan.n_epochs_ideal)} epochs that would do "
            "this text good; for more, give --budget."
        )
    if machine.is_busy:
        notes.append(
            f"the machine is busy (load {machine.load:.1f} on {machine.n_cores} cores), and the time holds for it as "
            f"it is now; with nothing else running it would be about {_duration(plan.idle_seconds)}."
        )
    return notes


def _recipe_text(plan: "Plan", machine: "Machine", folder: Path) -> str:
    from manyheads.init.plan import to_commented_toml

    heading = [
        "Proposed by manyheads init; change what you like. 由 manyheads init 建议的配方，可随意修改。",
        f"{_millions(plan.estimate.n_parameters)} parameters, {_cost(plan, machine)}.",
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
