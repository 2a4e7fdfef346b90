"""CSV: columns separated by commas or semicolons. A quoted field may contain line ends, which are kept."""

import csv
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import OnBad, file_lines, line_name
from manyheads.text.reading.row_spec import RowSpec
from manyheads.text.reading.table_format import NumberedCells, NumberedRow, TableFormat, header_of, rows_of_cells

# In characters. Without a limit, an unclosed quote would read a large file into memory before it is detected.
_LONGEST_FIELD = 1 << 24
_LONGEST_ROW = 1 << 25  # a row may have many lines


class CsvFormat(TableFormat):
    """The first line is a header unless all columns are chosen by number. Blank lines are skipped."""

    suffixes = (".csv",)
    may_lack_header = True

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows of a file."""
        advice = _("Quote every field that contains a separator, a quote or a line end.")
        return rows_of_cells(path, _cells(path, spec.on_bad), spec, advice)

    def columns(self, path: Path) -> list[str]:
        """Return the header."""
        return header_of(path, _cells(path, None))

    def has_header(self, columns: Mapping[str, str]) -> bool:
        """Return whether a column is chosen by name, or none is chosen."""
        return not columns or not all(column.isdecimal() for column in columns.values())


def _cells(path: Path, on_bad: OnBad | None) -> Iterator[NumberedCells]:
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
                raise csv.Error(_("it is longer than {limit} characters", limit=_LONGEST_ROW))
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
                "{where}: the row that starts here is not valid CSV ({reason}). Close every quote, double the quotes "
                "inside a quoted field, and quote every field that contains a line end.",
                where=line_name(path, number),
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


FORMAT = CsvFormat()
