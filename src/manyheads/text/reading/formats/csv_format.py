"""CSV: columns separated by commas or semicolons. A quoted field may contain line ends, which are kept."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import OnBad, file_lines, line_name
from manyheads.text.reading.row_spec import RowSpec
from manyheads.text.reading.table_format import (
    Fill,
    NumberedCells,
    NumberedRow,
    TableFormat,
    TextCopy,
    cell_text,
    free_names,
    header_of,
    paired,
    rows_of_cells,
)

# In characters. Without a limit, an unclosed quote would read a large file into memory before it is detected.
_LONGEST_FIELD = 1 << 24
_LONGEST_ROW = 1 << 25  # a row may have many lines


class CsvFormat(TableFormat):
    """The first line is a header unless all columns are chosen by number. Blank lines are skipped."""

    suffixes = (".csv",)
    may_lack_header = True

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows of a file."""
        yield from rows_of_cells(path, _Records(path, spec.on_bad).cells(), spec, _advice())

    def columns(self, path: Path) -> list[str]:
        """Return the header."""
        return header_of(path, _Records(path, None).cells())

    def has_header(self, columns: Mapping[str, str]) -> bool:
        """Return whether a column is chosen by name, or none is chosen."""
        return not columns or not all(column.isdecimal() for column in columns.values())

    def append(self, path: Path, output: BinaryIO, spec: RowSpec, fill: Fill) -> None:
        """Write every record as it is, with the separator and the new cells before its line end."""
        records = _Records(path, spec.on_bad, keeps_text=True)
        chosen = dict(zip(spec.fields, spec.column_names, strict=True))
        header = next(records.cells())[1] if self.has_header(chosen) else []
        start = records.take()
        cells = chain([(1, header)], records.cells()) if header else records.cells()
        rows = ((records.take(), row) for row in rows_of_cells(path, cells, spec, _advice()))
        copy = TextCopy(path, output)
        for record, new in paired(rows, fill):
            if start:
                copy.write_appended(start, records.joined(free_names(list(new), header)))
                start = ""
            copy.write_appended(record, records.joined([*map(cell_text, new.values())]))
        copy.write(records.take())  # blank lines at the end


def _advice() -> str:
    return _("Quote every field that contains a separator, a quote or a line end.")


class _Records:
    """The records of a file: their cells, and their text as it is in the file."""

    def __init__(self, path: Path, on_bad: OnBad | None, *, keeps_text: bool = False) -> None:
        # The limit is global to the process; its default, 131,072, is shorter than a long document.
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
        self._path, self._keeps_text = path, keeps_text
        self._lines = file_lines(path, on_bad, with_ends=True)
        self._first = next(self._lines)
        self._delimiter = _delimiter(self._first)
        self._read: list[str] = []  # the lines read since the last `take`
        self._n_characters = 0  # of the record that is being read
        self._reader = csv.reader(self._bounded_lines(), delimiter=self._delimiter, strict=True)

    def cells(self) -> Iterator[NumberedCells]:
        """Yield the cells of each record that is left, blank lines aside."""
        has_rows = self._reader.line_num > 0
        number = self._reader.line_num + 1
        try:
            for row in self._reader:
                if row:
                    has_rows = True
                    yield number, row
                number = self._reader.line_num + 1
                self._n_characters = 0
        except csv.Error as error:
            reason = str(error).partition(" - ")[0]  # the rest is advice for programmers
            raise DataError(
                _(
                    "{where}: the row that starts here is not valid CSV ({reason}). Close every quote, double the "
                    "quotes inside a quoted field, and quote every field that contains a line end.",
                    where=line_name(self._path, number),
                    reason=reason,
                )
            ) from None
        if not has_rows:
            raise DataError(_("{path} has only blank lines. Give a file with text.", path=self._path))

    def take(self) -> str:
        """Return the text of the records that were read since the last call, with blank lines before them."""
        text = "".join(self._read)
        self._read.clear()
        return text

    def joined(self, cells: Sequence[str]) -> str:
        """Return cells as text that continues a record."""
        stream = StringIO()
        csv.writer(stream, delimiter=self._delimiter).writerow(["", *cells])
        return stream.getvalue().removesuffix("\r\n")

    def _bounded_lines(self) -> Iterator[str]:
        for line in chain([self._first], self._lines):
            self._n_characters += len(line)
            if self._n_characters > _LONGEST_ROW:
                raise csv.Error(_("it is longer than {limit} characters", limit=_LONGEST_ROW))
            if self._keeps_text:
                self._read.append(line)
            yield line


def _delimiter(first: str) -> str:
    """Return a semicolon if only that splits the first line into columns, otherwise a comma."""

    def width(delimiter: str) -> int:
        try:
            return len(next(csv.reader([first], delimiter=delimiter, strict=True)))
        except csv.Error:
            return 0

    return ";" if width(";") > 1 and width(",") < 2 else ","


FORMAT = CsvFormat()
