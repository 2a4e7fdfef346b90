"""What some files are given for: told by their names, their columns and what stands in them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from manyheads.errors import DataError
from manyheads.recipe.columns import Column
from manyheads.recipe.finding import Sets, beside, find_sets, language_of_suffix, purpose_of, training_files
from manyheads.recipe.settings import DataSettings
from manyheads.recipe.tables import recognise_table
from manyheads.recipe.wishes import Finding, Wishes, called
from manyheads.tasks import TASKS, TaskSettings
from manyheads.text.conll import TAGGED_FILES
from manyheads.text.folders import document_files
from manyheads.text.missing import shortened
from manyheads.text.readers import is_table, read_lines
from manyheads.text.spans import OUTSIDE, is_tag
from manyheads.text.streams import refuse_unreadable
from manyheads.text.unpacking import format_ending

_PLAIN = (".txt", ".text", ".md")
_ABOUT_THE_DATA = ("readme", "license", "licence", "citation", "changelog")
_LINES = 5000  # that tell what a file is
_ENOUGH_LINES = 10
_NEARLY_ALL = 0.95


def recognise(
    given: Sequence[Path], valid: Sequence[Path] = (), test: Sequence[Path] = (), wishes: Wishes | None = None
) -> Sets:
    """The sets that are meant by a folder or by some files, and the task they are for."""
    wishes = wishes or Wishes()
    if wishes.kind and wishes.kind not in TASKS:
        known = ", ".join(map(called, TASKS))
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


def _sets(files: Sequence[Path], valid: Sequence[Path], test: Sequence[Path], found: Finding) -> Sets:
    sets = {"train": files, "valid": valid, "test": test}
    beside_them = [purpose for purpose in ("valid", "test") if not sets[purpose]]
    for purpose in beside_them:
        sets[purpose] = beside(files, purpose)
    settings: dict[str, Any] = {purpose: tuple(map(str, paths)) for purpose, paths in sets.items()}
    settings |= {f"{name}_column": column for name, column in found.columns.items()}
    names = tuple(purpose for purpose in beside_them if sets[purpose])
    return Sets(settings=DataSettings(**settings), found=names, task=_settings(found), why=found.why)


def _settings(found: Finding) -> TaskSettings:
    settings: TaskSettings = TASKS[found.kind].settings_type(**found.settings)
    return settings


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


def _recognise_files(files: Sequence[Path], wishes: Wishes, *, is_folder: bool) -> Finding:
    if len(files) > 3 and not _are_plain(files):
        return Finding("seq2seq", "several files")  # `find_sets` says what is wrong with them
    for path in files if len(files) < 3 or is_folder else ():
        refuse_unreadable(path)
    if len(files) == 1 and is_table(files[0]) and not _are_columns_of_units(files[0]):
        return recognise_table(files[0], wishes)
    if wishes.columns and wishes.kind not in ("tag", "seq2seq"):
        raise DataError(f"{files[0]} has no columns to choose from. Leave out --{next(iter(wishes.columns))}-column.")
    if wishes.kind:
        return _told(files, wishes)
    if len(files) == 1:
        return _recognise_file(files[0])
    if _are_plain(files) and (is_folder or len(files) > 2):
        return Finding("language", f"they are {len(files)} files of plain text")
    return _recognise_parallel(files)


def _told(files: Sequence[Path], wishes: Wishes) -> Finding:
    settings = {"intents": True} if wishes.kind == "tag" and len(files) == 3 else {}
    return Finding(wishes.kind, wishes.why, wishes.columns, settings)


def _recognise_file(path: Path) -> Finding:
    if _are_columns_of_units(path):
        return Finding("tag", "its lines are words with tags, a blank line between sentences")
    if format_ending(path) in _PLAIN:
        _refuse_disguised(path)
        return Finding("language", "it is plain text")
    raise DataError(
        f"{path}: it is not clear what this is: no table (which ends in .tsv, .csv, .jsonl or .parquet), no words with "
        "tags such as B-PER, not called plain text (.txt). Rename it, give two parallel files, or say --task language."
    )


def _refuse_disguised(path: Path) -> None:
    """Plain text whose lines all come apart in the same way is a table, or fastText's labels."""
    lines = [line for line in islice(read_lines(path, on_bad=_pass_over), _LINES) if line.strip()]
    if len(lines) < _ENOUGH_LINES:
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


def _recognise_parallel(files: Sequence[Path]) -> Finding:
    """Two or three files of as many lines: texts and tags, texts and labels, or texts and translations."""
    if any(map(is_table, files)) or not all(path.is_file() for path in files):
        return Finding("seq2seq", "several files")  # `find_sets` says what is wrong with them
    sides = [list(islice(read_lines(path, on_bad=_pass_over), _LINES)) for path in files]
    if len({len(side) for side in sides}) == 1:
        columns = [Column(str(path), side) for path, side in zip(files, sides, strict=True)]
        if columns[1].are_tags and columns[0].has_as_many_words(columns[1]):
            intents = f", {files[2].name} their intents" if len(files) == 3 else ""
            why = f"the lines of {files[1].name} are tags for the words of {files[0].name}{intents}"
            return Finding("tag", why, settings={"intents": len(files) == 3})
        if len(files) == 2 and columns[1].repeats and columns[0].are_texts:
            why = f"the lines of {files[1].name} have {columns[1].told}"
            return Finding("classify", why)
    return Finding("seq2seq", f"they are {len(files)} parallel files of text")


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


def _pass_over(_: DataError) -> None:
    """What is not UTF-8 is told of when the text is read to be learnt from."""
