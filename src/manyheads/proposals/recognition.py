"""Recognize the task that a table, files or a folder are for, by the `TaskInit` of every task."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from manyheads.data import CleanSettings
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.proposals.splits import by_split, sibling_files
from manyheads.run.recipe import DataSettings
from manyheads.tasks import TASKS
from manyheads.tasks.data_files import DataFiles, FolderListing, are_plain_text, split_in_name
from manyheads.tasks.task_init import Request, TaskGuess, TaskInit, column_names
from manyheads.text.reading.files import check_readable, format_suffix
from manyheads.text.reading.formats import table_suffixes
from manyheads.text.suggestions import shortened


@dataclass(frozen=True, kw_only=True)
class RecognizedData:
    """The files of each split, and the task they are for."""

    settings: DataSettings
    task: Any  # the task's settings
    reason: str  # why the data is for this task, in the language in use
    languages: tuple[str, str] = ("", "")  # from file or column names
    found_splits: tuple[str, ...] = ()  # splits whose files were not given, but found beside the training files
    clean: CleanSettings = field(default_factory=CleanSettings)


def recognize(
    paths: Sequence[Path], valid: Sequence[Path] = (), test: Sequence[Path] = (), request: Request | None = None
) -> RecognizedData:
    """Recognize the splits and the task of a folder or of files."""
    request = _with_kind(request or Request())
    is_folder = len(paths) == 1 and paths[0].is_dir()
    training, others = by_split(_files_in(paths[0], request) if is_folder else paths)
    part, guess = _recognize_files(DataFiles(training, is_folder), request)
    sets = {"train": training, "valid": valid or others["valid"], "test": test or others["test"]}
    missing = [split for split in ("valid", "test") if not sets[split]]
    given = {file.resolve() for files in sets.values() for file in files}
    for split in missing:
        found = sibling_files(training, split)
        sets[split] = () if given.intersection(file.resolve() for file in found) else found
    guess = part.complete(guess, sets, request)
    data: dict[str, Any] = {split: tuple(map(str, files)) for split, files in sets.items()}
    data |= {f"{name}_column": column for name, column in guess.columns.items()}
    return RecognizedData(
        settings=DataSettings(**data),
        task=TASKS[part.kind].settings_type(**guess.settings),
        reason=guess.reason,
        languages=guess.languages,
        found_splits=tuple(split for split in missing if sets[split]),
        clean=guess.clean,
    )


def task_inits(kind: str = "") -> list[TaskInit]:
    """The `init` part of one task, or of all tasks in the order in which they try to recognize data."""
    parts = [TASKS[kind].init] if kind else [task.init for task in TASKS.values() if task.init.is_offered]
    return sorted(parts, key=lambda part: part.order)


def _with_kind(request: Request) -> Request:
    """The request with the kind of the task that its options name or imply."""
    parts = task_inits()
    if request.task:
        named = [part for part in parts if part.cli_name == request.task]
        if not named:
            known = ", ".join(part.cli_name for part in parts)
            raise DataError(
                _("--task {task} is not a task of this version. Known: {known}.", task=request.task, known=known)
            )
    else:
        named = [part for part in parts if part.is_implied_by(request)]
    if named:
        request = replace(request, kind=named[0].kind)
    if request.scheme and not named[0].takes_scheme:
        raise DataError(_("--scheme is not for {task}: it has no tags. Leave it out.", task=named[0].cli_name))
    for name in request.columns:
        if named and name not in named[0].columns:
            raise DataError(
                _(
                    "--{column}-column is not for {task}, which has {options}.",
                    column=name,
                    task=named[0].cli_name,
                    options=_options(named[0].columns),
                )
            )
    return request


def _options(columns: Iterable[str]) -> str:
    return reduce(
        lambda first, second: _("{first} and {second}", first=first, second=second),
        (f"--{name}-column" for name in columns),
    )


def _files_in(folder: Path, request: Request) -> Sequence[Path]:
    """The training files of a folder, or all of its files if each is named after a split."""
    listing = FolderListing.of(folder)
    training_folders = [path for path in listing.folders if split_in_name(path) == "train"]
    if len(training_folders) == 1 and not listing.files:
        return _files_in(training_folders[0], request)
    for part in task_inits(request.kind):
        files = part.files_in(listing, request)
        if files is not None:
            return files
    if not listing.files:
        raise DataError(_nothing_in(listing))
    training = listing.training_files
    if len(training) == 1:
        suffix = format_suffix(training[0])
        others = [path for path in listing.files if split_in_name(path) and format_suffix(path) == suffix]
        return training if split_in_name(training[0]) else [*training, *others]
    if are_plain_text(training):
        return training
    names = shortened(", ".join(path.name for path in listing.files[:8]))
    raise DataError(
        _("{folder}: it is not clear which files to train on (files: {names}). Name them.", folder=folder, names=names)
    )


def _nothing_in(listing: FolderListing) -> str:
    if not listing.folders:
        return _("{folder} holds no files. Name files of text, or a folder of them.", folder=listing.folder)
    names = shortened(", ".join(path.name for path in listing.folders[:8]))
    return _(
        "{folder} holds only folders ({names}). Give one of them; put texts that are sorted into folders by label into "
        "one table, with a column of texts and a column of labels.",
        folder=listing.folder,
        names=names,
    )


def _recognize_files(files: DataFiles, request: Request) -> tuple[TaskInit, TaskGuess]:
    for path in files.paths if len(files.paths) < 3 or files.is_folder else ():
        check_readable(path)
    parts = task_inits(request.kind)
    if not files.is_table and request.kind:
        return parts[0], parts[0].requested_guess(files, request)
    if not files.is_table and request.columns:
        raise DataError(
            _(
                "{path} has no columns to choose from. Leave out {options}.",
                path=files.paths[0],
                options=_options(request.columns),
            )
        )
    for part in parts:
        guess = part.recognize_names(files, request)
        if guess is not None:
            return part, guess
    for part in parts:
        guess = part.recognize(files, request)
        if guess is not None:
            return part, guess
    raise DataError(_not_recognized(files, parts))


def _not_recognized(files: DataFiles, parts: Sequence[TaskInit]) -> str:
    path = files.paths[0]
    if not files.is_table:
        return _(
            "{path} is not recognized: it is not a table ({suffixes}), has no words with tags such as B-PER, and is "
            "not named as plain text (.txt). Rename it, give two parallel files, or give --task language.",
            path=path,
            suffixes=table_suffixes(),
        )
    if len(files.columns) == 1:
        return _(
            "{path} has one column only. Give text and label, or source and target, in two columns, or give two "
            "parallel files; a column of texts alone is for --task language.",
            path=path,
        )
    options = "; ".join(f"{_options(part.columns)} ({part.cli_name})" for part in parts)
    return _(
        "{path}: it is not clear which columns to learn from (columns: {columns}). Name them: {options}.",
        path=path,
        columns=column_names(files.columns),
        options=options,
    )
