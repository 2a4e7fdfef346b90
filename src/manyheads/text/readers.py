"""Readers of rows, in constant memory and without silent loss: every format is a generator over lines or rows.

What cannot be read is a DataError with the file and the line; what is merely odd (a blank field, stray spaces) is
passed on as it stands. A new format is one more entry in `_ROW_READERS` and `_COLUMN_READERS`.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

from manyheads.errors import DataError
from manyheads.text.files import (
    OnBad,
    check_readable,
    file_lines,
    format_suffix,
    is_compressed,
    raise_or_report,
    read_lines,
)
from manyheads.text.parquet import parquet_columns, read_parquet
from manyheads.text.row_spec import PAIR, Converter, Row, RowSpec
from manyheads.text.suggestions import missing_name, shortened

__all__ = ["Pair", "Row", "columns_of", "is_table", "numbered_rows", "read_lines", "read_pairs", "read_rows"]

Pair = tuple[str, str]
Numbered = tuple[int, Row]  # with the number of its first line
_Cells = tuple[int, list[str]]

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

    As `read_rows` reads them, but a TSV file without chosen columns never has a header.
    """
    return cast("Iterator[Pair]", read_rows(paths, PAIR, (source_column, target_column), on_bad=on_bad))


def read_rows(
    paths: Sequence[Path | str],
    fields: Sequence[str],
    columns: Sequence[str | None] = (),
    *,
    converters: Mapping[str, Converter] | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[Row]:
    r"""Rows of these fields from one .tsv, .csv, .jsonl or .parquet file, or from as many parallel files as fields.

    Columns are chosen by name, and then the first line is a header, or by number, counted from 1; a field without
    a chosen column is looked for by its own name. TSV: without chosen columns, and where no field's name stands in
    the first line, the columns are the fields in order. Quotes are text like any other. CSV: a quoted field may hold
    line ends, which are kept as they are, and blank lines are no rows. JSONL and Parquet: keys and columns by name;
    a value that is not a text is given to the field's conversion among `converters`, where it has one. All but
    Parquet may also be compressed, as .gz or .zst. Whether the files are there is checked at once, what is in them
    as it is read; `on_bad` is told of text that is not UTF-8, as in `read_lines`.
    """
    return (row for _, row in numbered_rows(paths, fields, columns, converters=converters, on_bad=on_bad))


def numbered_rows(
    paths: Sequence[Path | str],
    fields: Sequence[str],
    columns: Sequence[str | None] = (),
    *,
    converters: Mapping[str, Converter] | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[Numbered]:
    """What `read_rows` gives, each row with the number of the line it begins in; of Parquet, of the row."""
    files = [Path(path) for path in paths]
    chosen = tuple(columns) or (None,) * len(fields)
    spec = RowSpec(tuple(fields), chosen, tuple(map((converters or {}).get, fields)), on_bad)
    named = ", ".join(map(str, files)) or "no file"
    if len(files) not in (1, len(fields)):
        ones = f"from {spec.number} parallel ones" if len(fields) > 1 else "of plain lines"
        raise DataError(f"{named}: {spec.noun} come from one file ({_known_suffixes()}) or {ones}.")
    for path in files:
        check_readable(path)
    if spec.are_pairs and spec.has_columns and None in chosen:
        raise DataError(f"{named}: only one column is given. Give both source_column and target_column, or none.")
    if len(files) == 1 and (len(fields) > 1 or is_table(files[0])):
        return _ROW_READERS[_known_suffix(files[0], spec)](files[0], spec)
    if spec.has_columns:
        told = f"{spec.number} parallel files have" if len(files) > 1 else "a file of plain lines has"
        raise DataError(f"{named}: {told} no columns. Leave out {spec.settings}.")
    for path in filter(is_table, files):
        raise DataError(
            f"{path} holds {spec.noun} by itself. Give it alone, or give {spec.number} files of plain lines."
        )
    return _read_parallel(files, spec)


def is_table(path: Path) -> bool:
    """Whether the name of the file says that it has columns."""
    return format_suffix(path) in _ROW_READERS


def columns_of(path: Path | str) -> list[str]:
    """The names of the columns of one file of pairs: its header or, of JSONL, the keys of the first object.

    The first line of a .tsv may be a pair rather than a header; only the caller can tell.
    """
    file = Path(path)
    check_readable(file)
    return _COLUMN_READERS[_known_suffix(file, RowSpec(PAIR, (None, None), (None, None)))](file)


def _known_suffix(path: Path, spec: RowSpec) -> str:
    ending = format_suffix(path)
    if ending not in _ROW_READERS:
        raise DataError(
            f"{path}: one file of {spec.noun} must end in {_known_suffixes()}, perhaps with .gz or .zst. "
            f"Rename it, or give {spec.number} files."
        )
    if ending == ".parquet" and is_compressed(path):
        raise DataError(f"{path}: Parquet is compressed inside. Unpack the file and give it as {path.stem}.")
    return ending


def _read_parallel(files: Sequence[Path], spec: RowSpec) -> Iterator[Numbered]:
    streams = [file_lines(path, spec.on_bad) for path in files]
    number = 0
    while True:
        lines = [next(stream, None) for stream in streams]
        row = tuple(line for line in lines if line is not None)
        if len(row) < len(streams):
            break
        number += 1
        yield number, row
    counts = [number + (line is not None) + _count(stream) for line, stream in zip(lines, streams, strict=True)]
    for path, count in zip(files, counts, strict=True):
        if count != counts[0]:
            raise _unequal(files[0], counts[0], path, count, spec)


def _count(lines: Iterator[str]) -> int:
    return sum(1 for _ in lines)


def _unequal(source: Path, source_lines: int, target: Path, target_lines: int, spec: RowSpec) -> DataError:
    told = f"{source} has {source_lines} lines, but {target} has {target_lines}."
    for path in (source, target):
        if any("\r" in line for line in file_lines(path, _pass_over)):
            return DataError(
                f"{told} {path} has carriage returns (\\r) that are no line ends here; where they are meant as such, "
                "turn them into \\n: tr '\\r' '\\n' < FILE > NEW_FILE."
            )
    meant = "translate" if spec.are_pairs else "belong to"
    return DataError(f"{told} Line n of one must {meant} line n of the other: align them anew.")


def _pass_over(_: DataError) -> None:
    """The lines that are not UTF-8 were told of in the first reading."""


def _read_tsv(path: Path, spec: RowSpec) -> Iterator[Numbered]:
    advice = f"Look for a missing or a stray tab; of more than {spec.number} columns, say which with {spec.settings}."
    rows = _tsv_rows(path, spec.on_bad)
    number, first = next(rows)
    # A name or two in the first line is a header as well: better to ask for the others than to take it for a row.
    in_order = not spec.has_columns and (spec.are_pairs or not {*spec.fields} & {*first})
    yield from _read_table(path, chain([(number, first)], rows), spec, advice, in_order=in_order)


def _read_csv(path: Path, spec: RowSpec) -> Iterator[Numbered]:
    advice = "Write a field that holds a separator, a quote or a line end in quotes."
    return _read_table(path, _csv_rows(path, spec.on_bad), spec, advice)


def _read_table(
    path: Path, cells: Iterator[_Cells], spec: RowSpec, advice: str, *, in_order: bool = False
) -> Iterator[Numbered]:
    number, first = next(cells)
    width, indices = len(spec.fields), tuple(range(len(spec.fields)))
    has_header = False
    if not in_order:
        width = len(first)
        indices = tuple(_column_index(column, first, f"{path}, line {number}", spec) for column in spec.names)
        has_header = not all(column.isdecimal() for column in spec.names)

    rows = cells if has_header else chain([(number, first)], cells)
    number = 0
    for number, row in rows:
        if len(row) != width:
            raise DataError(
                f"{path}, line {number}: the number of columns is {len(row)}, but should be {width}. {advice}"
            )
        yield number, tuple(row[index] for index in indices)
    if number == 0:
        raise DataError(f"{path} has a header, but no rows. Give a file with {spec.noun}.")


def _tsv_rows(path: Path, on_bad: OnBad | None) -> Iterator[_Cells]:
    return ((number, line.split("\t")) for number, line in enumerate(file_lines(path, on_bad), start=1))


def _csv_rows(path: Path, on_bad: OnBad | None) -> Iterator[_Cells]:
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


def _column_index(column: str, first: list[str], where: str, spec: RowSpec) -> int:
    """Where a column stands: by number, or by its name in the header."""
    if not column.isdecimal():
        if first.count(column) > 1:
            raise DataError(f'{where}: there is more than one column "{column}". Give the columns by number, from 1.')
        known = first
    else:
        known = [str(number) for number in range(1, len(first) + 1)]
    if column not in known:
        raise DataError(missing_name(where, "column", column, known, spec.settings))
    return known.index(column)


def _read_jsonl(path: Path, spec: RowSpec) -> Iterator[Numbered]:
    for number, line in enumerate(file_lines(path, spec.on_bad), start=1):
        where = f"{path}, line {number}"
        record = _record(line, where)
        keys = zip(spec.names, spec.converters, strict=True)
        yield number, tuple(_text(record, key, converter, where, spec) for key, converter in keys)


def _record(line: str, where: str) -> dict[str, object]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON ({error}). Write one object per line.") from None
    if not isinstance(record, dict):
        raise DataError(f"{where} is not a JSON object. Write one object per line, in {{ }}.")
    return record


def _text(record: dict[str, object], key: str, converter: Converter | None, where: str, spec: RowSpec) -> str:
    if key not in record:
        raise DataError(missing_name(where, "key", key, record, spec.settings))
    value = record[key]
    if converter is not None and not isinstance(value, str):
        converted = converter(value)
        if converted is None:
            given = shortened(json.dumps(value, ensure_ascii=False))
            raise DataError(f'{where}: "{key}" is {given}, which may not stand there. Mend it.')
        value = converted
    if not isinstance(value, str):
        raise DataError(f'{where}: "{key}" is {shortened(json.dumps(value))}, not a text. Write it in quotes.')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        surrogate = f"\\u{ord(value[error.start]):04x}"
        fault = DataError(f'{where}: "{key}" holds half a character ({surrogate} without its other half).')
        raise_or_report(fault, spec.on_bad)
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _known_suffixes() -> str:
    *others, last = _ROW_READERS
    return f"{', '.join(others)} or {last}"


_ROW_READERS: dict[str, Callable[[Path, RowSpec], Iterator[Numbered]]] = {
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
