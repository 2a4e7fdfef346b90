"""What some files are given for: told by their names, their columns and what stands in them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from manyheads.errors import DataError
from manyheads.init.columns import Column
from manyheads.init.data_files import (
    RecognizedData,
    find_split_files,
    language_of_suffix,
    sibling_files,
    split_of,
    training_files,
)
from manyheads.init.request import Request, TaskGuess, cli_name
from manyheads.init.table_recognition import recognize_table
from manyheads.run.recipe import DataSettings
from manyheads.tasks import TASKS, TaskSettings
from manyheads.text.documents import document_files
from manyheads.text.files import check_readable, format_suffix
from manyheads.text.readers import is_table, read_lines
from manyheads.text.suggestions import shortened
from manyheads.text.tag_schemes import OUTSIDE, is_tag
from manyheads.text.tagged_readers import TAGGED_FILES

_PLAIN = (".txt", ".text", ".md")
_ABOUT_THE_DATA = ("readme", "license", "licence", "citation", "changelog")
_LINES = 5000  # that tell what a file is
_ENOUGH_LINES = 10
_NEARLY_ALL = 0.95


def recognize(
    given: Sequence[Path], valid: Sequence[Path] = (), test: Sequence[Path] = (), request: Request | None = None
) -> RecognizedData:
    """The sets that are meant by a folder or by some files, and the task they are for."""
    request = request or Request()
    if request.kind and request.kind not in TASKS:
        known = ", ".join(map(cli_name, TASKS))
        raise DataError(f"--task {request.task} is not a task of this version. There is: {known}.")
    request.check_columns()
    is_folder = len(given) == 1 and given[0].is_dir()
    files, others = _by_split(_files_in(given[0], request) if is_folder else given)
    valid, test = valid or others["valid"], test or others["test"]
    found = _recognize_files(files, request, is_folder=is_folder)
    if found.kind == "seq2seq":
        columns = (found.columns.get("source", ""), found.columns.get("target", ""))
        sets = find_split_files(files, valid, test, request.direction, columns)
        return replace(sets, reason=found.reason, task=_settings(found), clean=found.clean)
    return _sets(files, valid, test, found)


def _sets(files: Sequence[Path], valid: Sequence[Path], test: Sequence[Path], found: TaskGuess) -> RecognizedData:
    sets = {"train": files, "valid": valid, "test": test}
    beside_them = [split for split in ("valid", "test") if not sets[split]]
    for split in beside_them:
        sets[split] = sibling_files(files, split)
    settings: dict[str, Any] = {split: tuple(map(str, paths)) for split, paths in sets.items()}
    settings |= {f"{name}_column": column for name, column in found.columns.items()}
    names = tuple(split for split in beside_them if sets[split])
    return RecognizedData(
        settings=DataSettings(**settings), found_splits=names, task=_settings(found), reason=found.reason
    )


def _settings(found: TaskGuess) -> TaskSettings:
    settings: TaskSettings = TASKS[found.kind].settings_type(**found.settings)
    return settings


# Which files.


def _files_in(folder: Path, request: Request) -> Sequence[Path]:
    """The training files of a folder, or all of them where each has a split of its own."""
    if all((folder / name).is_file() for name in TAGGED_FILES[:2]):
        return [folder / name for name in TAGGED_FILES if (folder / name).is_file()]
    parts = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    files = sorted(path for path in folder.iterdir() if path.is_file() and _is_data(path))
    training_folders = [path for path in parts if split_of(path) == "train"]
    if len(training_folders) == 1 and not files:
        return _files_in(training_folders[0], request)
    if not files and request.kind in ("language", "masked"):
        return document_files([folder])
    if not files:
        raise DataError(_nothing_in(folder, parts))
    training = [path for path in files if split_of(path) == "train"]
    training = training or [path for path in files if not split_of(path)] or files
    if len(training) == 1:
        others = [path for path in files if split_of(path) and format_suffix(path) == format_suffix(training[0])]
        return training if split_of(training[0]) else [*training, *others]
    if _are_plain(training):
        return training
    if request.kind in ("", "seq2seq"):
        return training_files(folder, request.direction)
    there = shortened(", ".join(path.name for path in files[:8]))
    raise DataError(f"{folder}: it is not clear which files to train on (there is: {there}). Name them.")


def _are_plain(files: Sequence[Path]) -> bool:
    """Whether they are plain text and not called by languages, as a text and its translation are."""
    return all(format_suffix(path) in _PLAIN for path in files) and not all(map(language_of_suffix, files))


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


def _by_split(files: Sequence[Path]) -> tuple[Sequence[Path], dict[str, Sequence[Path]]]:
    """The training files, and those given beside them whose names say that they are for something else."""
    splits = [split_of(path) for path in files]
    if splits.count("") == 1 and all(map(is_table, files)):  # reviews.csv and test.csv
        splits = [split or "train" for split in splits]
    is_sorted = len(files) > 1 and "train" in splits and len({*splits}) == len(files) and all(splits)
    sets: dict[str, Sequence[Path]] = {"valid": (), "test": ()}
    if not is_sorted:
        return files, sets
    sets |= {split: (path,) for split, path in zip(splits, files, strict=True)}
    return sets.pop("train"), sets


# What they are.


def _recognize_files(files: Sequence[Path], request: Request, *, is_folder: bool) -> TaskGuess:
    if len(files) > 3 and not _are_plain(files):
        return TaskGuess("seq2seq", "several files")  # `find_split_files` says what is wrong with them
    for path in files if len(files) < 3 or is_folder else ():
        check_readable(path)
    if len(files) == 1 and is_table(files[0]) and not _is_conll(files[0]):
        return recognize_table(files[0], request)
    if request.columns and request.kind not in ("tag", "seq2seq"):
        raise DataError(f"{files[0]} has no columns to choose from. Leave out --{next(iter(request.columns))}-column.")
    if request.kind:
        return _told(files, request)
    if len(files) == 1:
        return _recognize_file(files[0])
    if _are_plain(files) and (is_folder or len(files) > 2):
        return TaskGuess("language", f"they are {len(files)} files of plain text")
    return _recognize_parallel(files)


def _told(files: Sequence[Path], request: Request) -> TaskGuess:
    settings = {"intents": True} if request.kind == "tag" and len(files) == 3 else {}
    return TaskGuess(request.kind, request.reason, request.columns, settings)


def _recognize_file(path: Path) -> TaskGuess:
    if _is_conll(path):
        return TaskGuess("tag", "its lines are words with tags, a blank line between sentences")
    if format_suffix(path) in _PLAIN:
        _refuse_disguised(path)
        return TaskGuess("language", "it is plain text")
    raise DataError(
        f"{path}: it is not clear what this is: no table (which ends in .tsv, .csv, .jsonl or .parquet), no words with "
        "tags such as B-PER, not called plain text (.txt). Rename it, give two parallel files, or say --task language."
    )


def _refuse_disguised(path: Path) -> None:
    """Plain text whose lines all come apart in the same way is a table, or fastText's labels."""
    lines = [line for line in islice(read_lines(path, on_bad=_ignore), _LINES) if line.strip()]
    if len(lines) < _ENOUGH_LINES:
        return
    if sum(line.startswith("__label__") for line in lines) >= _NEARLY_ALL * len(lines):
        raise DataError(
            f"{path}: its lines begin with labels as fastText writes them. Turn them into a .tsv, label TAB text: "
            r"sed -E 's/^__label__([^ ]+) /\1\t/' FILE > NEW_FILE.tsv."
        )
    for candidate, name, ending in (("\t", "a tab", ".tsv"), (";", "a semicolon", ".csv")):
        rows = [line.split(candidate) for line in lines]
        width = len(rows[0])
        if width < 2 or any(len(row) != width for row in rows):
            continue
        if candidate == "\t" or any(Column("", column).repeats for column in zip(*rows, strict=True)):
            raise DataError(
                f"{path}: every line has {width} columns, with {name} between them: a table. End its name in {ending}; "
                "or, if it is text all the same, say --task language."
            )


