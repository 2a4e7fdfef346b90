"""Readers of rows: tables of every format in `formats/` and parallel files, all lazy and in constant memory.

Nothing is dropped silently. Input that cannot be read raises a DataError with the file and the line; unusual but
readable input (a blank field, extra spaces) is returned unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import OnBad, check_readable, file_lines, is_compressed, read_lines
from manyheads.text.reading.formats import format_of, is_table, table_suffixes
from manyheads.text.reading.row_spec import PAIR, Converter, Row, RowSpec
from manyheads.text.reading.table_format import NumberedRow, TableFormat

__all__ = [
    "Pair",
    "Row",
    "columns_of",
    "is_table",
    "numbered_rows",
    "read_lines",
    "read_pairs",
    "read_rows",
]

Pair = tuple[str, str]


def read_pairs(
    paths: Sequence[Path | str],
    *,
    source_column: str | None = None,
    target_column: str | None = None,
    on_bad: OnBad | None = None,
) -> Iterator[Pair]:
    """Yield (source, target) pairs from one table (.tsv, .csv, .jsonl, .parquet), or from two parallel files.

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
    """Yield rows with these fields from one table (.tsv, .csv, .jsonl, .parquet), or from one parallel file per field.

    Choose columns by name, in which case the first line is a header, or by number, from 1. A field without a chosen
    column uses the column with the field's name.

    - TSV: if no column is chosen and the first line contains no field name, the columns are the fields in order.
      Quotes have no special meaning.
    - CSV: a quoted field may contain line ends, which are kept. Blank lines are skipped.
    - JSONL and Parquet: a value that is not a string is passed to the field's converter in `converters`, if any.

    All formats but Parquet may be compressed as .gz or .zst. The function checks at once that the files exist, and
    checks their contents as it reads. Errors about invalid UTF-8 go to `on_bad`, as in `read_lines`.
    """
    return (row for _number, row in numbered_rows(paths, fields, columns, converters=converters, on_bad=on_bad))


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
    if len(files) not in (1, len(fields)):
        raise DataError(_wrong_number_of_files(files, spec))
    for path in files:
        check_readable(path)
    if spec.are_pairs and spec.has_columns and None in chosen:
        raise DataError(
            _(
                "{files}: only one column is given. Give both source_column and target_column, or none.",
                files=_names(files),
            )
        )
    if len(files) == 1 and (len(fields) > 1 or is_table(files[0])):
        return _table_format(files[0], spec.fields).rows(files[0], spec)
    if spec.has_columns:
        raise DataError(
            _(
                "{files}: parallel files have no columns. Remove {settings}.",
                files=_names(files),
                settings=spec.settings,
            )
            if len(files) > 1
            else _(
                "{path}: a file of plain lines has no columns. Remove {settings}.", path=path, settings=spec.settings
            )
        )
    for path in filter(is_table, files):
        raise DataError(_("{path} is a table. Give it alone, or give one file of plain lines per field.", path=path))
    return _read_parallel(files, spec)


def columns_of(path: Path | str) -> list[str]:
    """Return the column names of a table: its header, or the keys of the first JSONL object.

    The first line of a .tsv file is returned even if it is a row rather than a header.
    """
    file = Path(path)
    check_readable(file)
    return _table_format(file, PAIR).columns(file)


def _names(files: Sequence[Path]) -> str:
    return ", ".join(map(str, files))


def _wrong_number_of_files(files: Sequence[Path], spec: RowSpec) -> str:
    names = _names(files) or _("no file given")
    if len(spec.fields) == 1:
        return _(
            "{files}: rows are read from one file ({suffixes}) or from one file of plain lines.",
            files=names,
            suffixes=table_suffixes(),
        )
    return _(
        "{files}: rows are read from one file ({suffixes}) or from one file per field ({fields}).",
        files=names,
        suffixes=table_suffixes(),
        fields=", ".join(spec.fields),
    )


def _table_format(path: Path, fields: Sequence[str]) -> TableFormat:
    table = format_of(path)
    if table is None:
        raise DataError(
            _(
                "{path}: a single file must end in {suffixes}, optionally followed by .gz or .zst. Rename it, or give "
                "one file per field ({fields}).",
                path=path,
                suffixes=table_suffixes(),
                fields=", ".join(fields),
            )
        )
    if is_compressed(path) and not table.may_be_compressed:
        raise DataError(
            _(
                "{path}: {suffix} files are compressed internally. Decompress it to {stem}.",
                path=path,
                suffix=table.suffixes[0],
                stem=path.stem,
            )
        )
    return table


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
    return sum(1 for _line in lines)


def _unequal(source: Path, source_lines: int, target: Path, target_lines: int, spec: RowSpec) -> DataError:
    fault = _(
        "{source} has {source_lines} lines, but {target} has {target_lines}.",
        source=source,
        source_lines=source_lines,
        target=target,
        target_lines=target_lines,
    )
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
    return DataError(
        _(
            "{fault} Line n of one file must be the translation of line n of the other: align the files again.",
            fault=fault,
        )
        if spec.are_pairs
        else _("{fault} Line n of one file must belong to line n of the other: align the files again.", fault=fault)
    )


def _ignore(error: DataError) -> None:
    """Ignore lines that are not UTF-8; they were reported when the file was first read."""
