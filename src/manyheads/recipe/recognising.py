"""What some files are given for: told by their names, their columns and what stands in them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from manyheads.data import CleanSettings
from manyheads.errors import DataError
from manyheads.recipe.columns import Column, columns_in, pair_of
from manyheads.recipe.finding import (
    Sets,
    beside,
    find_sets,
    language_of_suffix,
    pick_columns,
    purpose_of,
    training_files,
)
from manyheads.recipe.settings import DataSettings
from manyheads.tasks import TASKS, TaskSettings
from manyheads.text.conll import TAGGED_FILES
from manyheads.text.folders import document_files
from manyheads.text.missing import shortened
from manyheads.text.readers import columns_of, is_table, read_lines
from manyheads.text.spans import OUTSIDE, is_tag
from manyheads.text.streams import refuse_unreadable
from manyheads.text.unpacking import format_ending

_KINDS = {"translate": "seq2seq"}  # the tasks that the command line calls otherwise than a recipe
_FIELDS = {"seq2seq": ("source", "target"), "classify": ("text", "label"), "tag": ("text", "tags", "label")}
_PLAIN = (".txt", ".text", ".md")
_ABOUT_THE_DATA = ("readme", "license", "licence", "citation", "changelog")
_LINES = 5000  # that tell what a file is
_NEARLY_ALL = 0.95
_ENOUGH_ROWS = 10  # of a table without names, to call a column one of texts
_LONG = 40.0  # characters, on average
_MUCH_LONGER = 3  # times


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the user says of the data."""

    task: str = ""  # as the command line calls it; "" for what the data looks like
    columns: Mapping[str, str] = field(default_factory=dict)  # of a field, where they are told
    direction: tuple[str, str] = ("", "")  # languages, where they are told

    @property
    def kind(self) -> str:
        """The task as a recipe names it, where options tell it; "" where they do not."""
        if self.task:
            return _KINDS.get(self.task, self.task)
        if any(self.direction) or {"source", "target"} & {*self.columns}:
            return "seq2seq"
        if "tags" in self.columns:
            return "tag"
        return "classify" if "label" in self.columns else ""

    def refuse_misfits(self) -> None:
        """Refuse a column that the task has no use for."""
        known = _FIELDS.get(self.kind, ("text",))
        for name in self.columns:
            if name not in known:
                options = " and ".join(f"--{known_name}-column" for known_name in known)
                raise DataError(f"--{name}-column is not for {_called(self.kind)}, which has {options}.")


@dataclass(frozen=True)
class _Finding:
    """What the training files are: a kind of task, its settings, which columns, and why."""

    kind: str
    why: str
    columns: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    clean: CleanSettings = field(default_factory=CleanSettings)


def recognise(
    given: Sequence[Path], valid: Sequence[Path] = (), test: Sequence[Path] = (), wishes: Wishes | None = None
) -> Sets:
    """The sets that are meant by a folder or by some files, and the task they are for."""
    wishes = wishes or Wishes()
    if wishes.kind and wishes.kind not in TASKS:
        known = ", ".join(map(_called, TASKS))
        raise DataError(f"--task {wishes.task} is not a task of this version. There is: {known}.")
    wishes.refuse_misfits()
    is_folder = len(given) == 1 and given[0].is_dir()
    files, others = _by_purpose(_files_in(given[0], wishes) if is_folder else given)
    valid, test = valid or others["valid"], test or others["test"]
    found = _recognise_files(files, wishes, is_folder=is_folder)
    if found.kind == "seq2seq":
        columns = (found.columns.get("source", ""), found.columns.get("target", ""))
        sets = find_sets(files, valid, test, wishes.direction, columns)
        return replace(sets, why=found.why, task=_settings(found), clean=found.clean)
    return _sets(files, valid, test, found)


def _sets(files: Sequence[Path], valid: Sequence[Path], test: Sequence[Path], found: _Finding) -> Sets:
    sets = {"train": files, "valid": valid, "test": test}
    beside_them = [purpose for purpose in ("valid", "test") if not sets[purpose]]
    for purpose in beside_them:
        sets[purpose] = beside(files, purpose)
    settings: dict[str, Any] = {purpose: tuple(map(str, paths)) for purpose, paths in sets.items()}
    settings |= {f"{name}_column": column for name, column in found.columns.items()}
    names = tuple(purpose for purpose in beside_them if sets[purpose])
    return Sets(settings=DataSettings(**settings), found=names, task=_settings(found), why=found.why)


