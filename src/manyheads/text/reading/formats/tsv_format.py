"""TSV: columns separated by tabs, one row a line. Quotes have no special meaning."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from manyheads.messages import _
from manyheads.text.reading.files import OnBad, file_lines
from manyheads.text.reading.row_spec import RowSpec
from manyheads.text.reading.table_format import NumberedCells, NumberedRow, TableFormat, header_of, rows_of_cells


class TsvFormat(TableFormat):
    """The first line is a header if a column is chosen by name, or if it contains the name of a field."""

    suffixes = (".tsv",)
    may_lack_header = True
    is_tab_separated = True

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows of a file."""
        advice = _(
            "Check for a missing or an extra tab. If the file has more than {n_fields} columns, choose them with "
            "{settings}.",
            n_fields=len(spec.fields),
            settings=spec.settings,
        )
        cells = _cells(path, spec.on_bad)
        number, first = next(cells)
        # One field name in the first line already makes it a header: asking for the others is safer than reading it
        # as a row.
        in_order = not spec.has_columns and (spec.are_pairs or not {*spec.fields} & {*first})
        yield from rows_of_cells(path, chain([(number, first)], cells), spec, advice, in_order=in_order)

    def columns(self, path: Path) -> list[str]:
        """Return the cells of the first line, even if it is a row rather than a header."""
        return header_of(path, _cells(path, None))

    def has_header(self, columns: Mapping[str, str]) -> bool:
        """Return whether columns are chosen by name."""
        return bool(columns) and not all(column.isdecimal() for column in columns.values())


def _cells(path: Path, on_bad: OnBad | None) -> Iterator[NumberedCells]:
    return ((number, line.split("\t")) for number, line in enumerate(file_lines(path, on_bad), start=1))


FORMAT = TsvFormat()
