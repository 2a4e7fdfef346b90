"""TSV: columns separated by tabs, one row a line. Quotes have no special meaning."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from manyheads.messages import _
from manyheads.text.reading.files import OnBad, file_lines
from manyheads.text.reading.row_spec import RowSpec
from manyheads.text.reading.table_format import (
    Fill,
    NewCells,
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

_SEPARATORS = str.maketrans("\t\r\n", "   ")  # which a cell cannot contain


class TsvFormat(TableFormat):
    """The first line is a header if a column is chosen by name, or if it contains the name of a field."""

    suffixes = (".tsv",)
    may_lack_header = True
    is_tab_separated = True

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows of a file."""
        cells = _cells(path, spec.on_bad)
        number, first = next(cells)
        # One field name in the first line already makes it a header: asking for the others is safer than reading it
        # as a row.
        in_order = not spec.has_columns and (spec.are_pairs or not {*spec.fields} & {*first})
        rows = chain([(number, first)], cells)
        yield from rows_of_cells(path, rows, spec, _advice(spec), in_order=in_order)

    def columns(self, path: Path) -> list[str]:
        """Return the cells of the first line, even if it is a row rather than a header."""
        return header_of(path, _cells(path, None))

    def has_header(self, columns: Mapping[str, str]) -> bool:
        """Return whether columns are chosen by name."""
        return bool(columns) and not all(column.isdecimal() for column in columns.values())

    def append(self, path: Path, output: BinaryIO, spec: RowSpec, fill: Fill) -> None:
        """Write every line as it is, with a tab and the new cells before its end."""
        lines = file_lines(path, spec.on_bad, with_ends=True)
        chosen = dict(zip(spec.fields, spec.column_names, strict=True))
        start = next(lines) if self.has_header(chosen) else ""
        header = _split(start) if start else []
        records: list[str] = []  # the line that is being read

        def cells() -> Iterator[NumberedCells]:
            if start:
                yield 1, header
            for number, line in enumerate(lines, start=2 if start else 1):
                records.append(line)
                yield number, _split(line)

        rows = ((records.pop(), row) for row in rows_of_cells(path, cells(), spec, _advice(spec)))
        copy = TextCopy(path, output)
        for record, new in paired(rows, fill):
            if start:
                copy.write_appended(start, "".join(f"\t{name}" for name in free_names(list(new), header)))
                start = ""
            copy.write_appended(record, _joined(new))


def _joined(cells: NewCells) -> str:
    texts = (cell_text(value).translate(_SEPARATORS) for value in cells.values())
    return "".join(f"\t{text}" for text in texts)


def _split(line: str) -> list[str]:
    return line.removesuffix("\n").removesuffix("\r").split("\t")


def _advice(spec: RowSpec) -> str:
    return _(
        "Check for a missing or an extra tab. If the file has more than {n_fields} columns, choose them with "
        "{settings}.",
        n_fields=len(spec.fields),
        settings=spec.settings,
    )


def _cells(path: Path, on_bad: OnBad | None) -> Iterator[NumberedCells]:
    return ((number, line.split("\t")) for number, line in enumerate(file_lines(path, on_bad), start=1))


FORMAT = TsvFormat()