def _settings(found: _Finding) -> TaskSettings:
    settings: TaskSettings = TASKS[found.kind].settings_type(**found.settings)
    return settings


def _called(kind: str) -> str:
    return next((name for name, other in _KINDS.items() if other == kind), kind)


# Which files.


def _files_in(folder: Path, wishes: Wishes) -> Sequence[Path]:
    """The training files of a folder, or all of them where each has a purpose of its own."""
    if all((folder / name).is_file() for name in TAGGED_FILES[:2]):
        return [folder / name for name in TAGGED_FILES if (folder / name).is_file()]
    parts = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    files = sorted(path for path in folder.iterdir() if path.is_file() and _is_data(path))
    training_folders = [path for path in parts if purpose_of(path) == "train"]
    if len(training_folders) == 1 and not files:
        return _files_in(training_folders[0], wishes)
    if not files and wishes.kind in ("language", "masked"):
        return document_files([folder])
    if not files:
        raise DataError(_nothing_in(folder, parts))
    training = [path for path in files if purpose_of(path) == "train"]
    training = training or [path for path in files if not purpose_of(path)] or files
    if len(training) == 1:
        others = [path for path in files if purpose_of(path) and format_ending(path) == format_ending(training[0])]
        return training if purpose_of(training[0]) else [*training, *others]
    if _are_plain(training):
        return training
    if wishes.kind in ("", "seq2seq"):
        return training_files(folder, wishes.direction)
    there = shortened(", ".join(path.name for path in files[:8]))
    raise DataError(f"{folder}: it is not clear which files to train on (there is: {there}). Name them.")


def _are_plain(files: Sequence[Path]) -> bool:
    """Whether they are plain text and not called by languages, as a text and its translation are."""
    return all(format_ending(path) in _PLAIN for path in files) and not all(map(language_of_suffix, files))


def _is_data(path: Path) -> bool:
    name = path.name.lower()
    return not name.startswith((".", *_ABOUT_THE_DATA))


def _nothing_in(folder: Path, parts: Sequence[Path]) -> str:
    if not parts:
        return f"{folder} holds no files. Name files of text, or a folder of them."
    there = shortened(", ".join(path.name for path in parts[:8]))
    return (
        f"{folder} holds only folders ({there}). Give one of them; texts that are sorted into folders by their labels "
        "go into one table, with a column of texts and one of labels."
    )


def _by_purpose(files: Sequence[Path]) -> tuple[Sequence[Path], dict[str, Sequence[Path]]]:
    """The training files, and those given beside them whose names say that they are for something else."""
    purposes = [purpose_of(path) for path in files]
    if purposes.count("") == 1 and all(map(is_table, files)):  # reviews.csv and test.csv
        purposes = [purpose or "train" for purpose in purposes]
    is_sorted = len(files) > 1 and "train" in purposes and len({*purposes}) == len(files) and all(purposes)
    sets: dict[str, Sequence[Path]] = {"valid": (), "test": ()}
    if not is_sorted:
        return files, sets
    sets |= {purpose: (path,) for purpose, path in zip(purposes, files, strict=True)}
    return sets.pop("train"), sets


# What they are.


def _recognise_files(files: Sequence[Path], wishes: Wishes, *, is_folder: bool) -> _Finding:
    if len(files) > 3 and not _are_plain(files):
        return _Finding("seq2seq", "several files")  # `find_sets` says what is wrong with them
    for path in files if len(files) < 3 or is_folder else ():
        refuse_unreadable(path)
    if len(files) == 1 and is_table(files[0]) and not _are_columns_of_units(files[0]):
        return _recognise_table(files[0], wishes)
    if wishes.columns and wishes.kind not in ("tag", "seq2seq"):
        raise DataError(f"{files[0]} has no columns to choose from. Leave out --{next(iter(wishes.columns))}-column.")
    if wishes.kind:
        return _told(files, wishes)
    if len(files) == 1:
        return _recognise_file(files[0])
    if _are_plain(files) and (is_folder or len(files) > 2):
        return _Finding("language", f"they are {len(files)} files of plain text")
    return _recognise_parallel(files)


def _told(files: Sequence[Path], wishes: Wishes) -> _Finding:
    columns = dict(wishes.columns)
    settings: dict[str, object] = {}
    if wishes.kind == "tag" and len(files) == 3:
        settings["intents"] = True
    why = f"as --task {wishes.task} says" if wishes.task else "as the options say"
    return _Finding(wishes.kind, why, columns, settings)


