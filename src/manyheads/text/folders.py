"""Folders of plain text as the files in them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from manyheads.errors import DataError
from manyheads.text.compression import format_suffix
from manyheads.text.streams import check_readable


def document_files(paths: Sequence[Path | str]) -> list[Path]:
    """The files, and of each folder among them all .txt files, plain or compressed, by name; also those in its folders.

    What begins with a point is passed over, in whatever folder it is.
    """
    return [file for path in map(Path, paths) for file in (_texts(path) if path.is_dir() else _file(path))]


def _file(path: Path) -> list[Path]:
    check_readable(path)
    return [path]


def _texts(folder: Path) -> list[Path]:
    files = sorted(_found(folder), key=lambda path: path.relative_to(folder).parts)
    if not files:
        raise DataError(f"{folder}: there is no .txt file in this folder. Give a folder of .txt files, or name files.")
    return files


def _found(folder: Path) -> Iterator[Path]:
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror}.") from None
    for path in entries:
        if path.name.startswith("."):
            continue
        # A link to a folder may lead back to where it stands.
        if path.is_dir() and not path.is_symlink():
            yield from _found(path)
        elif path.is_file() and format_suffix(path) == ".txt":
            yield path
