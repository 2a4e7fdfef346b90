"""`Recipe`: everything about a run, checked as a whole before anything starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyheads.data import CleanSettings
from manyheads.decode import DecodeSettings
from manyheads.errors import RecipeError
from manyheads.model import PRESETS, ModelSettings
from manyheads.settings import build, did_you_mean, misfits, override, read_toml, refuse, show
from manyheads.tasks import Seq2SeqSettings
from manyheads.text.grammar import LANGUAGES
from manyheads.text.tokenizer import TokenizerSettings
from manyheads.train import TrainSettings

_MOST_WEIGHT = 1000.0


@dataclass(frozen=True, kw_only=True)
class MixSettings:
    """One of several corpora that are trained on together."""

    files: tuple[str, ...]
    weight: float = 1.0  # how often a pair comes in an epoch; 0.25 is one in four, drawn anew each time
    source_column: str = ""  # without them, those of [data]
    target_column: str = ""

    def __post_init__(self) -> None:
        faults = misfits(self, "data.mix.")
        if not faults and len(self.files) not in (1, 2):
            faults.append(
                f"data.mix.files names {len(self.files)} files. Give two parallel ones, or one that holds pairs."
            )
        if not faults and not 0 < self.weight <= _MOST_WEIGHT:
            faults.append(
                f"data.mix.weight = {self.weight} of {', '.join(self.files)} must be more than 0 and at most "
                f"{_MOST_WEIGHT:.0f}."
            )
        refuse(faults)


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Where the text comes from: the built-in corpus, files, or a mix of several corpora.

    Files: two parallel ones, or one .tsv, .csv, .jsonl or .parquet; all but Parquet also compressed, as .gz or .zst.
    """

    folder: str = ""  # where the files are, seen from the recipe's own folder
    builtin: str = ""  # "en-zh" and so on
    builtin_pairs: int = 40_000
    train: tuple[str, ...] = ()
    mix: tuple[MixSettings, ...] = ()  # instead of train: several corpora, each with a weight
    valid: tuple[str, ...] = ()  # without it, a few pairs are kept out of training
    test: tuple[str, ...] = ()  # without it, the valid set is what is scored at the end
    source_column: str = ""  # of .tsv, .csv, .jsonl and .parquet files
    target_column: str = ""

    def __post_init__(self) -> None:
        refuse(misfits(self, "data.") or [*self._builtin_faults(), *self._file_faults()])

    def _builtin_faults(self) -> list[str]:
        if not self.builtin:
            return []
        faults = []
        source, _, target = self.builtin.partition("-")
        if source == target or not {source, target} <= set(LANGUAGES):
            faults.append(f'data.builtin = "{self.builtin}" should be two of {", ".join(LANGUAGES)}, like "en-zh".')
        if self.builtin_pairs < 1000:
            faults.append(f"data.builtin_pairs = {self.builtin_pairs} must be at least 1000.")
        faults += [
            f"data.builtin and data.{name} are both given. Choose one: the built-in corpus brings its own sets."
            for name in ("train", "mix", "valid", "test", "source_column", "target_column")
            if getattr(self, name)
        ]
        return faults

    def _file_faults(self) -> list[str]:
        if self.train and self.mix:
            return ["data.train and data.mix are both given. Choose one: put the files of train into the mix."]
        if not self.builtin and not self.train and not self.mix:
            return ['data.train is missing. Name your files: train = ["text.en", "text.zh"].']
        return [
            f"data.{name} names {len(files)} files. Give two parallel ones, or one .tsv, .csv, .jsonl or .parquet."
            for name, files in (("train", self.train), ("valid", self.valid), ("test", self.test))
            if len(files) > 2
        ]

    @property
    def corpora(self) -> tuple[MixSettings, ...]:
        """The files that are trained on, as a mix: of one where they are given by `train`."""
        return self.mix or ((MixSettings(files=self.train),) if self.train else ())

    @property
    def languages(self) -> tuple[str, ...]:
        """Source and target of the built-in corpus."""
        return tuple(self.builtin.split("-"))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One run, whole."""

    model: ModelSettings
    data: DataSettings
    clean: CleanSettings = field(default_factory=CleanSettings)
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    task: Seq2SeqSettings = field(default_factory=Seq2SeqSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    seed: int = 1
    device: str = "auto"

    def __post_init__(self) -> None:
        faults = misfits(self)
        if not faults and not 0 <= self.seed < 2**31:
            faults.append(f"seed = {self.seed} must be at least 0 and less than 2,147,483,648.")
        if not faults and self.model.shape != "encoder-decoder":
            faults.append(f'model.shape = "{self.model.shape}" cannot translate. Use "encoder-decoder".')
        if not faults and self.data.builtin:
            given = (self.task.source_language, self.task.target_language)
            if given != self.data.languages:
                faults.append(f'data.builtin = "{self.data.builtin}" does not fit task languages "{"-".join(given)}".')
            if self.clean != CleanSettings():
                faults.append("clean cannot be set: the built-in corpus is clean, and taken whole. Leave it out.")
        refuse(faults)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "Recipe":
        """A recipe out of TOML's tables: a model preset is filled in, the vocabulary is the tokenizer's."""
        table = {"data": {}, "model": {}} | dict(table)
        model, data, tokenizer, task = (table.get(name, {}) for name in ("model", "data", "tokenizer", "task"))
        # What is not even a table is left to `build`, which says so.
        if isinstance(model, Mapping) and isinstance(tokenizer, Mapping):
            pieces = tokenizer.get("vocabulary", TokenizerSettings.vocabulary)
            table["model"] = {"vocabulary": pieces} | _fill_in_preset(model)
        if isinstance(data, Mapping) and isinstance(task, Mapping) and isinstance(data.get("builtin"), str):
            source, _, target = data["builtin"].partition("-")
            table["task"] = {"source_language": source, "target_language": target} | dict(task)
        return build(cls, table)


def _fill_in_preset(model: Mapping[str, Any]) -> dict[str, Any]:
    model = dict(model)
    if "preset" not in model:
        return model
    preset = model.pop("preset")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise RecipeError(f"model.preset = {show(preset)} is not a preset. {did_you_mean(str(preset), PRESETS)}")
    return PRESETS[preset] | model


def read_recipe(path: Path, assignments: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with `section.key=value` overrides; files are found in `data.folder`, or beside it."""
    table = override(read_toml(path), assignments)
    data = table.get("data")
    if isinstance(data, dict) and isinstance(data.get("folder", ""), str):
        folder = path.parent / data.pop("folder", "")  # the files are named in full from here on
        for name in ("train", "valid", "test"):
            _find_in(folder, data, name)
        mix = data.get("mix")
        for entry in mix if isinstance(mix, list) else []:
            if isinstance(entry, dict):
                _find_in(folder, entry, "files")
    try:
        return Recipe.from_table(table)
    except RecipeError as error:
        raise RecipeError(*(f"{path}: {fault}" for fault in error.faults)) from None


def _find_in(folder: Path, table: dict[str, Any], name: str) -> None:
    if isinstance(table.get(name), list):
        table[name] = [str((folder / str(file)).resolve()) for file in table[name]]
