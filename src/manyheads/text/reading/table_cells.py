"""Rows of cells, as TSV and CSV files have them: the header, columns by name or number, the width of every row."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import line_name
from manyheads.text.reading.row_spec import RowSpec, check_width
from manyheads.text.reading.table_format import NumberedRow
from manyheads.text.suggestions import missing_name

NumberedCells = tuple[int, list[str]]  # the number of the row's first line, from 1, and its cells


def header_of(path: Path, cells: Iterator[NumberedCells]) -> list[str]:
    """Return the first row."""
    number, first = next(cells)
    check_width(len(first), line_name(path, number))
    return first


def rows_of_cells(
    path: Path, cells: Iterator[NumberedCells], spec: RowSpec, advice: str, *, in_order: bool = False
) -> Iterator[NumberedRow]:
    """Yield the fields of each row; `in_order`, the cells are the fields and there is no header.

    `advice` completes the error for a row with another number of cells than the first.
    """
    number, first = next(cells)
    check_width(len(first), line_name(path, number))
    width, indices = len(spec.fields), tuple(range(len(spec.fields)))
    has_header = False
    if not in_order:
        width = len(first)
        indices = tuple(_column_index(column, first, line_name(path, number), spec) for column in spec.column_names)
        has_header = not all(column.isdecimal() for column in spec.column_names)

    rows = cells if has_header else chain([(number, first)], cells)
    number = 0
    for number, row in rows:
        if len(row) != width:
            raise DataError(
                _(
                    "{where}: the number of columns is {n_columns}, but should be {width}. {advice}",
                    where=line_name(path, number),
                    n_columns=len(row),
                    width=width,
                    advice=advice,
                )
            )
        yield number, tuple(row[index] for index in indices)
    if number == 0:
        raise DataError(_("{path} has a header, but no rows. Give a file with rows.", path=path))


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