def _recognize_parallel(files: Sequence[Path]) -> TaskGuess:
    """Two or three files of as many lines: texts and tags, texts and labels, or texts and translations."""
    if any(map(is_table, files)) or not all(path.is_file() for path in files):
        return TaskGuess("seq2seq", "several files")  # `find_split_files` says what is wrong with them
    sides = [list(islice(read_lines(path, on_bad=_ignore), _LINES)) for path in files]
    if len({len(side) for side in sides}) == 1:
        columns = [Column(str(path), side) for path, side in zip(files, sides, strict=True)]
        if columns[1].are_tags and columns[0].has_as_many_words(columns[1]):
            intents = f", {files[2].name} their intents" if len(files) == 3 else ""
            reason = f"the lines of {files[1].name} are tags for the words of {files[0].name}{intents}"
            return TaskGuess("tag", reason, settings={"intents": len(files) == 3})
        if len(files) == 2 and columns[1].repeats and columns[0].are_texts:
            reason = f"the lines of {files[1].name} have {columns[1].summary}"
            return TaskGuess("classify", reason)
    return TaskGuess("seq2seq", f"they are {len(files)} parallel files of text")


def _is_conll(path: Path) -> bool:
    """Whether each line is a word with its tag; blank lines, or tags such as B-PER, tell it from a table."""
    if is_table(path) and format_suffix(path) != ".tsv":
        return False
    lines = list(islice(read_lines(path, on_bad=_ignore), _LINES))
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


def _ignore(_: DataError) -> None:
    """What is not UTF-8 is told of when the text is read to be learnt from."""
