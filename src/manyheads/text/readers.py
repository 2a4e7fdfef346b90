"""Readers of pairs, in constant memory and without silent loss: every format is a generator over lines or rows.

What cannot be read is a DataError with the file and the line; what is merely odd (a blank side, stray spaces) is
passed on as it stands. A new format is one more entry in `_PAIR_READERS` and `_COLUMN_READERS`.
"""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from manyheads.errors import DataError
from manyheads.text.missing import missing, shortened
from manyheads.text.parquet import parquet_columns, read_parquet
from manyheads.text.streams import OnBad, file_lines, read_lines, refuse_unreadable, tell_bad
from manyheads.text.unpacking import format_ending, is_compressed

__all__ = ["Pair", "Row", "columns_of", "read_lines", "read_pairs"]

Pair = tuple[str, str]
Row = tuple[str, ...]  # one example: its fields, whatever the task
TableRow = tuple[int, list[str]]  # with the number of its first line

# In characters. A quote that is never closed must not swallow a large file whole before it is found.
_LONGEST_FIELD = 1 << 24


def read_pairs(
    paths: Sequence[Path | str],
    *,
    source_column: str | None = None,
    target_column: str | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[Pair]:
    r"""The (source, target) pairs of one .tsv, .csv, .jsonl or .parquet file, or of two parallel files, line by line.

    TSV: two columns and no header; or columns by number, counted from 1; or by name, and then the first line is
    a header. Quotes are text like any other. CSV: the same columns, by default those named "source" and "target";
    a quoted field may hold line ends, which are kept as they are, and blank lines are no rows. JSONL and Parquet:
    keys and columns by name, by default "source" and "target". All but Parquet may also be compressed, as .gz or
    .zst. Whether the files are there is checked at once, what is in them as it is read; `on_bad` is told of text
    that is not UTF-8, as in `read_lines`.
    """
    files = [Path(path) for path in paths]
    named = ", ".join(map(str, files)) or "no file"
    if len(files) not in (1, 2):
        raise DataError(f"{named}: pairs come from one file ({_known_endings()}) or from two parallel ones.")
    for path in files:
        refuse_unreadable(path)
    if (source_column is None) != (target_column is None):
        raise DataError(f"{named}: only one column is given. Give both source_column and target_column, or none.")
    if len(files) == 1:
        return _PAIR_READERS[_known_ending(files[0])](files[0], source_column, target_column, on_bad)
    if source_column is not None:
        raise DataError(f"{named}: two parallel files have no columns. Leave out source_column and target_column.")
    for path in files:
        if format_ending(path) in _PAIR_READERS:
            raise DataError(f"{path} holds pairs by itself. Give it alone, or give two files of plain lines.")
    return _read_parallel(files[0], files[1], on_bad)


def columns_of(path: Path | str) -> list[str]:
    """The names of the columns of one file of pairs: its header or, of JSONL, the keys of the first object.

    The first line of a .tsv may be a pair rather than a header; only the caller can tell.
    """
    file = Path(path)
    refuse_unreadable(file)
    return _COLUMN_READERS[_known_ending(file)](file)


def _known_ending(path: Path) -> str:
    ending = format_ending(path)
    if ending not in _PAIR_READERS:
        raise DataError(
            f"{path}: one file of pairs must end in {_known_endings()}, perhaps with .gz or .zst. "
            "Rename it, or give two files."
        )
    if ending == ".parquet" and is_compressed(path):
        raise DataError(f"{path}: Parquet is compressed inside. Unpack the file and give it as {path.stem}.")
    return ending


def _read_parallel(source: Path, target: Path, on_bad: OnBad | None) -> Iterator[Pair]:
    sources, targets = file_lines(source, on_bad), file_lines(target, on_bad)
    pairs = 0
    for line in sources:
        partner = next(targets, None)
        if partner is None:
            raise _unequal(source, pairs + 1 + _count(sources), target, pairs)
        yield line, partner
        pairs += 1
    surplus = _count(targets)
    if surplus:
        raise _unequal(source, pairs, target, pairs + surplus)


def _count(lines: Iterator[str]) -> int:
    return sum(1 for _ in lines)


def _unequal(source: Path, source_lines: int, target: Path, target_lines: int) -> DataError:
    told = f"{source} has {source_lines} lines, but {target} has {target_lines}."
    for path in (source, target):
        if any("\r" in line for line in file_lines(path, _pass_over)):
            return DataError(
                f"{told} {path} has carriage returns (\\r) that are no line ends here; where they are meant as such, "
                "turn them into \\n: tr '\\r' '\\n' < FILE > NEW_FILE."
            )
    return DataError(f"{told} Line n of one must translate line n of the other: align them anew.")


def _pass_over(_: DataError) -> None:
    """The lines that are not UTF-8 were told of in the first reading."""


def _read_tsv(path: Path, source_column: str | None, target_column: str | None, on_bad: OnBad | None) -> Iterator[Pair]:
    advice = (
        "Look for a missing or a stray tab; of more than two columns, say which with source_column and target_column."
    )
    return _read_table(path, _tsv_rows(path, on_bad), source_column, target_column, advice)


def _read_csv(path: Path, source_column: str | None, target_column: str | None, on_bad: OnBad | None) -> Iterator[Pair]:
    advice = "Write a field that holds a separator, a quote or a line end in quotes."
    rows = _csv_rows(path, on_bad)
    return _read_table(path, rows, source_column or "source", target_column or "target", advice)


def _read_table(
    path: Path, rows: Iterator[TableRow], source_column: str | None, target_column: str | None, advice: str
) -> Iterator[Pair]:
    number, first = next(rows)
    width, source, target = 2, 0, 1
    has_header = False
    if source_column is not None and target_column is not None:
        width = len(first)
        source, target = (_place(column, first, f"{path}, line {number}") for column in (source_column, target_column))
        has_header = not (source_column.isdecimal() and target_column.isdecimal())

    pairs = rows if has_header else chain([(number, first)], rows)
    number = 0
    for number, row in pairs:
        if len(row) != width:
            raise DataError(
                f"{path}, line {number}: the number of columns is {len(row)}, but should be {width}. {advice}"
            )
        yield row[source], row[target]
    if number == 0:
        raise DataError(f"{path} has a header, but no rows. Give a file with pairs.")


def _tsv_rows(path: Path, on_bad: OnBad | None) -> Iterator[TableRow]:
    return ((number, line.split("\t")) for number, line in enumerate(file_lines(path, on_bad), start=1))


def _csv_rows(path: Path, on_bad: OnBad | None) -> Iterator[TableRow]:
    # The limit belongs to the process and is 131,072 at first, less than a long document.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    lines = file_lines(path, on_bad, with_ends=True)
    first = next(lines)
    rows = csv.reader(chain([first], lines), delimiter=_delimiter(first), strict=True)
    number = 1
    found = False
    try:
        for row in rows:
            if row:
                found = True
                yield number, row
            number = rows.line_num + 1
    except csv.Error as error:
        # After the dash the module gives advice to programmers.
        reason = str(error).partition(" - ")[0]
        raise DataError(
            f"{path}, line {number}: the row that begins here is not CSV ({reason}). Close every quote, double the "
            "quotes inside a quoted field, and quote a field that holds a line end."
        ) from None
    if not found:
        raise DataError(f"{path} has only blank lines. Give a file with text.")


def _delimiter(first: str) -> str:
    """A semicolon where that alone makes columns of the first line, otherwise a comma."""

    def width(delimiter: str) -> int:
        try:
            return len(next(csv.reader([first], delimiter=delimiter, strict=True)))
        except csv.Error:
            return 0

    return ";" if width(";") > 1 and width(",") < 2 else ","


def _place(column: str, first: list[str], where: str) -> int:
    """Where a column stands: by number, or by its name in the header."""
    if not column.isdecimal():
        if first.count(column) > 1:
            raise DataError(f'{where}: there is more than one column "{column}". Give the columns by number, from 1.')
        known = first
    else:
        known = [str(number) for number in range(1, len(first) + 1)]
    if column not in known:
        raise DataError(missing(where, "column", column, known))
    return known.index(column)


def _read_jsonl(path: Path, source_key: str | None, target_key: str | None, on_bad: OnBad | None) -> Iterator[Pair]:
    for number, line in enumerate(file_lines(path, on_bad), start=1):
        where = f"{path}, line {number}"
        record = _record(line, where)
        yield _text(record, source_key or "source", where, on_bad), _text(record, target_key or "target", where, on_bad)


def _record(line: str, where: str) -> dict[str, object]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON ({error}). Write one object per line.") from None
    if not isinstance(record, dict):
        raise DataError(f"{where} is not a JSON object. Write one object per line, in {{ }}.")
    return record


def _text(record: dict[str, object], key: str, where: str, on_bad: OnBad | None) -> str:
    if key not in record:
        raise DataError(missing(where, "key", key, record))
    value = record[key]
    if not isinstance(value, str):
        raise DataError(f'{where}: "{key}" is {shortened(json.dumps(value))}, not a text. Write it in quotes.')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        surrogate = f"\\u{ord(value[error.start]):04x}"
        fault = DataError(f'{where}: "{key}" holds half a character ({surrogate} without its other half).')
        tell_bad(fault, on_bad)
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _known_endings() -> str:
    *others, last = _PAIR_READERS
    return f"{', '.join(others)} or {last}"


_PAIR_READERS: dict[str, Callable[[Path, str | None, str | None, OnBad | None], Iterator[Pair]]] = {
    ".tsv": _read_tsv,
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".parquet": read_parquet,
}
_COLUMN_READERS: dict[str, Callable[[Path], list[str]]] = {
    ".tsv": lambda path: next(_tsv_rows(path, None))[1],
    ".csv": lambda path: next(_csv_rows(path, None))[1],
    ".jsonl": lambda path: list(_record(next(file_lines(path, None)), f"{path}, line 1")),
    ".parquet": parquet_columns,
}
