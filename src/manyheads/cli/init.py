"""`manyheads init`: inspect the data, propose a recipe for it and this machine, estimate the time."""

import os
import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.rendering.output import open_output, padded, program_name, quoted
from manyheads.errors import RecipeError
from manyheads.language import using
from manyheads.messages import _, _n
from manyheads.text.reading.formats import table_suffixes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from manyheads.proposals.cost_estimate import Machine
    from manyheads.proposals.fitted_recipe import Plan
    from manyheads.proposals.recognition import RecognizedData
    from manyheads.tasks.pretrained import Pretrained
    from manyheads.tasks.proposal import Survey

_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_FILES = click.Path(path_type=Path)
_SHOWN_LABELS = 5
_FEW_ROWS = 3000  # without a test set, cross-validation is proposed


class _Budget(click.ParamType[float]):
    """Seconds, written as 45m, 3h or 1h30m."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        parts = re.findall(r"(\d+(?:\.\d+)?) ?(min|[smhd])", str(value))
        if not parts or re.sub(r"(\d+(?:\.\d+)?) ?(min|[smhd])| ", "", str(value)):
            self.fail(_("{value!r} is not a time. Write 45m, 3h or 1h30m.", value=value), param, ctx)
        return sum(float(number) * _SECONDS[suffix] for number, suffix in parts)


class _TaskName(click.ParamType[str]):
    """The command-line name of a registered task; `--help` does not import the tasks."""

    name = "TASK"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        names = _task_names()
        if value not in names:
            choices = ", ".join(map(repr, names))
            self.fail(_("{value!r} is not one of {choices}.", value=value, choices=choices), param, ctx)
        return str(value)


def _task_names() -> list[str]:
    from manyheads.tasks import TASKS

    return [task.init.cli_name for task in TASKS.values() if task.init.is_offered]


@click.command(
    short_help=_("Inspect your data and propose a recipe."),
    help=_(
        """Inspect your data, and write a commented recipe for it and for this machine.

        DATA is a table ({suffixes}) of texts and labels, words and tags, or texts and translations; two parallel files
        (source first); a CoNLL file; plain text (.txt); or a folder of them. Valid and test sets beside train.* are
        found. A few training steps are run to estimate the time.

        \b
        Example:
          manyheads init reviews.csv --label-column stars
          manyheads init train.en train.de
          manyheads init mail.tsv --source-language en --target-language zh --budget 3h -o mail.toml
        """,
        suffixes=table_suffixes(),
    ),
)
@click.argument("data", nargs=-1, required=True, type=_FILES)
@click.option(
    "-o",
    "--output",
    type=_FILES,
    default=Path("recipe.toml"),
    show_default=True,
    help=_("Recipe to write."),
)
@click.option(
    "--valid",
    multiple=True,
    type=_FILES,
    help=_("Valid set; give it twice for two parallel files."),
)
@click.option(
    "--test",
    multiple=True,
    type=_FILES,
    help=_("Test set; give it twice for two parallel files."),
)
@click.option(
    "--task",
    type=_TaskName(),
    help=_("What to learn: translate, classify, tag, language, masked, … [default: recognized from the data]"),
)
@click.option(
    "--text-column",
    default="",
    help=_("Column or key of the text, by name or number."),
)
@click.option("--label-column", default="", help=_("Column or key of the label."))
@click.option("--tags-column", default="", help=_("Column or key of the words' tags."))
@click.option(
    "--scheme",
    type=click.Choice(["IOB1", "IOB2", "BIOES", "BMES", "IO", "words"]),
    help=_("How tags encode spans; words: a tag for each word, such as parts of speech. [default: detected]"),
)
@click.option(
    "--source-column",
    default="",
    help=_("Column or key to translate from, by name or number."),
)
@click.option("--target-column", default="", help=_("Column or key to translate into."))
@click.option(
    "--source-language",
    default="",
    help=_("Language code of the source, like en. [default: from names and script]"),
)
@click.option("--target-language", default="", help=_("Language code of the target, like zh."))
@click.option(
    "--budget",
    type=_Budget(),
    help=_("How long training may take on this machine when idle: 45m, 3h. [default: by the data's size]"),
)
@click.option(
    "--from",
    "origin",
    type=_FILES,
    help=_("Start from a pretrained encoder: a bundle, or a folder of Hugging Face, which is imported."),
)
@click.option("--overwrite", is_flag=True, help=_("Replace an existing recipe."))
def init(
    data: tuple[Path, ...],
    output: Path,
    valid: tuple[Path, ...],
    test: tuple[Path, ...],
    task: str | None,
    text_column: str,
    label_column: str,
    tags_column: str,
    scheme: str | None,
    source_column: str,
    target_column: str,
    source_language: str,
    target_language: str,
    budget: float | None,
    origin: Path | None,
    overwrite: bool,
) -> None:
    """Propose a recipe."""
    from manyheads.text.reading.files import check_readable

    for file in (*data, *valid, *test):
        if not file.exists():
            check_readable(file)  # raises before torch is imported
    from manyheads.proposals.cost_estimate import measure_cost, this_machine
    from manyheads.proposals.fitted_recipe import propose
    from manyheads.proposals.recognition import recognize
    from manyheads.proposals.survey import survey
    from manyheads.tasks import TASKS
    from manyheads.tasks.task_init import Request

    _check_output(output, (*data, *valid, *test), overwrite=overwrite)
    columns = {
        "source": source_column,
        "target": target_column,
        "text": text_column,
        "tags": tags_column,
        "label": label_column,
    }
    direction = (source_language, target_language)
    request = Request(
        task=task or "",
        columns={name: column for name, column in columns.items() if column},
        direction=direction,
        scheme=scheme or "",
    )
    pretrained = None if origin is None else _open_pretrained(origin, output, overwrite=overwrite)
    sets = recognize(data, valid, test, request)
    _show_task(sets)
    if pretrained is not None:
        TASKS[sets.task.kind].init.check_origin()
    surveyed = survey(
        sets.settings, sets.task, sets.clean, named_languages=sets.languages, requested_languages=direction
    )
    _show_data(sets, surveyed)
    machine = this_machine()
    plan = propose(sets.settings, surveyed, budget, partial(measure_cost, start=time.process_time()), pretrained)
    with open_output(output) as stream:
        stream.write(_recipe_text(plan, output.parent))
    _show_plan(plan, machine)
    command = f"{program_name()} train {quoted(output)}"
    click.echo(_("Wrote {output} (commented). Next:  {command}", output=output, command=command))
    if surveyed.n_rows < _FEW_ROWS and not surveyed.are_documents and not sets.settings.test:
        click.echo(
            _("With so few rows, cross-validation scores the recipe better:  {command} --folds 5", command=command)
        )


def _check_output(output: Path, data: "Sequence[Path]", *, overwrite: bool) -> None:
    """Raise RecipeError if the recipe cannot be written."""
    if output.is_dir():
        raise RecipeError(
            _(
                "{output} is a folder. Name a file to write with -o, such as {example}.",
                output=output,
                example=output / "recipe.toml",
            )
        )
    if output.exists() and not overwrite:
        raise RecipeError(
            _("{output} exists. Replace it with --overwrite, or name another file with -o.", output=output)
        )
    if not output.parent.is_dir():
        raise RecipeError(
            _(
                "{output}: there is no folder {folder}. Create it, or name another with -o.",
                output=output,
                folder=output.parent,
            )
        )
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise RecipeError(_("{output} cannot be written: permission denied. Name another file with -o.", output=output))
    if output.resolve() in (file.resolve() for file in data):
        raise RecipeError(_("{output} is part of the data. Name another file with -o.", output=output))


def _open_pretrained(origin: Path, output: Path, *, overwrite: bool) -> "Pretrained":
    """Load the bundle to start from; a folder of Hugging Face is imported into a bundle beside the recipe first."""
    from manyheads.bundle import load
    from manyheads.interop import import_huggingface
    from manyheads.storage import MANIFEST
    from manyheads.tasks.pretrained import Pretrained

    if (origin / "bundle" / MANIFEST).exists():
        origin = origin / "bundle"
    if (origin / MANIFEST).exists():
        return Pretrained.of(load(origin).task, str(origin.resolve()))
    imported = import_huggingface(origin)
    pretrained = Pretrained.of(imported.task, str(origin))
    bundle = output.parent / f"{output.stem}-encoder"
    if bundle.exists() and not (overwrite and (bundle / MANIFEST).exists()):
        raise RecipeError(
            _(
                "{bundle} exists, where {origin} would be imported to. Replace it with --overwrite, use it with --from "
                "{bundle}, or name another recipe with -o.",
                bundle=bundle,
                origin=origin,
            )
        )
    imported.save(bundle)
    click.echo(_("Imported {origin} into {bundle}.", origin=origin, bundle=bundle))
    return replace(pretrained, path=str(bundle.resolve()))


def _show_task(sets: "RecognizedData") -> None:
    from manyheads.tasks import TASKS

    part = TASKS[sets.task.kind].init
    others = "|".join(name for name in _task_names() if name != part.cli_name)
    columns = ", ".join(f"--{name}-column" for name in part.columns)
    name = part.display_name(sets.task)
    reason = sets.reason if sets.reason.startswith("as ") else _("since {reason}", reason=sets.reason)
    click.echo(
        _(
            "Task: {name}, {reason}. To change it: --task {others}; {columns}.",
            name=name,
            reason=reason,
            others=others,
            columns=columns,
        )
    )


def _show_data(sets: "RecognizedData", survey: "Survey") -> None:
    from manyheads.proposals.survey import count_of

    data = sets.settings
    click.echo(_("{files}: {rows}", files=_names(data.train), rows=_rows(sets, survey)))
    for split, files in (("valid", data.valid), ("test", data.test)):
        beside = _(", found beside the training data") if split in sets.found_splits else ""
        if files:
            click.echo(f"  {split:<10}{_names(files)}{beside}")
    if not data.valid:
        if survey.are_documents:
            characters = count_of("character", survey.n_held_out)
            line = _("the last {characters} of the training data (name a set with --valid)", characters=characters)
        else:
            rows = count_of(survey.noun, survey.n_held_out)
            line = _("{rows} of the training data (name a set with --valid)", rows=rows)
        click.echo(f"  {'valid':<10}{line}")
    for heading, line in _summary_rows(sets, survey):
        click.echo(f"  {padded(heading, 10)}{line}")
    for warning in _warnings(survey):
        click.echo(f"{_note()}{warning}")


def _note() -> str:
    return padded(_("Note:"), 10)


def _rows(sets: "RecognizedData", survey: "Survey") -> str:
    """How many rows to train on there are and why others are kept out, in the words of `train` and `doctor`."""
    from manyheads.metrics import rows_name
    from manyheads.tasks import TASKS

    n_kept = survey.n_examined - sum(survey.dropped.values())
    rows = str(rows_name(TASKS[sets.task.kind].noun, n_kept, survey.dropped))
    if survey.is_exact:
        return rows
    return _("about {n_read:,} rows; of a sample: {rows}", n_read=survey.n_read, rows=rows)


def _summary_rows(sets: "RecognizedData", survey: "Survey") -> "Iterator[tuple[str, str]]":
    if survey.languages is not None:
        source, target = (language or "?" for language in survey.languages)
        hint = _("   (set them with --source-language and --target-language)")
        yield _("languages"), f"{source} → {target}{hint if '?' in (source, target) else ''}"
    columns = [f'"{column}"' for column in sets.settings.columns().values()]
    if columns:
        yield _("columns"), " → ".join(columns)
    if survey.counts.labels:
        yield _("labels"), _label_list(survey.counts.labels)
    if survey.counts.intents:
        yield _("intents"), _label_list(survey.counts.intents)
    characters = _(", in a script with many characters") if survey.has_many_characters else ""
    if survey.are_documents:
        yield _("length"), _("{n:,} characters to train on", n=survey.n_characters) + characters
    elif survey.languages is None:
        median, longest = survey.length_quantile(0.5), survey.length_quantile(0.99)
        yield (
            _("length"),
            _("median {median:,} characters, 99th percentile {longest:,}", median=median, longest=longest) + characters,
        )


def _label_list(labels: "Mapping[str, int]") -> str:
    shown = ", ".join(f"{label} {count:,}" for label, count in list(labels.items())[:_SHOWN_LABELS])
    more = f", … {list(labels)[-1]} {list(labels.values())[-1]:,}" if len(labels) > _SHOWN_LABELS else ""
    return f"{len(labels)}: {shown}{more}"


def _warnings(survey: "Survey") -> "Iterator[str]":
    from manyheads.tasks.labels import is_lopsided

    rare = survey.rare_labels
    if rare:
        yield _n(
            "1 of the labels has fewer than 5 examples and will hardly be learned: {labels}",
            "{n} of the labels have fewer than 5 examples and will hardly be learned: {labels}",
            len(rare),
            labels=_few(rare),
        )
    counts = list((survey.counts.intents if survey.row_label == "intent" else survey.counts.labels).values())
    if survey.row_label and is_lopsided(counts):
        share = f"{counts[0] / sum(counts):.0%}"
        if survey.row_label == "intent":
            yield _("{share} of the rows have the same intent: always predicting it is right as often.", share=share)
        else:
            yield _("{share} of the rows have the same label: always predicting it is right as often.", share=share)
    if survey.unseen_labels:
        yield _(
            "the valid or test set has labels that the training set lacks: {labels}", labels=_few(survey.unseen_labels)
        )


def _few(labels: "Sequence[str]") -> str:
    shown = ", ".join(labels[:_SHOWN_LABELS])
    return f"{shown}, …" if len(labels) > _SHOWN_LABELS else _("{labels}.", labels=shown)


def _show_plan(plan: "Plan", machine: "Machine") -> None:
    from manyheads.cli.rendering.scorecard import format_interval
    from manyheads.proposals.fitted_recipe import round_epochs

    proposal, estimate = plan.proposal, plan.estimate
    size = _("preset {preset}", preset=proposal.preset) if proposal.preset else proposal.size
    if estimate.baseline:
        name, score = estimate.baseline
        click.echo(_("Baseline: {name}: {score}", name=name, score=format_interval(score)))
    vocabulary, millions = (
        _count_tokens(estimate.vocab_size, is_exact=estimate.is_exact),
        _millions(estimate.n_parameters),
    )
    if not plan.recipe.train.steps:
        text = _(
            "Proposed: {size} ({millions}), {vocabulary}, frozen; logistic regression fits the output layer",
            size=size,
            millions=millions,
            vocabulary=vocabulary,
        )
    else:
        text = _(
            "Proposed: {size} ({millions}), {vocabulary}, dropout {dropout}, {steps:,} steps (≈ {epochs} epochs)",
            size=size,
            millions=millions,
            vocabulary=vocabulary,
            dropout=proposal.get("model.dropout", 0.1),
            steps=proposal.get("train.steps", 0),
            epochs=round_epochs(plan.n_epochs),
        )
    click.echo(text)
    click.echo(f"          {_cost(plan, machine)}")
    for note in (*_notes(plan), *_load_notes(plan)):
        click.echo(f"{_note()}{note}")


def _count_tokens(vocab_size: int, *, is_exact: bool) -> str:
    if is_exact:
        return _("{vocab_size:,} tokens", vocab_size=vocab_size)
    return _("about {vocab_size:,} tokens", vocab_size=vocab_size)


def _cost(plan: "Plan", machine: "Machine") -> str:
    where = _n("1 thread", "{n} threads", machine.n_threads) if machine.device == "cpu" else machine.device
    memory = f"{plan.estimate.peak_memory / 1e9:.1f} GB"
    idle, now = _duration(plan.idle_seconds), _duration(plan.seconds)
    values = {"idle": idle, "where": where, "memory": memory}
    if plan.recipe.train.patience is not None:
        cost = _("at most about {idle} on this machine when idle ({where}); {memory} of memory", **values)
    else:
        cost = _("about {idle} on this machine when idle ({where}); {memory} of memory", **values)
    if not plan.estimate.n_busy:
        return cost
    load = _n(
        "beside its present load (1 busy process) about {now}",
        "beside its present load ({n} busy processes) about {now}",
        plan.estimate.n_busy,
        now=now,
    )
    return f"{cost}\n          {load}"


def _notes(plan: "Plan") -> list[str]:
    """What the data and the budget leave out, in the language in use; the same on every machine."""
    from manyheads.proposals.fitted_recipe import round_epochs

    notes = [str(note) for note in plan.proposal.notes]
    if plan.estimate.n_too_long:
        n = plan.estimate.n_too_long
        if plan.estimate.is_exact:
            notes.append(_n("1 more row is kept out: too long.", "{n:,} more rows are kept out: too long.", n))
        else:
            notes.append(
                _n("about 1 more row is kept out: too long.", "about {n:,} more rows are kept out: too long.", n)
            )
    if plan.is_cut:
        epochs, ideal = round_epochs(plan.n_epochs), round_epochs(plan.n_epochs_ideal)
        notes.append(
            _(
                "the time allows {epochs} of the {ideal} epochs that would suit this text; for more, give --budget.",
                epochs=epochs,
                ideal=ideal,
            )
        )
    return notes


def _load_notes(plan: "Plan") -> list[str]:
    """That a busy machine does not keep to the budget."""
    if plan.budget is None or plan.seconds <= plan.budget or not plan.estimate.n_busy:
        return []
    return [_("the budget is for an idle machine; this one is busy and takes longer.")]


def _recipe_text(plan: "Plan", folder: Path) -> str:
    """The commented recipe; its comments are in English, and the same whatever else the machine is doing."""
    from manyheads.proposals.recipe_text import recipe_text, with_files_from

    with using("en"):
        heading = [
            "Proposed by manyheads init; change what you like.",
            f"{_millions(plan.estimate.n_parameters)} parameters.",
            *(note[0].upper() + note[1:] for note in _notes(plan)),
        ]
    return recipe_text(with_files_from(plan.proposal, folder), heading)


def _names(files: tuple[str, ...]) -> str:
    """File names, the folder once: a/train.en + train.de."""
    first, *others = map(Path, files)
    return " + ".join([str(first), *(other.name if other.parent == first.parent else str(other) for other in others)])


def _millions(number: int) -> str:
    return f"{number / 1e6:.1f} M"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return _("{seconds:,} s", seconds=max(1, round(seconds)))
    if minutes < 90:
        return _("{minutes} min", minutes=minutes)
    return _("{hours} h {minutes:02d}", hours=minutes // 60, minutes=minutes % 60)
