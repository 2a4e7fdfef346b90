"""`Proposal`: the settings of a recipe with the reason of each, and how it is written down to be read."""

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manyheads.data import CleanSettings
from manyheads.init.survey import DatasetStats
from manyheads.run.recipe import Recipe
from manyheads.settings import toml_value
from manyheads.text.files import format_suffix
from manyheads.text.tagged_readers import TAGGED_FILES

_LINE = 118
_HOUR = 3600.0
_MANY_FILES = 3


@dataclass(frozen=True)
class Choice:
    """One setting of a recipe, and reason it is so."""

    name: str  # section.key
    value: object
    reason: str


@dataclass(frozen=True)
class Proposal:
    """The settings of a recipe, in the order they are written."""

    choices: tuple[Choice, ...]
    preset: str  # "" where the model's size is given in full
    n_epochs: float
    size: str = ""  # of the model, in words
    budget: float = _HOUR  # seconds that are worth spending
    min_steps: int = 600  # a handful of rows is met more often than so many epochs have steps

    def get(self, name: str, default: Any) -> Any:
        """The value of a setting, or another where the proposal leaves it at its default."""
        return next((choice.value for choice in self.choices if choice.name == name), default)

    def with_files_from(self, folder: Path) -> "Proposal":
        """As written into a folder: files within it are named from there, others in full."""
        names = ("data.train", "data.valid", "data.test")
        return replace(
            self,
            choices=tuple(
                replace(choice, value=[_named_from(folder, file) for file in _by_folder(choice.value)])
                if choice.name in names and isinstance(choice.value, list)
                else choice
                for choice in self.choices
            ),
        )

    def table(self) -> dict[str, Any]:
        """As TOML's nested tables."""
        found: dict[str, Any] = {}
        for choice in self.choices:
            section, _, key = choice.name.rpartition(".")
            (found.setdefault(section, {}) if section else found)[key] = choice.value
        return found

    def recipe(self) -> Recipe:
        """As a checked recipe."""
        return Recipe.from_table(self.table())


_COLUMNS = {
    "source": "the column to translate from, or to answer",
    "target": "the column to translate into, or of the answers",
    "text": "the column that is read",
    "tags": "the column of the tags of its words",
    "label": "the column of labels",
}


def data_choices(stats: DatasetStats) -> Iterable[Choice]:
    """Which files and columns, and what is left out of them."""
    data = stats.data
    yield Choice("data.train", list(data.train), "what to learn from")
    if data.valid:
        yield Choice("data.valid", list(data.valid), "watched while training, never learnt from")
    if data.test:
        yield Choice("data.test", list(data.test), "scored once, at the end")
    for field, column in data.columns().items():
        yield Choice(f"data.{field}_column", column, _COLUMNS[field])
    if stats.clean.max_ratio != CleanSettings().max_ratio:
        yield Choice("clean.max_ratio", stats.clean.max_ratio, "one text may be as much longer as it likes")


def schedule_choices(
    *, rate: float, rate_reason: str, validation_reason: str, ema_decay: float = 0.999
) -> Iterable[Choice]:
    """How to train, but for the batches; steps and what follows from them are put in by `with_steps`."""
    yield Choice("train.schedule", "cosine", "the learning rate climbs, then falls to 0 at the last step")
    yield Choice("train.learning_rate", rate, rate_reason)
    yield Choice("train.warmup", 1, "steps to climb")
    yield Choice("train.validate_every", 1, validation_reason)
    yield Choice("train.save_every", 1, "what a power cut can cost you, in steps")
    yield Choice("train.ema_decay", ema_decay, "a running mean of the weights: less noise")
    yield Choice("train.average_snapshots", 1, "the running mean needs no further averaging")


def _by_folder(files: list[str]) -> list[str]:
    """Many files that a recipe may name together, by their folder: all texts of one, or tagged sentences in parts."""
    parent = Path(files[0]).parent
    if any(Path(file).parent != parent for file in files) or len(files) < _MANY_FILES:
        return files
    if tuple(Path(file).name for file in files) == TAGGED_FILES:
        return [str(parent)]
    texts = [str(path) for path in parent.glob("**/*") if format_suffix(path) == ".txt"]
    return [str(parent)] if sorted(texts) == sorted(files) else files


def _named_from(folder: Path, file: str) -> str:
    full, root = Path(file).resolve(), folder.resolve()
    return str(full.relative_to(root)) if full.is_relative_to(root) else str(full)


def with_steps(proposal: Proposal, steps: int, per_epoch: float) -> Proposal:
    """A proposal with so many steps, of which an epoch has `per_epoch`, and with what depends on them."""
    warmup = 4000 if proposal.preset == "base" else 600
    often = _round(steps / 25)
    values = {
        "train.steps": steps,
        "train.warmup": max(1, min(warmup, steps // 8)),
        "train.validate_every": often,
        "train.save_every": often,
    }
    choices = [replace(choice, value=values.get(choice.name, choice.value)) for choice in proposal.choices]
    seen = f"about {round_off(steps / per_epoch)} times through the text"
    return replace(
        proposal,
        choices=tuple(replace(choice, reason=seen) if choice.name == "train.steps" else choice for choice in choices),
    )


def round_off(number: float) -> str:
    """A number of epochs as people say it: 0.83, 5.7, 45."""
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def _round(number: float) -> int:
    """Down to one of 1, 2, 5, 10, 20, 50 …"""
    if number < 1:
        return 1
    scale = 10 ** int(math.log10(number))
    return int(next(part for part in (5, 2, 1) if part * scale <= number) * scale)


def to_commented_toml(proposal: Proposal, heading: Iterable[str]) -> str:
    """The proposal as a recipe to read: a heading, then each setting with its reason."""
    lines = [f"# {line}".rstrip() for line in heading]
    section = ""
    for name in dict.fromkeys(choice.name.rpartition(".")[0] for choice in proposal.choices):
        section = name
        rows = [choice for choice in proposal.choices if choice.name.rpartition(".")[0] == section]
        lines += ["", f"[{section}]"]
        settings = [f"{choice.name.rpartition('.')[2]} = {toml_value(choice.value)}" for choice in rows]
        column = max((len(setting) for setting in settings if len(setting) <= 40), default=0)
        for choice, setting in zip(rows, settings, strict=True):
            line = f"{setting:<{column}}  # {choice.reason}"
            if not choice.reason:
                lines.append(setting)
            elif len(line) <= _LINE:
                lines.append(line)
            else:
                lines += [*textwrap.wrap(choice.reason, _LINE, initial_indent="# ", subsequent_indent="# "), setting]
    return "\n".join(lines) + "\n"
