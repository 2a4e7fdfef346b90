"""`Recipe`: everything about a run, checked as a whole before anything starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyheads.bundle import model_settings
from manyheads.corpora import LANGUAGES
from manyheads.data import CleanSettings
from manyheads.decode import DecodeSettings
from manyheads.errors import RecipeError
from manyheads.model import PRESETS, ModelSettings
from manyheads.settings import build, did_you_mean, override, raise_faults, read_toml, toml_value, type_faults
from manyheads.tasks import TASKS, Seq2Seq, Seq2SeqSettings, Task, TaskSettings
from manyheads.text.documents import document_files
from manyheads.text.tagged_readers import TAGGED_FILES
from manyheads.text.tokenizer import TokenizerSettings
from manyheads.train import TrainSettings

_MOST_WEIGHT = 1000.0
_COLUMNS = ("source", "target", "text", "label", "tags")


@dataclass(frozen=True, kw_only=True)
class MixSettings:
    """One of several corpora that are trained on together."""

    files: tuple[str, ...]
    weight: float = 1.0  # how often a row comes in an epoch; 0.25 is one in four, drawn anew each time
    source_column: str = ""  # without any, those of [data]
    target_column: str = ""
    text_column: str = ""
    label_column: str = ""
    tags_column: str = ""

    def __post_init__(self) -> None:
        faults = type_faults(self, "data.mix.")
        if not faults and not self.files:
            faults.append("data.mix.files names no file.")
        if not faults and not 0 < self.weight <= _MOST_WEIGHT:
            faults.append(
                f"data.mix.weight = {self.weight} of {', '.join(self.files)} must be more than 0 and at most "
                f"{_MOST_WEIGHT:.0f}."
            )
        raise_faults(faults)


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Where the text comes from: the built-in corpus, files, or a mix of several corpora.

    Files: parallel ones, or one .tsv, .csv, .jsonl or .parquet; all but Parquet also compressed, as .gz or .zst.
    """

    folder: str = ""  # where the files are, seen from the recipe's own folder
    builtin: str = ""  # "en-zh" and so on; "en" for tasks of one language
    builtin_rows: int = 40_000
    train: tuple[str, ...] = ()
    mix: tuple[MixSettings, ...] = ()  # instead of train: several corpora, each with a weight
    valid: tuple[str, ...] = ()  # without it, a few rows are kept out of training
    test: tuple[str, ...] = ()  # without it, the valid set is what is scored at the end
    valid_fraction: float = (
        0.0  # the share kept out of training where there is no valid set; 0: as the task thinks best
    )
    source_column: str = ""  # of .tsv, .csv, .jsonl and .parquet files
    target_column: str = ""
    text_column: str = ""
    label_column: str = ""
    tags_column: str = ""

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "data.") or [*self._builtin_faults(), *self._file_faults()])

    def _builtin_faults(self) -> list[str]:
        if not self.builtin:
            return []
        faults = []
        if len(set(self.languages)) < len(self.languages) or not set(self.languages) <= set(LANGUAGES):
            faults.append(f'data.builtin = "{self.builtin}" should be two of {", ".join(LANGUAGES)}, like "en-zh".')
        if self.builtin_rows < 1000:
            faults.append(f"data.builtin_rows = {self.builtin_rows} must be at least 1000.")
        faults += [
            f"data.builtin and data.{name} are both given. Choose one: the built-in corpus brings its own sets."
            for name in ("train", "mix", "valid", "test", *(f"{field}_column" for field in _COLUMNS))
            if getattr(self, name)
        ]
        return faults

    def _file_faults(self) -> list[str]:
        if self.train and self.mix:
            return ["data.train and data.mix are both given. Choose one: put the files of train into the mix."]
        if not self.builtin and not self.train and not self.mix:
            return ['data.train is missing. Name your files: train = ["text.en", "text.zh"].']
        if not 0 <= self.valid_fraction <= 0.5:
            return [f"data.valid_fraction = {self.valid_fraction} must be at least 0 and at most 0.5."]
        return []

    @property
    def corpora(self) -> tuple[MixSettings, ...]:
        """The files that are trained on, as a mix: of one where they are given by `train`."""
        return self.mix or ((MixSettings(files=self.train),) if self.train else ())

    def columns(self, corpus: MixSettings | None = None) -> dict[str, str]:
        """Which column each field stands in, where that is told: by the corpus itself, or else for all."""
        own = corpus is not None and any(getattr(corpus, f"{field}_column") for field in _COLUMNS)
        told = {field: getattr(corpus if own else self, f"{field}_column") for field in _COLUMNS}
        return {field: column for field, column in told.items() if column}

    @property
    def sets(self) -> dict[str, tuple[str, ...]]:
        """Every set of files, by the name it has in the recipe."""
        mixed = {f"mix (number {number})": corpus.files for number, corpus in enumerate(self.mix, start=1)}
        named = {"train": self.train, **mixed, "valid": self.valid, "test": self.test}
        return {name: files for name, files in named.items() if files}

    @property
    def languages(self) -> tuple[str, ...]:
        """Those of the built-in corpus: source and target, or the only one."""
        return tuple(self.builtin.split("-"))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One run, whole."""

    model: ModelSettings
    data: DataSettings
    clean: CleanSettings = field(default_factory=CleanSettings)
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    task: TaskSettings = field(default_factory=Seq2SeqSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    decode: DecodeSettings = field(default_factory=DecodeSettings)
    seed: int = 1
    device: str = "auto"
    init_from: str = ""  # a bundle to begin from: its tokens, and every weight that has a place here
    freeze: tuple[str, ...] = ()  # parts that stay as they are, by name: "encoder.0", "source_embedding"

    def __post_init__(self) -> None:
        faults = type_faults(self)
        if not faults and not 0 <= self.seed < 2**31:
            faults.append(f"seed = {self.seed} must be at least 0 and less than 2,147,483,648.")
        if not faults:
            faults += [*self._shape_faults(), *self._data_faults()]
        raise_faults(faults)

    @property
    def task_class(self) -> type[Task]:
        """The task's class."""
        return TASKS[self.task.kind]

    def _shape_faults(self) -> list[str]:
        faults = []
        if self.model.shape != self.task_class.shape:
            faults.append(
                f'model.shape = "{self.model.shape}" does not fit task.kind = "{self.task.kind}". '
                f'Use "{self.task_class.shape}".'
            )
        if self.train.validation_metric and self.train.validation_metric not in self.task_class.metrics:
            known = ", ".join(self.task_class.metrics)
            faults.append(
                f'train.validation_metric = "{self.train.validation_metric}" is no score of this task. There is: {known}.'
            )
        return faults

    def _data_faults(self) -> list[str]:
        fields = self.task_class.fields(self.task)
        faults = [
            f'data.{field}_column is not for task.kind = "{self.task.kind}", whose fields are {", ".join(fields)}.'
            for field in self.data.columns()
            if field not in fields
        ]
        if fields == ("source", "target"):
            faults += [
                f"data.{name} names {len(files)} files. Give two parallel ones, or one .tsv, .csv, .jsonl or .parquet."
                for name, files in self.data.sets.items()
                if len(files) > 2
            ]
        if not self.data.builtin:
            return faults
        if isinstance(self.task, Seq2SeqSettings):
            given = (self.task.source_language, self.task.target_language)
            if given != self.data.languages:
                faults.append(f'data.builtin = "{self.data.builtin}" does not fit task languages "{"-".join(given)}".')
        elif len(self.data.languages) != 1:
            faults.append(
                f'data.builtin = "{self.data.builtin}" should be one of {", ".join(LANGUAGES)} for this task.'
            )
        if self.clean != CleanSettings():
            faults.append("clean cannot be set: the built-in corpus is clean, and taken whole. Leave it out.")
        return faults

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "Recipe":
        """A recipe out of TOML's tables: a model preset is filled in, the vocabulary is the tokenizer's."""
        table = {"data": {}, "model": {}} | dict(table)
        model, data, tokenizer, task = (table.get(name, {}) for name in ("model", "data", "tokenizer", "task"))
        # What is not even a table is left to `build`, which says so.
        kind = task.get("kind", "seq2seq") if isinstance(task, Mapping) else "seq2seq"
        if not isinstance(kind, str) or kind not in TASKS:
            raise RecipeError(f"task.kind = {toml_value(kind)} is not a task. {did_you_mean(str(kind), TASKS)}")
        if isinstance(model, Mapping) and isinstance(tokenizer, Mapping):
            tokens = tokenizer.get("vocab_size", TokenizerSettings.vocab_size)
            table["model"] = {"vocab_size": tokens, "shape": TASKS[kind].shape} | _fill_in_preset(model)
        builtin = data.get("builtin") if isinstance(data, Mapping) else None
        if kind == "seq2seq" and isinstance(task, Mapping) and isinstance(builtin, str):
            source, _, target = builtin.partition("-")
            table["task"] = {"source_language": source, "target_language": target} | dict(task)
        return build(cls, table)


