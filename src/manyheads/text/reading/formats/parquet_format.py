"""Parquet, in constant memory; requires pyarrow (the `parquet` extra).

A nested column is addressed with a dot: "translation.en". A value that is not a string is passed to the converter of
its field, if any.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import MAX_EXPANSION, OnBad, empty_file_error, expansion_error, raise_or_report
from manyheads.text.reading.row_spec import Converter, RowSpec, check_width
from manyheads.text.reading.table_format import Fill, NewCells, NumberedRow, TableFormat, free_names, paired
from manyheads.text.suggestions import missing_name, shortened

_BATCH_ROWS = 512
_GROUP_ROWS = 1 << 16  # of a row group that is written
_BATCH_BYTES = 1 << 28  # at most, of a column
_BUFFER_BYTES = 1 << 20  # per column; without it pyarrow loads whole columns of a row group at once
_STRING_TYPES = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


class ParquetFormat(TableFormat):
    """Rows are numbered from 1. The files are compressed internally."""

    suffixes = (".parquet",)
    has_lines = False
    may_be_compressed = False
    is_text = False

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows of a file; raise at once if pyarrow is not installed."""
        _pyarrow(path)
        return _read(path, spec)

    def columns(self, path: Path) -> list[str]:
        """Return the names of all columns, nested ones included."""
        with _opened(path) as file:
            names = list(_flat(file.schema_arrow.empty_table()).column_names)
        check_width(len(names), str(path))
        return names

    def append(self, path: Path, output: BinaryIO, spec: RowSpec, fill: Fill) -> None:
        """Write the table with the same schema and the new columns."""
        arrow = _pyarrow(path)
        writer = None
        for table in _appended(path, paired(_rows_of_tables(path, spec), fill)):
            writer = writer or arrow.parquet.ParquetWriter(output, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _rows_of_tables(path: Path, spec: RowSpec) -> Iterator[tuple[Any, NumberedRow]]:
    """Yield the rows of a file, the last of each batch with the whole batch as a table."""
    rows = _read(path, spec)
    with _opened(path) as file:
        for batch in file.iter_batches(_n_batch_rows(path, file.metadata), use_threads=False):
            table = _pyarrow(path).Table.from_batches([batch])
            for index in range(len(table)):
                yield table if index == len(table) - 1 else None, next(rows)


def _appended(path: Path, pairs: Iterator[tuple[Any, NewCells]]) -> Iterator[Any]:
    """Yield tables of at most about `_GROUP_ROWS` rows with the new columns."""
    arrow = _pyarrow(path)
    tables: list[Any] = []
    cells: list[NewCells] = []
    for table, new in pairs:
        cells.append(new)
        if table is not None:
            tables.append(table)
            if len(cells) >= _GROUP_ROWS:
                yield _with_columns(arrow, tables, cells)
                tables, cells = [], []
    if cells:
        yield _with_columns(arrow, tables, cells)


def _with_columns(arrow: Any, tables: list[Any], cells: list[NewCells]) -> Any:
    table = arrow.concat_tables(tables)
    for name, free in zip(cells[0], free_names(list(cells[0]), table.column_names), strict=True):
        values = [new[name] for new in cells]
        kind = arrow.string() if any(isinstance(value, str) for value in values) else arrow.float64()
        table = table.append_column(free, arrow.array(values, kind))
    return table


def _read(path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
    columns = list(zip(spec.column_names, spec.converters, strict=True))
    with _opened(path) as file:
        schema = _flat(file.schema_arrow.empty_table()).schema
        for column, converter in columns:
            _check_column(path, column, schema, converter, spec)
        if file.metadata.num_rows == 0:
            raise DataError(_("{path} has columns, but no rows. Give a file with rows.", path=path))
        first = 1
        n_rows = _n_batch_rows(path, file.metadata)
        for batch in file.iter_batches(n_rows, columns=sorted({*spec.column_names}), use_threads=False):
            table = _flat(_pyarrow(path).Table.from_batches([batch]))
            texts = [
                _decode(path, column, table.column(column), first, spec.on_bad, converter)
                if _is_text(path, schema.field(column).type) or converter is None
                else _convert(path, column, table.column(column), first, converter)
                for column, converter in columns
            ]
            yield from enumerate(zip(*texts, strict=True), start=first)
            first += table.num_rows


def _n_batch_rows(path: Path, metadata: Any) -> int:
    """Return how many rows to read at once: few if a small file holds long values, each of which many rows may share.

    Raise if the file expands as no text does. The metadata of single columns would tell more, but pyarrow aborts the
    process if they are damaged.
    """
    sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    if sum(sizes) <= MAX_EXPANSION * path.stat().st_size:
        return _BATCH_ROWS
    if sum(sizes) > _BATCH_BYTES:
        raise expansion_error(path)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, *sizes)))


