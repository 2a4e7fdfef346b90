"""`Recipe`: all settings of a run, read from TOML and checked as a whole before training starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from manyheads.bundle import model_settings
from manyheads.corpora import LANGUAGES
from manyheads.data import CleanSettings
from manyheads.decode import DecodeSettings
from manyheads.errors import RecipeError
from manyheads.messages import _
from manyheads.model import PRESETS, ModelSettings
from manyheads.settings import (
    Range,
    Seed,
    build,
    did_you_mean,
    override,
    raise_faults,
    read_toml,
    shown,
    type_faults,
)
from manyheads.tasks import DEFAULT_KIND, TASKS, Task, TaskSettings
from manyheads.text.reading.documents import document_files
from manyheads.text.reading.formats import table_suffixes
from manyheads.text.reading.remote_files import is_remote, local_copy
from manyheads.text.tokens.tokenizer import TokenizerSettings
from manyheads.text.tokens.tokenizer_training import MIN_VOCAB_SIZE
from manyheads.training import TrainSettings

_MAX_WEIGHT = 1000.0
_COLUMNS = ("source", "target", "text", "label", "tags")
_RENAMED = {  # keys of recipes before version 0.1, refused with their new names
    "data.builtin_pairs": "data.builtin_rows",
    "data.held_out": "data.valid_fraction",
    "decode.max_extra": "decode.max_new_tokens (which counts all new tokens)",
    "model.norm_place": "model.norm_placement",
    "model.vocabulary": "tokenizer.vocab_size",
    "task.phrase_dropout": "task.ngram_dropout",
    "task.phrases": "task.ngrams",
    "task.share": "task.mask_probability",
    "tokenizer.signs": "tokenizer.chinese_characters",
    "tokenizer.vocabulary": "tokenizer.vocab_size",
    "train.accumulate": "train.accumulation_steps",
    "train.average": "train.average_snapshots",
    "train.clip": "train.clip_norm",
    "train.ema": "train.ema_decay",
    "train.head_timeline": "train.keep_all_snapshots",
    "train.watch": "train.validation_metric",
}


@dataclass(frozen=True, kw_only=True)
class MixSettings:
    """One corpus of a mix: its files and how often they are sampled."""

    files: tuple[str, ...]  # the corpus: two parallel files, or one table
    weight: float = 1.0  # how often a row occurs in an epoch; 0.25 samples another quarter of the rows each epoch
    source_column: str | None = None  # column of the source; if no column is set here, those of [data] apply
    target_column: str | None = None  # column of the target
    text_column: str | None = None  # column of the text, for tasks without a target
    label_column: str | None = None  # column of the label or intent
    tags_column: str | None = None  # column of the tags

    def __post_init__(self) -> None:
        faults = type_faults(self, "data.mix.")
        if not faults and not self.files:
            faults.append("data.mix.files names no file.")
        if not faults and not 0 < self.weight <= _MAX_WEIGHT:
            faults.append(
                f"data.mix.weight = {self.weight} of {', '.join(self.files)} must be more than 0 and at most "
                f"{_MAX_WEIGHT:.0f}."
            )
        raise_faults(faults)


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """The source of the text: the built-in corpus, files, or a mix of several corpora.

    A set is two parallel files, or one .tsv, .csv, .jsonl or .parquet file; all but Parquet may be compressed (.gz,
    .zst).
    """

    folder: str | None = None  # folder of the files, relative to the recipe; by default the recipe's own
    builtin: str | None = None  # language pair of the built-in corpus, such as "en-zh"; "en" for monolingual tasks
    builtin_rows: Annotated[int, Range(1000, 10_000_000)] = 40_000  # training rows of the built-in corpus
    train: tuple[str, ...] = ()  # files of the training set
    mix: tuple[MixSettings, ...] = ()  # instead of train: several corpora, each with a weight
    valid: tuple[str, ...] = ()  # files of the validation set; without it, a part of the training rows is held out
    test: tuple[str, ...] = ()  # files of the test set; without it, the final scores are those of the validation set
    # Fraction of the training rows held out if valid is not set; default 1/20.
    valid_fraction: Annotated[float, Range(greater_than=0, at_most=0.5)] | None = None
    folds: Annotated[int, Range(2, 100)] | None = None  # parts of the rows; set by `manyheads train --folds`
    fold: Annotated[int, Range(1, 100)] | None = None  # the part to test on; the others are trained on
    source_column: str | None = None  # column of the source in a table, by name or number
    target_column: str | None = None  # column of the target
    text_column: str | None = None  # column of the text, for tasks without a target
    label_column: str | None = None  # column of the label or intent
    tags_column: str | None = None  # column of the tags

    def __post_init__(self) -> None:
        faults = type_faults(self, "data.")
        raise_faults(faults or [*self._builtin_faults(), *self._file_faults(), *self._fold_faults()])

    def _builtin_faults(self) -> list[str]:
        if self.builtin is None:
            return []
        faults = []
        if len(set(self.languages)) < len(self.languages) or not set(self.languages) <= set(LANGUAGES):
            known = ", ".join(LANGUAGES)
            faults.append(
                _(
                    'data.builtin = {builtin} should be two of {known}, like "en-zh".',
                    builtin=shown(self.builtin),
                    known=known,
                )
            )
        faults += [
            f"data.builtin and data.{name} are both given. Choose one: the built-in corpus has its own sets."
            for name in ("train", "mix", "valid", "test", *(f"{field}_column" for field in _COLUMNS))
            if getattr(self, name)
        ]
        return faults

    def _file_faults(self) -> list[str]:
        if self.train and self.mix:
            return ["data.train and data.mix are both given. Choose one: add the files of train to the mix."]
        if self.builtin is None and not self.train and not self.mix:
            return ['data.train is missing. Name your files: train = ["text.en", "text.zh"].']
        return []

    def _fold_faults(self) -> list[str]:
        if self.fold is None and self.folds is None:
            return []
        if self.fold is None or self.folds is None or self.fold > self.folds:
            return [f"data.fold = {self.fold} must be at least 1 and at most data.folds = {self.folds}. Set both."]
        names = [name for name in ("test", "builtin") if getattr(self, name)]
        return [f"data.fold and data.{name} are both given. Choose one: a fold is the test set." for name in names]

    @property
    def corpora(self) -> tuple[MixSettings, ...]:
        """The training files as a mix; `train` is a mix of one corpus."""
        return self.mix or ((MixSettings(files=self.train),) if self.train else ())

    def columns(self, corpus: MixSettings | None = None) -> dict[str, str]:
        """Return the column of each field that has one: those of the corpus if it sets any, else those of [data]."""
        has_own = corpus is not None and any(getattr(corpus, f"{field}_column") for field in _COLUMNS)
        columns = {field: getattr(corpus if has_own else self, f"{field}_column") for field in _COLUMNS}
        return {field: column for field, column in columns.items() if column}

    @property
    def sets(self) -> dict[str, tuple[str, ...]]:
        """The files of each set, by its name in the recipe."""
        mixed = {f"mix (number {number})": corpus.files for number, corpus in enumerate(self.mix, start=1)}
        sets = {"train": self.train, **mixed, "valid": self.valid, "test": self.test}
        return {name: files for name, files in sets.items() if files}

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the built-in corpus: source and target, or a single one."""
        return tuple((self.builtin or "").split("-"))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All settings of a run."""

    model: ModelSettings  # the Transformer to build
    data: DataSettings  # the text to train and test on
    clean: CleanSettings = field(default_factory=CleanSettings)  # which training rows are dropped
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)  # how text becomes tokens
    task: TaskSettings = field(default_factory=TASKS[DEFAULT_KIND].settings_type)  # what the model learns, and its loss
    train: TrainSettings = field(default_factory=TrainSettings)  # how long and how fast to train
    decode: DecodeSettings = field(default_factory=DecodeSettings)  # how text is generated
    seed: Seed = 1  # seed of everything random: held-out rows, tokenizer sample, initial weights, batches, dropout
    device: str = "auto"  # "cpu", "cuda", "cuda:1", "mps"; "auto": the fastest available
    init_from: str | None = None  # bundle to initialize from: its tokenizer, and every weight that this model has too
    freeze: tuple[str, ...] = ()  # parts of the model that are not trained, such as "encoder.0" or "source_embedding"

    def __post_init__(self) -> None:
        faults = type_faults(self)
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
                f"train.validation_metric = {shown(self.train.validation_metric)} is not a metric of this task. "
                f"Use one of: {known}."
            )
        if not self.train.steps and not self.task.fits_head:
            faults.append(
                _(
                    "train.steps = 0 trains nothing. Use at least 1; 0 is for a classifier with task.probe = true, "
                    "which is fitted without steps."
                )
            )
        return faults

    def _data_faults(self) -> list[str]:
        fields = self.task_class.fields(self.task)
        faults = [
            f'data.{field}_column is not for task.kind = "{self.task.kind}", whose fields are {", ".join(fields)}.'
            for field in self.data.columns()
            if field not in fields
        ]
        if self.tokenizer.placeholders and fields != ("source", "target"):
            faults.append(
                f"tokenizer.placeholders = {self.tokenizer.placeholders} is for pairs of texts, not for task.kind = "
                f'"{self.task.kind}". Use 0.'
            )
        if fields == ("source", "target"):
            faults += [
                _(
                    "data.{name} names {n_files} files. Give two parallel ones, or one {suffixes}.",
                    name=name,
                    n_files=len(files),
                    suffixes=table_suffixes(),
                )
                for name, files in self.data.sets.items()
                if len(files) > 2
            ]
        if self.data.builtin is None:
            return faults
        languages = self.task_class.languages(self.task)
        if languages and languages != self.data.languages:
            expected = "-".join(languages)
            faults.append(
                _(
                    'data.builtin = {builtin} does not fit task languages "{languages}".',
                    builtin=shown(self.data.builtin),
                    languages=expected,
                )
            )
        elif not languages and len(self.data.languages) != 1:
            faults.append(
                f"data.builtin = {shown(self.data.builtin)} should be one of {', '.join(LANGUAGES)} for this task."
            )
        if self.clean != CleanSettings():
            faults.append("clean cannot be set: the built-in corpus is clean and used as it is. Remove [clean].")
        return faults

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "Recipe":
        """Build a recipe from TOML tables; model.preset is expanded, model.vocab_size is the tokenizer's."""
        _refuse_renamed_keys(table)
        table = {"data": {}, "model": {}} | dict(table)
        model, data, tokenizer, task = (table.get(name, {}) for name in ("model", "data", "tokenizer", "task"))
        # `build` reports values that should be tables and are not.
        kind = task.get("kind", DEFAULT_KIND) if isinstance(task, Mapping) else DEFAULT_KIND
        if not isinstance(kind, str) or kind not in TASKS:
            raise RecipeError(
                _(
                    "task.kind = {kind} is not a task. {suggestion}",
                    kind=shown(kind),
                    suggestion=did_you_mean(shown(kind), TASKS),
                )
            )
        if isinstance(model, Mapping) and isinstance(tokenizer, Mapping):
            table["model"] = {"vocab_size": _vocab_size(tokenizer), "shape": TASKS[kind].shape} | _expand_preset(model)
        builtin = data.get("builtin") if isinstance(data, Mapping) else None
        if isinstance(task, Mapping) and isinstance(builtin, str):
            table["task"] = TASKS[kind].language_settings(builtin.split("-")) | dict(task)
        return build(cls, table, types={"task": TASKS[kind].settings_type})