def _fill_in_preset(model: Mapping[str, Any]) -> dict[str, Any]:
    model = dict(model)
    if "preset" not in model:
        return model
    preset = model.pop("preset")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise RecipeError(f"model.preset = {toml_value(preset)} is not a preset. {did_you_mean(str(preset), PRESETS)}")
    return PRESETS[preset] | model


def read_recipe(path: Path, assignments: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with `section.key=value` overrides; files are found in `data.folder`, or beside it."""
    table = override(read_toml(path), assignments)
    if isinstance(table.get("init_from"), str) and table["init_from"]:
        _use_bundle_sizes(path.parent / table["init_from"], table)
    data = table.get("data")
    if isinstance(data, dict) and isinstance(data.get("folder", ""), str):
        folder = path.parent / data.pop("folder", "")  # the files are named in full from here on
        task = table.get("task")
        parallel = TAGGED_FILES if isinstance(task, Mapping) and task.get("intents") else TAGGED_FILES[:2]
        for name in ("train", "valid", "test"):
            _find_in(folder, data, name, parallel)
        mix = data.get("mix")
        for entry in mix if isinstance(mix, list) else []:
            if isinstance(entry, dict):
                _find_in(folder, entry, "files", parallel)
    try:
        return Recipe.from_table(table)
    except RecipeError as error:
        raise RecipeError(*(f"{path}: {fault}" for fault in error.faults)) from None


def _use_bundle_sizes(bundle: Path, table: dict[str, Any]) -> None:
    """Fill in the model's settings from the bundle that it begins from."""
    table["init_from"] = str(bundle.resolve())
    told = table.get("model", {})
    if isinstance(told, Mapping):
        settings = {name: value for name, value in model_settings(bundle).items() if name != "shape"}
        if isinstance(settings.get("kept_heads"), dict):  # of a pruned model: those of the parts that are here too
            task = table.get("task")
            kind = task.get("kind") if isinstance(task, Mapping) else None
            shape = TASKS[kind].shape if isinstance(kind, str) and kind in TASKS else Seq2Seq.shape
            stacks = shape.split("-")
            settings["kept_heads"] = {
                name: numbers
                for name, numbers in settings["kept_heads"].items()
                if name.partition(".")[0] in stacks and (len(stacks) > 1 or not name.endswith(".cross"))
            }
        table["model"] = settings | _fill_in_preset(told)
        if isinstance(table.setdefault("tokenizer", {}), dict):
            table["tokenizer"]["vocab_size"] = settings["vocab_size"]


def _find_in(folder: Path, table: dict[str, Any], name: str, parallel: Sequence[str]) -> None:
    """Name files in full; a folder stands for the tagged sentences in it, in `parallel` files, or for all its texts."""
    if not isinstance(table.get(name), list):
        return
    files: list[Path] = []
    for path in ((folder / str(file)).resolve() for file in table[name]):
        if not path.is_dir():
            files.append(path)
        elif all((path / part).is_file() for part in parallel):
            files += [path / part for part in parallel]
        else:
            files += document_files([path])
    table[name] = [str(file) for file in files]