def _recognise_file(path: Path) -> _Finding:
    if _are_columns_of_units(path):
        return _Finding("tag", "its lines are words with tags, a blank line between sentences")
    if format_ending(path) in _PLAIN:
        _refuse_disguised(path)
        return _Finding("language", "it is plain text")
    raise DataError(
        f"{path}: it is not clear what this is: no table (which ends in .tsv, .csv, .jsonl or .parquet), no words with "
        "tags such as B-PER, not called plain text (.txt). Rename it, give two parallel files, or say --task language."
    )


def _refuse_disguised(path: Path) -> None:
    """Plain text whose lines all come apart in the same way is a table, or fastText's labels."""
    lines = [line for line in islice(read_lines(path, on_bad=_pass_over), _LINES) if line.strip()]
    if len(lines) < _ENOUGH_ROWS:
        return
    if sum(line.startswith("__label__") for line in lines) >= _NEARLY_ALL * len(lines):
        raise DataError(
            f"{path}: its lines begin with labels as fastText writes them. Turn them into a .tsv, label TAB text: "
            r"sed -E 's/^__label__([^ ]+) /\1\t/' FILE > NEW_FILE.tsv."
        )
    for sign, name, ending in (("\t", "a tab", ".tsv"), (";", "a semicolon", ".csv")):
        rows = [line.split(sign) for line in lines]
        width = len(rows[0])
        if width < 2 or any(len(row) != width for row in rows):
            continue
        if sign == "\t" or any(Column("", column).repeats for column in zip(*rows, strict=True)):
            raise DataError(
                f"{path}: every line has {width} columns, with {name} between them: a table. End its name in {ending}; "
                "or, if it is text all the same, say --task language."
            )


def _recognise_parallel(files: Sequence[Path]) -> _Finding:
    """Two or three files of as many lines: texts and tags, texts and labels, or texts and translations."""
    if any(map(is_table, files)) or not all(path.is_file() for path in files):
        return _Finding("seq2seq", "several files")  # `find_sets` says what is wrong with them
    sides = [list(islice(read_lines(path, on_bad=_pass_over), _LINES)) for path in files]
    if len({len(side) for side in sides}) == 1:
        columns = [Column(str(path), side) for path, side in zip(files, sides, strict=True)]
        if columns[1].are_tags and columns[0].has_as_many_words(columns[1]):
            intents = f", {files[2].name} their intents" if len(files) == 3 else ""
            why = f"the lines of {files[1].name} are tags for the words of {files[0].name}{intents}"
            return _Finding("tag", why, settings={"intents": len(files) == 3})
        if len(files) == 2 and columns[1].repeats and columns[0].are_texts:
            why = f"the lines of {files[1].name} have {_values(columns[1])}"
            return _Finding("classify", why)
    return _Finding("seq2seq", f"they are {len(files)} parallel files of text")


def _are_columns_of_units(path: Path) -> bool:
    """Whether each line is a unit with its tag; blank lines, or tags such as B-PER, tell it from a table."""
    if is_table(path) and format_ending(path) != ".tsv":
        return False
    lines = list(islice(read_lines(path, on_bad=_pass_over), _LINES))
    rows = [line.split() for line in lines if line.strip() and not line.startswith(("#", "-DOCSTART-"))]
    widths = Counter(map(len, rows))
    if not rows or max(widths) < 2 or widths.most_common(1)[0][1] < _NEARLY_ALL * len(rows):
        return False
    width = widths.most_common(1)[0][0]
    for column in zip(*(row for row in rows if len(row) == width), strict=True):
        n_tags = sum(map(is_tag, column))
        spans = [tag for tag in column if tag != OUTSIDE and is_tag(tag)]
        has_blanks = len(rows) < len(lines)
        if n_tags >= _NEARLY_ALL * len(column) and spans and (has_blanks or any("-" in tag for tag in spans)):
            return True
    return False


# Tables.


def _recognise_table(path: Path, wishes: Wishes) -> _Finding:
    header = columns_of(path)
    if not wishes.kind and not wishes.columns and pick_columns(header, wishes.direction):
        return _Finding("seq2seq", f"it has the columns {_listed(*(pick_columns(header, wishes.direction) or ()))}")
    if wishes.kind == "seq2seq":
        return _told([path], wishes) if wishes.columns or any(wishes.direction) else _pair(path, columns_in(path))
    columns = columns_in(path)
    _refuse_unknown(path, columns, wishes)
    for kind, find in _FINDERS.items():
        if wishes.kind in ("", kind):
            found = find(path, columns, wishes)
            if found:
                return found
    if wishes.kind == "masked":
        return replace(_need_text(path, columns, wishes), kind="masked")
    return _pair(path, columns)


