"""`Recipe`: everything about a run, checked as a whole before anything starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyheads.decode import DecodeSettings
from manyheads.errors import RecipeError
from manyheads.model import PRESETS, ModelSettings
from manyheads.settings import build, did_you_mean, override, read_toml, refuse
from manyheads.tasks import Seq2SeqSettings
from manyheads.text.grammar import LANGUAGES
from manyheads.text.tokenizer import TokenizerSettings
from manyheads.train import TrainSettings


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Where the text comes from: the built-in corpus, or files (two parallel ones, one .tsv or one .jsonl)."""

    builtin: str = ""  # "en-zh" and so on
    builtin_pairs: int = 40_000
    train: tuple[str, ...] = ()
    valid: tuple[str, ...] = ()  # without it, a few pairs are kept out of training
    test: tuple[str, ...] = ()  # without it, the valid set is what is scored at the end
    source_column: str = ""  # of .tsv and .jsonl files
    target_column: str = ""

    def __post_init__(self) -> None:
        faults = []
        if not self.builtin and not self.train:
            faults.append('data.train is missing. Name your files: train = ["text.en", "text.zh"].')
        if self.builtin and self.train:
            faults.append("data.builtin and data.train are both given. Choose one.")
        if self.builtin and (len(self.languages) != 2 or not set(self.languages) <= set(LANGUAGES)):
            faults.append(f'data.builtin = "{self.builtin}" should be two of {", ".join(LANGUAGES)}, like "en-zh".')
        if self.builtin_pairs < 1000:
            faults.append(f"data.builtin_pairs = {self.builtin_pairs} must be at least 1000.")
        faults += [
            f"data.{name} names {len(files)} files. Give two parallel ones, or one .tsv or .jsonl."
            for name, files in (("train", self.train), ("valid", self.valid), ("test", self.test))
            if len(files) > 2
        ]
        refuse(faults)

    @property
    def languages(self) -> tuple[str, ...]:
        """Source and target of the built-in corpus."""
        return tuple(self.builtin.split("-"))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One run, whole."""

    model: ModelSettings
    data: DataSettings
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    task: Seq2SeqSettings = field(default_factory=Seq2SeqSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    seed: int = 1
    device: str = "auto"

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "Recipe":
        """A recipe out of TOML's tables: a model preset is filled in, the vocabulary is the tokenizer's."""
        table = {"data": {}} | dict(table)
        model = dict(table.get("model", {}))
        preset = model.pop("preset", None)
        if preset is not None and preset not in PRESETS:
            raise RecipeError(f'model.preset = "{preset}" is not a preset. {did_you_mean(str(preset), PRESETS)}')
        pieces = table.get("tokenizer", {}).get("vocabulary", TokenizerSettings.vocabulary)
        table["model"] = {"vocabulary": pieces} | PRESETS.get(preset, {}) | model
        data = table["data"]
        if data.get("builtin", "").count("-") == 1:
            source, target = data["builtin"].split("-")
            languages = {"source_language": source, "target_language": target}
            table["task"] = languages | table.get("task", {})
        return build(cls, table)


def read_recipe(path: Path, assignments: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with `section.key=value` overrides; its files are found beside it."""
    table = override(read_toml(path), assignments)
    data = table.get("data", {})
    for name in ("train", "valid", "test"):
        if isinstance(data.get(name), list):
            data[name] = [str(path.parent / str(file)) for file in data[name]]
    try:
        return Recipe.from_table(table)
    except RecipeError as error:
        raise RecipeError(*(f"{path}: {fault}" for fault in error.faults)) from None