def _vocab_size(tokenizer: Mapping[str, Any]) -> int:
    """Return the vocabulary size of a [tokenizer] table; the default for an invalid one, which `build` reports."""
    try:
        return TokenizerSettings(vocab_size=tokenizer["vocab_size"]).vocab_size
    except (KeyError, RecipeError):
        return TokenizerSettings.vocab_size


def _refuse_renamed_keys(table: Mapping[str, Any]) -> None:
    keys = {f"{section}.{key}" for section, keys in table.items() if isinstance(keys, Mapping) for key in keys}
    renamed = [_("{old} is now {new}", old=old, new=new) for old, new in _RENAMED.items() if old in keys]
    if renamed:
        raise RecipeError(
            _("this recipe was written for an older version of manyheads: {renamed}.", renamed=", ".join(renamed))
        )


def _expand_preset(model: Mapping[str, Any]) -> dict[str, Any]:
    model = dict(model)
    if "preset" not in model:
        return model
    preset = model.pop("preset")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise RecipeError(
            _(
                "model.preset = {preset} is not a preset. {suggestion}",
                preset=shown(preset),
                suggestion=did_you_mean(shown(preset), PRESETS),
            )
        )
    return PRESETS[preset] | model


def read_recipe(path: Path, assignments: Sequence[str] = ()) -> Recipe:
    """Read a recipe file and apply `section.key=value` overrides.

    Relative paths of data files start at `data.folder`, or at the folder of the recipe.
    """
    table = override(read_toml(path), assignments)
    if isinstance(table.get("init_from"), str) and table["init_from"]:
        _use_bundle_sizes(path.parent / table["init_from"], table)
    data = table.get("data")
    if isinstance(data, dict) and isinstance(data.get("folder", ""), str):
        folder = path.parent / data.pop("folder", "")  # from here on all paths are absolute
        task = table.get("task")
        task = task if isinstance(task, Mapping) else {}
        for name in ("train", "valid", "test"):
            _resolve_files(folder, data, name, task)
        mix = data.get("mix")
        for entry in mix if isinstance(mix, list) else []:
            if isinstance(entry, dict):
                _resolve_files(folder, entry, "files", task)
    try:
        return Recipe.from_table(table)
    except RecipeError as error:
        raise RecipeError(*(f"{path}: {fault}" for fault in error.faults)) from None


