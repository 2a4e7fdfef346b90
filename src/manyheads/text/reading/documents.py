"""Readers of documents for language models. White space and line breaks inside a document are preserved."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import OnBad, check_readable, file_lines, format_suffix, is_folder
from manyheads.text.reading.formats import is_table
from manyheads.text.reading.readers import read_rows
from manyheads.text.reading.row_spec import Row

DocumentKind = Literal["file", "paragraph", "line"]
_MAX_CHARACTERS = 1 << 22  # a longer file is split into several documents, so that memory stays bounded


def read_documents(
    paths: Sequence[Path | str], kind: DocumentKind = "file", column: str | None = None, *, on_bad: OnBad | None = None
) -> Iterator[Row]:
    """Yield the documents of one or more files as rows of one field; a folder is read as its .txt files.

    In a table each row is a document, taken from the column "text" or from `column`.
    In plain text a document is a file, a paragraph (paragraphs are separated by blank lines) or a line, depending on
    `kind`. Line breaks inside a document become \\n. If there are several files, an empty file is an empty document. A
    line that is not UTF-8 raises; with `on_bad`, the error is passed to `on_bad` and the line is dropped.
    """
    files = document_files(paths)
    if not files:
        raise DataError(_("No file is given. Documents are read from text files: name at least one."))
    for path in files:
        if column is not None and not is_table(path):
            raise DataError(_("{path}: plain text has no columns. Remove text_column.", path=path))
    if len(files) == 1:
        return _read(files[0], kind, column, on_bad)
    return chain.from_iterable(_read(path, kind, column, on_bad) if path.stat().st_size else [("",)] for path in files)


def document_files(paths: Sequence[Path | str]) -> list[Path]:
    """Return the files to read: a folder is replaced by its .txt files, plain or compressed, sorted by path.

    Subfolders are included. Files and folders whose names start with a dot are ignored.
    """
    return [file for path in map(Path, paths) for file in (_files_in(path) if is_folder(path) else _checked(path))]


def _checked(path: Path) -> list[Path]:
    check_readable(path)
    return [path]


def _files_in(folder: Path) -> list[Path]:
    files = sorted(_iter_files(folder), key=lambda path: path.relative_to(folder).parts)
    if not files:
        raise DataError(
            _(
                "{folder}: there is no .txt file in this folder. Give a folder of .txt files, or name files.",
                folder=folder,
            )
        )
    return files


def _iter_files(folder: Path) -> Iterator[Path]:
    try:
        for path in folder.iterdir():
            if path.name.startswith("."):
                continue
            # A symbolic link to a folder may form a cycle.
            if path.is_dir() and not path.is_symlink():
                yield from _iter_files(path)
            elif path.is_file() and format_suffix(path) == ".txt":
                yield path
    except OSError as error:
        raise DataError(
            _("{path} cannot be read: {reason}.", path=error.filename or folder, reason=error.strerror)
        ) from None


def _read(path: Path, kind: DocumentKind, column: str | None, on_bad: OnBad | None) -> Iterator[Row]:
    if is_table(path):
        yield from read_rows([path], ("text",), (column,), on_bad=on_bad)
    elif kind == "line":
        yield from ((line,) for line in _valid_lines(path, on_bad))
    else:
        yield from _join_lines(_valid_lines(path, on_bad, with_ends=True), kind)


def _valid_lines(path: Path, on_bad: OnBad | None, *, with_ends: bool = False) -> Iterator[str]:
    """Yield the lines that are valid UTF-8 and skip the others."""
    bad: list[DataError] = []

    def collect(error: DataError) -> None:
        bad.append(error)
        if on_bad is None:
            raise error
        on_bad(error)

    # Without line ends each line is a document of its own, which must not be split.
    for line in file_lines(path, collect, with_ends=with_ends, split_long=with_ends):
        if not bad:
            yield line[:-2] + "\n" if line.endswith("\r\n") else line
        bad.clear()


def _join_lines(lines: Iterator[str], kind: DocumentKind) -> Iterator[Row]:
    """Join lines, which include their line ends, into documents."""
    document: list[str] = []
    size = 0
    for line in lines:
        if kind == "paragraph" and not line.strip():
            if document:
                yield ("".join(document),)
            document, size = [], 0
            continue
        document.append(line)
        size += len(line)
        if size >= _MAX_CHARACTERS:
            yield ("".join(document),)
            document, size = [], 0
    if document:
        yield ("".join(document),)