def _refuse_unknown(path: Path, columns: Sequence[Column], wishes: Wishes) -> None:
    names = [column.name for column in columns]
    for field_name, name in wishes.columns.items():
        if name not in names and not (name.isdecimal() and 1 <= int(name) <= len(names)):
            there = shortened(", ".join(names))
            raise DataError(f"{path}: there is no column {name} for --{field_name}-column. There is: {there}.")


def _find_tags(path: Path, columns: Sequence[Column], wishes: Wishes) -> _Finding | None:
    told = wishes.columns.get("tags")
    tags = _named(columns, told) if told else next((column for column in columns if column.are_tags), None)
    if tags is None or not tags.are_tags:
        _refuse_tag_numbers(path, columns)
        if wishes.kind != "tag":
            return None
        there = shortened(", ".join(column.name for column in columns))
        raise DataError(
            f"{path}: no column holds tags such as B-PER, I-PER and O (there is: {there}). Name it with --tags-column."
        )
    units = _named(columns, wishes.columns["text"]) if "text" in wishes.columns else None
    units = units or next((other for other in columns if other is not tags and other.has_as_many_words(tags)), None)
    if units is None:
        raise DataError(
            f"{path}: column {tags.name} holds tags, but no other has as many words. Give every word its tag, with one "
            "space between, or name the column of words with --text-column."
        )
    label = _named(columns, wishes.columns["label"]) if "label" in wishes.columns else None
    label = label or next((other for other in columns if other.is_called_label and other.repeats), None)
    chosen = {"text": units.name, "tags": tags.name} | ({"label": label.name} if label else {})
    intents = f" and {label.name} an intent for each text" if label else ""
    why = f"column {tags.name} holds tags for the words of {units.name}{intents}"
    return _Finding("tag", why, chosen, {"intents": label is not None})


def _refuse_tag_numbers(path: Path, columns: Sequence[Column]) -> None:
    lists = [column for column in columns if column.are_lists]
    for numbers in (column for column in lists if column.is_numbers):
        for units in lists:
            if units is not numbers and not units.is_numbers and units.has_as_many_words(numbers):
                raise DataError(
                    f"{path}: column {numbers.name} numbers the tags for the words of {units.name}. Write them out, "
                    "as B-PER, I-PER and O."
                )


def _find_labels(path: Path, columns: Sequence[Column], wishes: Wishes) -> _Finding | None:
    label = _label_column(path, columns, wishes)
    if label is None:
        return None
    text = _text_column(path, [column for column in columns if column is not label], wishes)
    if text is None:
        if wishes.kind != "classify":
            return None
        raise DataError(f"{path}: no column holds text beside the labels of {label.name}. Name it with --text-column.")
    settings: dict[str, object] = {}
    told = f"column {label.name} has {_values(label)} for the texts of {text.name}"
    if label.separator:
        settings = {"multi_label": True, "separator": label.separator}
        told = f"column {label.name} has lists of labels for the texts of {text.name}"
    return _Finding("classify", told, {"text": text.name, "label": label.name}, settings)


def _label_column(path: Path, columns: Sequence[Column], wishes: Wishes) -> Column | None:
    if "label" in wishes.columns:
        label = _named(columns, wishes.columns["label"])
        _refuse_no_labels(path, label)
        return label
    text = wishes.columns.get("text")
    others = [column for column in columns if column.name != text]
    named = [column for column in others if column.is_called_label]
    if not wishes.kind and pair_of(columns) and not any(column.is_surely_label for column in named):
        return None
    if named and not any(column.repeats for column in others):
        _refuse_no_labels(path, named[0])
    chosen = [column for column in named if column.repeats] or [column for column in others if column.repeats]
    if len(chosen) == 1:
        return chosen[0]
    if chosen and not named and (wishes.kind or any(column.are_texts for column in others)):
        raise DataError(
            f"{path}: {len(chosen)} columns may be labels ({'; '.join(column.described for column in chosen)}). "
            "Choose with --label-column."
        )
    if chosen:
        return chosen[0]
    if wishes.kind == "classify":
        raise DataError(
            f"{path}: no column looks like labels ({shortened('; '.join(column.described for column in columns))}). "
            "Name it with --label-column."
        )
    return None


