"""`TableFormat`: what a reader of tables defines, one file a format in `formats/`; rows of cells, for TSV and CSV.

A format may also write: `append` copies a table and adds columns to it, such as the answers of a model. Nothing else of
the table changes.
"""

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO, ClassVar, TypeVar

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import OnBad, byte_order_mark, line_name
from manyheads.text.reading.row_spec import Row, RowSpec, check_width
from manyheads.text.suggestions import missing_name

NumberedRow = tuple[int, Row]  # the number of the row's first line, from 1, and the row

NumberedCells = tuple[int, list[str]]  # the number of the row's first line, from 1, and its cells

NewCells = Mapping[str, str | float | None]  # the cells to append to a row, by the names of their columns
# Makes the cells to append, for each row in order, from the rows; all rows have cells of the same names.
Fill = Callable[[Iterator[NumberedRow]], Iterator[NewCells]]

_Raw = TypeVar("_Raw")


class TableFormat(ABC):
    """A format of tables. The files exist when a method is called; what is in them is checked while reading."""

    suffixes: ClassVar[tuple[str, ...]]  # of file names, in lower case
    has_lines: ClassVar[bool] = True  # whether rows are numbered by lines; else errors speak of rows
    may_be_compressed: ClassVar[bool] = True  # as .gz or .zst
    may_lack_header: ClassVar[bool] = False  # whether the first line may be a row: columns are then given by number
    is_tab_separated: ClassVar[bool] = False  # whether two columns without a header are pairs, or words and their tags
    is_text: ClassVar[bool] = True  # whether it can be shown in a terminal
    has_languages: ClassVar[bool] = False  # whether the columns are languages

    @abstractmethod
    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows with their numbers: the fields of `spec`, each from its column."""

    @abstractmethod
    def columns(self, path: Path) -> list[str]:
        """Return the names of the columns."""

    def has_header(self, columns: Mapping[str, str]) -> bool:
        """Return whether the first line names the columns if these are chosen."""
        return False

    def records(self, path: Path, on_bad: OnBad | None = None) -> Iterator[dict[str, object]]:
        """Yield each row as its values by column; `manyheads init` looks at them. A value may be a number or a list."""
        names = tuple(self.columns(path))
        spec = RowSpec(names, names, (_encode,) * len(names), on_bad)
        for _number, row in self.rows(path, spec):
            yield dict(zip(names, map(_decode, row), strict=True))

    def append(self, path: Path, output: BinaryIO, spec: RowSpec, fill: Fill) -> None:
        """Write a copy of the table with the columns that `fill` makes; all else stays as it is."""
        raise DataError(
            _("{path}: {suffix} files are read, but not written. Add --json.", path=path, suffix=self.suffixes[0])
        )


def paired(rows: Iterator[tuple[_Raw, NumberedRow]], fill: Fill) -> Iterator[tuple[_Raw, NewCells]]:
    """Yield what the file has of each row with the cells to append to it; `fill` may read some rows ahead."""
    waiting: deque[_Raw] = deque()

    def remembered() -> Iterator[NumberedRow]:
        for raw, row in rows:
            waiting.append(raw)
            yield row

    for cells in fill(remembered()):
        yield waiting.popleft(), cells


def free_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Return names for new columns: "label" becomes "predicted_label" if the table has that column already."""
    free: list[str] = []
    for name in names:
        candidates = chain([name, f"predicted_{name}"], (f"predicted_{name}_{number}" for number in count(2)))
        free.append(next(candidate for candidate in candidates if candidate not in taken))
    return free


def cell_text(value: str | float | None) -> str:
    """Return a cell to append as text: a probability has four decimals."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.4f}"


class TextCopy:
    """Writes text to a stream in the encoding of a file, with its byte order mark."""

    def __init__(self, path: Path, output: BinaryIO) -> None:
        mark, self._encoding = byte_order_mark(path)
        self._output = output
        output.write(mark)

    def write(self, text: str) -> None:
        """Write text."""
        self._output.write(text.encode(self._encoding))

    def write_appended(self, record: str, cells: str) -> None:
        """Write a record of the file with cells before its line end."""
        body = record.removesuffix("\n").removesuffix("\r") if record.endswith("\n") else record
        self.write(body + cells + record[len(body) :])


def _encode(value: object) -> str:
    """Convert a value that is not a string to text from which `_decode` restores it."""
    return f"\0{json.dumps(value, default=str)}"


def _decode(text: str) -> object:
    return json.loads(text[1:]) if text.startswith("\0") else text


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