def _use_bundle_sizes(bundle: Path, table: dict[str, Any]) -> None:
    """Take the model settings that the recipe does not set from the bundle it is initialized from."""
    table["init_from"] = str(_resolve(bundle, "init_from"))
    model = table.get("model", {})
    if not isinstance(model, Mapping):
        return
    settings = {name: value for name, value in model_settings(bundle).items() if name != "shape"}
    if isinstance(settings.get("kept_heads"), dict):  # a pruned model: use the entries of the stacks that exist here
        stacks = _named_task(table.get("task")).shape.split("-")
        settings["kept_heads"] = {
            name: numbers
            for name, numbers in settings["kept_heads"].items()
            if name.partition(".")[0] in stacks and (len(stacks) > 1 or not name.endswith(".cross"))
        }
    table["model"] = settings | _expand_preset(model)
    tokenizer = table.setdefault("tokenizer", {})
    if isinstance(tokenizer, dict):  # it is not trained; that of an imported model may be smaller than ours can be
        tokenizer["vocab_size"] = max(MIN_VOCAB_SIZE, settings["vocab_size"])


def _named_task(table: object) -> type[Task]:
    """Return the task that a [task] table names; the default one if it names none, which `from_table` reports."""
    kind = table.get("kind") if isinstance(table, Mapping) else None
    return TASKS[kind if isinstance(kind, str) and kind in TASKS else DEFAULT_KIND]


def _resolve_files(folder: Path, table: dict[str, Any], name: str, task: Mapping[str, Any]) -> None:
    """Make the paths of a set absolute; a folder is expanded to its files, an object of a store is copied."""
    if not isinstance(table.get(name), list):
        return
    files: list[Path] = []
    for file in table[name]:
        if is_remote(str(file)):
            files.append(local_copy(str(file)))
            continue
        path = _resolve(folder / str(file), f"data.{name}")
        files += _folder_files(path, task) if path.is_dir() else [path]
    table[name] = [str(file) for file in files]


def _resolve(path: Path, setting: str) -> Path:
    """Make a path absolute; RecipeError if no file can have it: a NUL, a name that is too long, a loop of links."""
    try:
        path.stat()
    except FileNotFoundError:
        pass  # reported when it is read
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RecipeError(
            _("{setting} = {path} cannot be used: {reason}.", setting=setting, path=shown(str(path)), reason=reason)
        ) from None
    return path.resolve()


def _folder_files(folder: Path, task: Mapping[str, Any]) -> Sequence[Path]:
    task_class = _named_task(task)
    files = task_class.folder_files(folder, task)
    return document_files([folder]) if files is None else files