def _refuse_no_labels(path: Path, column: Column) -> None:
    n_values, n_rows = len(column.counts), column.counts.total()
    if n_values < 2:
        only = f"only “{next(iter(column.counts))}”" if n_values else "no value"
        raise DataError(f"{path}: column {column.name} has {only}: there is nothing to tell apart. Give two labels.")
    if n_values == n_rows and not column.separator:
        raise DataError(
            f"{path}: column {column.name} has {n_values:,} different values in {n_rows:,} rows: no labels, which come "
            "again and again. Name another with --label-column, or say what it is with --task."
        )


def _text_column(path: Path, columns: Sequence[Column], wishes: Wishes) -> Column | None:
    if "text" in wishes.columns:
        return _named(columns, wishes.columns["text"])
    texts = [column for column in columns if column.are_texts]
    texts = texts or [column for column in columns if not column.is_numbers and not column.is_apart]
    stems = Counter(column.word.rstrip("_0123456789") for column in texts if not column.name.isdecimal())
    if any(count > 1 for count in stems.values()) or {"premise", "hypothesis"} <= {*stems}:
        told = _listed(*(column.name for column in texts))
        raise DataError(f"{path}: there are several texts in a row ({told}). Choose one with --text-column.")
    named = [column for column in texts if column.is_called_text] or texts
    return max(named, key=lambda column: column.mean_length, default=None)


def _find_documents(path: Path, columns: Sequence[Column], wishes: Wishes) -> _Finding | None:
    if wishes.kind == "language" or "text" in wishes.columns:
        return _need_text(path, columns, wishes)
    if pair_of(columns):
        return None
    texts = sorted((column for column in columns if column.are_texts), key=lambda column: -column.mean_length)
    if not texts or len(texts[0].values) < _ENOUGH_ROWS:
        return None
    others = max((column.mean_length for column in columns if column is not texts[0]), default=0.0)
    is_alone = all(column.is_numbers or column.is_apart for column in columns if column is not texts[0])
    is_long = texts[0].mean_length >= _LONG and texts[0].mean_length >= _MUCH_LONGER * others
    if not (is_alone and (is_long or texts[0].is_called_text)) and not (len(columns) > 2 and is_long):
        return None
    return _Finding("language", f"column {texts[0].name} holds long texts", {"text": texts[0].name})


def _need_text(path: Path, columns: Sequence[Column], wishes: Wishes) -> _Finding:
    text = _text_column(path, columns, wishes)
    if text is None:
        there = shortened("; ".join(column.described for column in columns))
        raise DataError(f"{path}: no column holds text ({there}). Name it with --text-column.")
    why = f"as --task {wishes.task} says" if wishes.task else f"column {text.name} holds texts"
    return _Finding("language", why, {"text": text.name})


def _pair(path: Path, columns: Sequence[Column]) -> _Finding:
    """Texts and what is to be made of them; where names do not tell which, `find_sets` asks."""
    pair = pair_of(columns)
    if pair:
        return _Finding(
            "seq2seq",
            f"it has the columns {_listed(pair.source, pair.target)}",
            {"source": pair.source, "target": pair.target},
            {"purpose": pair.purpose},
            # An answer, or a summary, has a length of its own.
            CleanSettings() if pair.purpose == "translation" else CleanSettings(max_ratio=0.0),
        )
    if len(columns) == 1:
        raise DataError(
            f"{path} has one column only. Give source and target, or text and label, in two, or give two parallel "
            "files; a column of texts alone is for --task language."
        )
    if len(columns) == 2 and format_ending(path) == ".tsv":
        return _Finding("seq2seq", "it has two columns of text")
    raise DataError(
        f"{path}: it is not clear which columns to learn from (there is: "
        f"{shortened(', '.join(column.name for column in columns))}). Say so with --text-column and --label-column or "
        "--tags-column, with --source-column and --target-column, or with --text-column alone."
    )


_FINDERS: dict[str, Callable[[Path, Sequence[Column], Wishes], _Finding | None]] = {
    "tag": _find_tags,
    "classify": _find_labels,
    "language": _find_documents,
}


def _named(columns: Sequence[Column], name: str) -> Column:
    """The column of this name or number; it is known to be there."""
    found = next((column for column in columns if column.name == name), None)
    return found or columns[int(name) - 1]


def _values(column: Column) -> str:
    """ "2 values (0, 1)"."""
    examples = [value for value, _ in column.counts.most_common(3)]
    more = ", …" if len(column.counts) > len(examples) else ""
    return f"{len(column.counts):,} values ({shortened(', '.join(examples), 60)}{more})"


def _listed(*names: str) -> str:
    return " and ".join(names) if len(names) == 2 else ", ".join(names)


def _pass_over(_: DataError) -> None:
    """What is not UTF-8 is told of when the text is read to be learnt from."""