def _binary_values(path: Path, values: Any) -> Iterator[bytes | None]:
    """Yield the values of a string column; those of a dictionary are not copied for each row."""
    binary = _pyarrow(path).large_binary()
    for chunk in values.chunks:
        if _pyarrow(path).types.is_dictionary(chunk.type):
            distinct = chunk.dictionary.cast(binary).to_pylist()
            yield from (None if index is None else distinct[index] for index in chunk.indices.to_pylist())
        else:
            yield from chunk.cast(binary).to_pylist()


def _decode(
    path: Path, column: str, values: Any, first: int, on_bad: OnBad | None, converter: Converter | None
) -> Iterator[str]:
    """Yield the texts of a string column, decoded one by one: Parquet does not guarantee valid UTF-8."""
    for row, value in enumerate(_binary_values(path, values), start=first):
        if value is None and converter is not None and (converted := converter(None)) is not None:
            yield converted
            continue
        if value is None:
            where = _cell_name(path, row, column)
            raise DataError(_("{where} is null, not a string. Remove or fill such rows.", where=where))
        try:
            text = value.decode()
        except UnicodeDecodeError as error:
            fault = _(
                "{where}: byte {number} (0x{byte:02X}) is not UTF-8. Write the column again as UTF-8.",
                where=_cell_name(path, row, column),
                number=error.start + 1,
                byte=value[error.start],
            )
            raise_or_report(DataError(fault), on_bad)
            text = value.decode(errors="replace")
        yield text


def _convert(path: Path, column: str, values: Any, first: int, converter: Converter) -> Iterator[str]:
    for row, value in enumerate(values.to_pylist(), start=first):
        text = converter(value)
        if text is None:
            raise DataError(
                _(
                    "{where} is {value}, which is not supported. Use a string.",
                    where=_cell_name(path, row, column),
                    value="null" if value is None else shortened(str(value)),
                )
            )
        yield text


def _cell_name(path: Path, row: int, column: str) -> str:
    return _('{path}, row {row}, column "{column}"', path=path, row=row, column=column)


def _check_column(path: Path, column: str, schema: Any, converter: Converter | None, spec: RowSpec) -> None:
    names = list(schema.names)
    if column not in names:
        raise DataError(missing_name(str(path), "column", column, names, spec.settings))
    if names.count(column) > 1:
        raise DataError(
            _('{path}: there are several columns "{column}". Rename all but one.', path=path, column=column)
        )
    kind = schema.field(column).type
    if converter is None and not _is_text(path, kind):
        raise DataError(
            _(
                '{path}: column "{column}" has type {type}. Choose a column of strings.',
                path=path,
                column=column,
                type=shortened(str(kind)),
            )
        )


def _is_text(path: Path, kind: Any) -> bool:
    return str(kind.value_type if _pyarrow(path).types.is_dictionary(kind) else kind) in _STRING_TYPES


def _flat(table: Any) -> Any:
    """Return the table with nested columns as top-level columns."""
    while any(str(field.type).startswith("struct<") for field in table.schema):
        table = table.flatten()
    return table


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    arrow = _pyarrow(path)
    if path.stat().st_size == 0:
        raise empty_file_error(path)
    try:
        with path.open("rb") as stream:
            yield arrow.parquet.ParquetFile(stream, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    except UnicodeDecodeError:
        raise DataError(_("{path} cannot be read as Parquet: the name of a column is not UTF-8.", path=path)) from None
    except (arrow.ArrowException, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise DataError(
            _("{path} cannot be read as Parquet: {reason}.", path=path, reason=reason.rstrip("."))
        ) from None


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            _('{path}: Parquet requires pyarrow. Install it: pip install "manyheads[parquet]".', path=path)
        ) from None
    return pyarrow


FORMAT = ParquetFormat()
