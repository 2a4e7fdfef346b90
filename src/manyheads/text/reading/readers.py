"""Readers of rows: TSV, CSV, JSONL, Parquet and parallel files, all lazy and in constant memory.

Nothing is dropped silently. Input that cannot be read raises a DataError with the file and the line; unusual but
readable input (a blank field, extra spaces) is returned unchanged. To add a format, add an entry to `_ROW_READERS`
and `_COLUMN_READERS`.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import (
    OnBad,
    check_readable,
    file_lines,
    format_suffix,
    is_compressed,
    raise_or_report,
    read_lines,
)
from manyheads.text.reading.parquet import parquet_columns, read_parquet
from manyheads.text.reading.row_spec import MAX_COLUMNS, PAIR, Converter, Row, RowSpec, check_width
from manyheads.text.suggestions import missing_name, shortened

__all__ = [
    "Pair",
    "Row",
    "columns_of",
    "is_table",
    "numbered_rows",
    "read_lines",
    "read_pairs",
    "read_records",
    "read_rows",
]

Pair = tuple[str, str]
NumberedRow = tuple[int, Row]  # the number of the row's first line, from 1, and the row
_NumberedCells = tuple[int, list[str]]

# In characters. Without a limit, an unclosed quote would read a large file into memory before it is detected.
_LONGEST_FIELD = 1 << 24
_LONGEST_ROW = 1 << 25  # of a CSV file, whose rows may have many lines
_MAX_DEPTH = 100  # of nested JSON values; Python itself fails at about a thousand, at a different depth each time


def read_pairs(
    paths: Sequence[Path | str],
    *,
    source_column: str | None = None,
    target_column: str | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[Pair]:
    """Yield (source, target) pairs from one .tsv, .csv, .jsonl or .parquet file, or from two parallel files.

    Works as `read_rows`, except that a TSV file without chosen columns has no header.
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
    """Yield rows with these fields from one .tsv, .csv, .jsonl or .parquet file, or from one parallel file per field.

    Choose columns by name, in which case the first line is a header, or by number, from 1. A field without a chosen
    column uses the column with the field's name.

    - TSV: if no column is chosen and the first line contains no field name, the columns are the fields in order.
      Quotes have no special meaning.
    - CSV: a quoted field may contain line ends, which are kept. Blank lines are skipped.
    - JSONL and Parquet: a value that is not a string is passed to the field's converter in `converters`, if any.

    All formats but Parquet may be compressed as .gz or .zst. The function checks at once that the files exist, and
    checks their contents as it reads. Errors about invalid UTF-8 go to `on_bad`, as in `read_lines`.
    """
    return (row for _, row in numbered_rows(paths, fields, columns, converters=converters, on_bad=on_bad))


