"""Readers of documents: what language models learn from, kept to the last space and line end."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

from manyheads.errors import DataError
from manyheads.text.files import OnBad, check_readable, file_lines, format_suffix
from manyheads.text.readers import is_table, read_rows
from manyheads.text.row_spec import Row

DocumentKind = Literal["file", "paragraph", "line"]
_LONGEST = 1 << 22  # characters: a longer file is read as several documents, lest memory grow with it


def read_documents(
    paths: Sequence[Path | str], kind: DocumentKind = "file", column: str | None = None, *, on_bad: OnBad | None = None
) -> Iterator[Row]:
    """The documents of any number of files, one field each; a folder stands for its .txt files.

    A row of a .tsv, .csv, .jsonl or .parquet file is a document: its column "text", or the one chosen. Of plain
    text it is the `kind`: a file, or paragraphs set apart by blank lines, or lines. Line ends inside a document are
    kept, as \\n. One of several files may be empty: that is an empty document. A line that is not UTF-8 raises, or
    `on_bad` is told of it and it is left out.
    """
    files = document_files(paths)
    if not files:
        raise DataError("no file: documents come from files of text. Name at least one.")
    for path in files:
        if column is not None and not is_table(path):
            raise DataError(f"{path}: plain text has no columns. Leave out text_column.")
    if len(files) == 1:
        return _read(files[0], kind, column, on_bad)
    return chain.from_iterable(_read(path, kind, column, on_bad) if path.stat().st_size else [("",)] for path in files)


def _read(path: Path, kind: DocumentKind, column: str | None, on_bad: OnBad | None) -> Iterator[Row]:
    if is_table(path):
        yield from read_rows([path], ("text",), (column,), on_bad=on_bad)
    elif kind == "line":
        yield from ((line,) for line in _good_lines(path, on_bad))
    else:
        yield from _collect(_good_lines(path, on_bad, with_ends=True), kind)


def _good_lines(path: Path, on_bad: OnBad | None, *, with_ends: bool = False) -> Iterator[str]:
    """The lines that are UTF-8: half a document is better than none."""
    bad: list[DataError] = []

    def note(error: DataError) -> None:
        bad.append(error)
        if on_bad is None:
            raise error
        on_bad(error)

    for line in file_lines(path, note, with_ends=with_ends):
        if not bad:
            yield line[:-2] + "\n" if line.endswith("\r\n") else line
        bad.clear()


def _collect(lines: Iterator[str], kind: DocumentKind) -> Iterator[Row]:
    """Lines with their ends, joined to documents."""
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
        if size >= _LONGEST:
            yield ("".join(document),)
            document, size = [], 0
    if document:
        yield ("".join(document),)


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