def numbered_rows(
    paths: Sequence[Path | str],
    fields: Sequence[str],
    columns: Sequence[str | None] = (),
    *,
    converters: Mapping[str, Converter] | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[NumberedRow]:
    """Yield the rows of `read_rows`, each with the number of its first line, or of its row in a Parquet file."""
    files = [Path(path) for path in paths]
    chosen = tuple(columns) or (None,) * len(fields)
    spec = RowSpec(tuple(fields), chosen, tuple(map((converters or {}).get, fields)), on_bad)
    file_names = ", ".join(map(str, files)) or "no file given"
    if len(files) not in (1, len(fields)):
        lines = f"{spec.n_fields_word} parallel files" if len(fields) > 1 else "one file of plain lines"
        raise DataError(
            _(
                "{file_names}: {noun} are read from one file ({known_suffixes}) or from {lines}.",
                file_names=file_names,
                noun=spec.noun,
                known_suffixes=_known_suffixes(),
                lines=lines,
            )
        )
    for path in files:
        check_readable(path)
    if spec.are_pairs and spec.has_columns and None in chosen:
        raise DataError(
            _(
                "{file_names}: only one column is given. Give both source_column and target_column, or none.",
                file_names=file_names,
            )
        )
    if len(files) == 1 and (len(fields) > 1 or is_table(files[0])):
        return _ROW_READERS[_known_suffix(files[0], spec)](files[0], spec)
    if spec.has_columns:
        lines = f"{spec.n_fields_word} parallel files have" if len(files) > 1 else "a file of plain lines has"
        raise DataError(
            _(
                "{file_names}: {lines} no columns. Remove {settings}.",
                file_names=file_names,
                lines=lines,
                settings=spec.settings,
            )
        )
    for path in filter(is_table, files):
        raise DataError(
            _(
                "{path} is a table of {noun}. Give it alone, or give {n_fields_word} files of plain lines.",
                path=path,
                noun=spec.noun,
                n_fields_word=spec.n_fields_word,
            )
        )
    return _read_parallel(files, spec)


def is_table(path: Path) -> bool:
    """Return whether the file name ends in the suffix of a format with columns."""
    return format_suffix(path) in _ROW_READERS


def columns_of(path: Path | str) -> list[str]:
    """Return the column names of a table: its header, or the keys of the first JSONL object.

    The first line of a .tsv file is returned even if it is a row rather than a header.
    """
    file = Path(path)
    check_readable(file)
    return _COLUMN_READERS[_known_suffix(file, RowSpec(PAIR, (None, None), (None, None)))](file)


def _known_suffix(path: Path, spec: RowSpec) -> str:
    suffix = format_suffix(path)
    if suffix not in _ROW_READERS:
        raise DataError(
            _(
                "{path}: a single file of {noun} must end in {known_suffixes}, optionally followed by .gz or .zst. "
                "Rename it, or give {n_fields_word} files.",
                path=path,
                noun=spec.noun,
                known_suffixes=_known_suffixes(),
                n_fields_word=spec.n_fields_word,
            )
        )
    if suffix == ".parquet" and is_compressed(path):
        raise DataError(
            _("{path}: Parquet files are compressed internally. Decompress it to {stem}.", path=path, stem=path.stem)
        )
    return suffix


def _read_parallel(files: Sequence[Path], spec: RowSpec) -> Iterator[NumberedRow]:
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
    fault = f"{source} has {source_lines} lines, but {target} has {target_lines}."
    for path in (source, target):
        if any("\r" in line for line in file_lines(path, _ignore)):
            return DataError(
                _(
                    "{fault} {path} contains carriage returns (\\r), which do not end a line. If they should, "
                    "convert them to \\n: tr '\\r' '\\n' < FILE > NEW_FILE.",
                    fault=fault,
                    path=path,
                )
            )
    relation = "be the translation of" if spec.are_pairs else "belong to"
    return DataError(
        _(
            "{fault} Line n of one file must {relation} line n of the other: align the files again.",
            fault=fault,
            relation=relation,
        )
    )


def _ignore(_: DataError) -> None:
    """Ignore lines that are not UTF-8; they were reported when the file was first read."""


def _read_tsv(path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
    advice = (
        f"Check for a missing or an extra tab. If the file has more than {spec.n_fields_word} columns, choose them "
        f"with {spec.settings}."
    )
    rows = _tsv_rows(path, spec.on_bad)
    number, first = next(rows)
    # One field name in the first line already makes it a header: asking for the others is safer than reading it
    # as a row.
    in_order = not spec.has_columns and (spec.are_pairs or not {*spec.fields} & {*first})
    yield from _read_table(path, chain([(number, first)], rows), spec, advice, in_order=in_order)


def _read_csv(path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
    advice = "Quote every field that contains a separator, a quote or a line end."
    return _read_table(path, _csv_rows(path, spec.on_bad), spec, advice)


def _read_table(
    path: Path, cells: Iterator[_NumberedCells], spec: RowSpec, advice: str, *, in_order: bool = False
) -> Iterator[NumberedRow]:
    number, first = next(cells)
    check_width(len(first), f"{path}, line {number}")
    width, indices = len(spec.fields), tuple(range(len(spec.fields)))
    has_header = False
    if not in_order:
        width = len(first)
        indices = tuple(_column_index(column, first, f"{path}, line {number}", spec) for column in spec.column_names)
        has_header = not all(column.isdecimal() for column in spec.column_names)

    rows = cells if has_header else chain([(number, first)], cells)
    number = 0
    for number, row in rows:
        if len(row) != width:
            raise DataError(
                _(
                    "{path}, line {number}: the number of columns is {n_row}, but should be {width}. {advice}",
                    path=path,
                    number=number,
                    n_row=len(row),
                    width=width,
                    advice=advice,
                )
            )
        yield number, tuple(row[index] for index in indices)
    if number == 0:
        raise DataError(_("{path} has a header, but no rows. Give a file with {noun}.", path=path, noun=spec.noun))


def _header(path: Path, cells: Iterator[_NumberedCells]) -> list[str]:
    number, first = next(cells)
    check_width(len(first), f"{path}, line {number}")
    return first


def _tsv_rows(path: Path, on_bad: OnBad | None) -> Iterator[_NumberedCells]:
    return ((number, line.split("\t")) for number, line in enumerate(file_lines(path, on_bad), start=1))


def _csv_rows(path: Path, on_bad: OnBad | None) -> Iterator[_NumberedCells]:
    # The limit is global to the process; its default, 131,072, is shorter than a long document.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    lines = file_lines(path, on_bad, with_ends=True)
    first = next(lines)
    number = 1
    n_characters = 0  # of the row that is being read

    def bounded_lines() -> Iterator[str]:
        nonlocal n_characters
        for line in chain([first], lines):
            n_characters += len(line)
            if n_characters > _LONGEST_ROW:
                raise csv.Error(f"it is longer than {_LONGEST_ROW} characters")
            yield line

    rows = csv.reader(bounded_lines(), delimiter=_delimiter(first), strict=True)
    has_rows = False
    try:
        for row in rows:
            if row:
                has_rows = True
                yield number, row
            number = rows.line_num + 1
            n_characters = 0
    except csv.Error as error:
        reason = str(error).partition(" - ")[0]  # the rest is advice for programmers
        raise DataError(
            _(
                "{path}, line {number}: the row that starts here is not valid CSV ({reason}). Close every quote, "
                "double the quotes inside a quoted field, and quote every field that contains a line end.",
                path=path,
                number=number,
                reason=reason,
            )
        ) from None
    if not has_rows:
        raise DataError(_("{path} has only blank lines. Give a file with text.", path=path))


def _delimiter(first: str) -> str:
    """Return a semicolon if only that splits the first line into columns, otherwise a comma."""

    def width(delimiter: str) -> int:
        try:
            return len(next(csv.reader([first], delimiter=delimiter, strict=True)))
        except csv.Error:
            return 0

    return ";" if width(";") > 1 and width(",") < 2 else ","


def _column_index(column: str, first: list[str], where: str, spec: RowSpec) -> int:
    """Return the index of a column that is given by number or by its name in the header."""
    if column.isdecimal():
        is_known = len(column) < 9 and str(int(column)) == column and 1 <= int(column) <= len(first)
        if is_known:
            return int(column) - 1
        known = [str(number) for number in range(1, len(first) + 1)]
    else:
        if first.count(column) > 1:
            raise DataError(
                _(
                    '{where}: there are several columns "{column}". Choose columns by number, from 1.',
                    where=where,
                    column=column,
                )
            )
        if column in first:
            return first.index(column)
        known = first
    raise DataError(missing_name(where, "column", column, known, spec.settings))


def _read_jsonl(path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
    keys = list(zip(spec.column_names, spec.converters, strict=True))
    for number, record in enumerate(read_records(path, spec.on_bad), start=1):
        where = f"{path}, line {number}"
        yield number, tuple(_text(record, key, converter, where, spec) for key, converter in keys)


def read_records(path: Path, on_bad: OnBad | None = None) -> Iterator[dict[str, object]]:
    """Yield the object on each line of an existing JSONL file."""
    for number, line in enumerate(file_lines(path, on_bad), start=1):
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except RecursionError:
            raise _too_deep(where) from None
        except ValueError as error:
            reason = str(error).partition("; use sys")[0]  # the rest is advice for programmers
            raise DataError(
                _("{where} is not JSON ({reason}). Write one object per line.", where=where, reason=reason)
            ) from None
        if not isinstance(record, dict):
            raise DataError(_("{where} is not a JSON object. Write one object per line, in {{ }}.", where=where))
        if len(record) > MAX_COLUMNS:
            raise DataError(
                _(
                    "{where} has {n_record:,} keys, but at most {MAX_COLUMNS:,} are supported.",
                    where=where,
                    n_record=len(record),
                    MAX_COLUMNS=MAX_COLUMNS,
                )
            )
        if "\\u" in line and any(map(_has_surrogate, record)):
            raise DataError(
                _("{where}: a key contains half of a surrogate pair (\\ud800 to \\udfff). Rename the key.", where=where)
            )
        if line.count("[") + line.count("{") > _MAX_DEPTH and _is_deeper(record, _MAX_DEPTH):
            raise _too_deep(where)
        yield record


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _too_deep(where: str) -> DataError:
    return DataError(
        _(
            "{where} is nested more than {MAX_DEPTH} levels deep. Write the text as a string.",
            where=where,
            MAX_DEPTH=_MAX_DEPTH,
        )
    )


def _is_deeper(value: object, n_levels: int) -> bool:
    """Return whether lists and objects are nested more than `n_levels` deep."""
    if not isinstance(value, list | dict):
        return False
    items = value.values() if isinstance(value, dict) else value
    return n_levels == 0 or any(_is_deeper(item, n_levels - 1) for item in items)


def _text(record: dict[str, object], key: str, converter: Converter | None, where: str, spec: RowSpec) -> str:
    if key not in record:
        raise DataError(missing_name(where, "key", key, record, spec.settings))
    value = record[key]
    if converter is not None and not isinstance(value, str):
        converted = converter(value)
        if converted is None:
            shown = shortened(json.dumps(value, ensure_ascii=False))
            raise DataError(
                _(
                    '{where}: "{key}" is {shown}, which is not supported. Use a string.',
                    where=where,
                    key=key,
                    shown=shown,
                )
            )
        value = converted
    if not isinstance(value, str):
        raise DataError(
            _(
                '{where}: "{key}" is {shortened}, not a string. Write it in quotes.',
                where=where,
                key=key,
                shortened=shortened(json.dumps(value)),
            )
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        surrogate = f"\\u{ord(value[error.start]):04x}"
        fault = f'{where}: "{key}" contains {surrogate}, half of a surrogate pair. Write the whole character.'
        raise_or_report(DataError(fault), spec.on_bad)
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _known_suffixes() -> str:
    *others, last = _ROW_READERS
    return f"{', '.join(others)} or {last}"


_ROW_READERS: dict[str, Callable[[Path, RowSpec], Iterator[NumberedRow]]] = {
    ".tsv": _read_tsv,
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".parquet": read_parquet,
}
_COLUMN_READERS: dict[str, Callable[[Path], list[str]]] = {
    ".tsv": lambda path: _header(path, _tsv_rows(path, None)),
    ".csv": lambda path: _header(path, _csv_rows(path, None)),
    ".jsonl": lambda path: list(next(read_records(path))),
    ".parquet": parquet_columns,
}
