"""Spreadsheets (.xlsx), whole in memory; requires openpyxl (the `xlsx` extra).

The first row that is not blank is the header. If several sheets have cells, a column is addressed with its sheet, as in
a formula: "March!Text". A formula has the value that the spreadsheet program stored. The value of merged cells is that
of each of them.
"""

import datetime
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import MAX_EXPANSION, OnBad, empty_file_error, expansion_error
from manyheads.text.reading.row_spec import Row, RowSpec, check_width, label_text
from manyheads.text.reading.table_format import Fill, NumberedRow, TableFormat, free_names, paired
from manyheads.text.suggestions import missing_name, shortened

_LARGEST = 1 << 29  # bytes of XML: openpyxl needs about ten times as much memory
_XML_START = 4096  # bytes of a part in which a DOCTYPE would be
_SEPARATOR = "!"


class XlsxFormat(TableFormat):
    """Rows have the numbers of the spreadsheet. The files are compressed internally."""

    suffixes = (".xlsx",)
    has_lines = False
    may_be_compressed = False
    is_text = False

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows that are not blank."""
        sheet, names = _Sheet.open(path, spec.column_names)
        yield from sheet.rows(sheet.indices(names, spec), spec)

    def columns(self, path: Path) -> list[str]:
        """Return the header; raise if there are several sheets, which have to be chosen."""
        return _Sheet.open(path, ())[0].header

    def records(self, path: Path, on_bad: OnBad | None = None) -> Iterator[dict[str, object]]:
        """Yield each row as its texts by column; columns without a name are left out."""
        sheet = _Sheet.open(path, ())[0]
        names = {name: index for index, name in enumerate(sheet.header) if name.strip()}
        spec = RowSpec((), (), (), on_bad)
        for _number, row in sheet.rows(list(names.values()), spec):
            yield dict(zip(names, row, strict=True))

    def append(self, path: Path, output: BinaryIO, spec: RowSpec, fill: Fill) -> None:
        """Write the workbook with the new columns to the right of the sheet's; formulas stay formulas."""
        sheet, names = _Sheet.open(path, spec.column_names)
        book = _load(path, data_only=False)
        target = book[sheet.title]
        first = len(sheet.header) + 1
        rows = ((row[0], row) for row in sheet.rows(sheet.indices(names, spec), spec))
        has_header = False
        for number, new in paired(rows, fill):
            if not has_header:
                for column, name in enumerate(free_names(list(new), sheet.header), first):
                    target.cell(sheet.first, column, name)
                has_header = True
            for column, value in enumerate(new.values(), first):
                cell = target.cell(number, column, value)
                if isinstance(value, str) and value.startswith("="):
                    cell.data_type = "s"  # a text, not a formula
        book.save(output)


@dataclass(frozen=True)
class _Sheet:
    """The cells of one sheet, with the values of formulas and of merged cells."""

    path: Path
    title: str
    first: int  # the number of the header's row
    header: list[str]
    cells: Sequence[Sequence[object]]  # of the rows below the header
    formulas: Mapping[tuple[int, int], str]  # those without a stored value, by row number and column index

    @classmethod
    def open(cls, path: Path, columns: Sequence[str]) -> "tuple[_Sheet, list[str]]":
        """Return the sheet of some columns, and the names of the columns in it."""
        book = _load(path, data_only=True)
        filled = [sheet for sheet in book.worksheets if any(any(row) for row in sheet.iter_rows(values_only=True))]
        if not filled:
            raise empty_file_error(path)
        titles = [sheet.title for sheet in filled]
        split = [_split(column, titles) for column in columns]
        chosen = {title for title, _name in split if title}
        if len(chosen) > 1:
            raise DataError(
                _("{path}: the columns are of several sheets ({sheets}).", path=path, sheets=", ".join(sorted(chosen)))
            )
        if not chosen and len(titles) > 1:
            raise DataError(
                _(
                    "{path} has {n_sheets} sheets ({sheets}). Choose one with the names of the columns: "
                    '--text-column "{first}!COLUMN".',
                    path=path,
                    n_sheets=len(titles),
                    sheets=shortened(", ".join(titles)),
                    first=titles[0],
                )
            )
        return cls._of(path, book[next(iter(chosen), titles[0])]), [name for _title, name in split]

    @classmethod
    def _of(cls, path: Path, sheet: Any) -> "_Sheet":
        values = [list(row) for row in sheet.iter_rows(values_only=True)]
        offset = next(index for index, row in enumerate(values) if any(value is not None for value in row))
        header = [_text(value) for value in values[offset]]
        while not header[-1].strip():
            header.pop()
        check_width(len(header), str(path))
        for area in sheet.merged_cells.ranges:
            for row in range(max(area.min_row - 1, offset + 1), area.max_row):
                for column in range(area.min_col - 1, area.max_col):
                    values[row][column] = values[area.min_row - 1][area.min_col - 1]
        return cls(path, sheet.title, offset + 1, header, values[offset + 1 :], _formulas(path, sheet, values))

    def indices(self, names: Sequence[str], spec: RowSpec) -> list[int]:
        """Return the indices of columns that are given by name or by number, from 1."""
        found = []
        for name in names:
            if self.header.count(name) > 1:
                raise DataError(
                    _('{path}: there are several columns "{column}". Rename all but one.', path=self.path, column=name)
                )
            if name in self.header:
                found.append(self.header.index(name))
            elif name.isdecimal() and 1 <= int(name[:6]) <= len(self.header):
                found.append(int(name) - 1)
            else:
                raise DataError(missing_name(str(self.path), "column", name, self.header, spec.settings))
        return found

    def rows(self, indices: Sequence[int], spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the cells of these columns as text, without blank rows."""
        is_empty = True
        for number, row in enumerate(self.cells, self.first + 1):
            if all(value is None for value in row) and not any((number, index) in self.formulas for index in indices):
                continue
            is_empty = False
            yield number, self._row(number, row, indices)
        if is_empty:
            raise DataError(_("{path} has a header, but no rows. Give a file with rows.", path=self.path))

    def _row(self, number: int, row: Sequence[object], indices: Sequence[int]) -> Row:
        for index in indices:
            if (number, index) in self.formulas:
                raise DataError(
                    _(
                        '{path}, row {row}, column "{column}" is a formula without a stored value. Open the file in a '
                        "spreadsheet program and save it.",
                        path=self.path,
                        row=number,
                        column=self.header[index],
                    )
                )
        return tuple(_text(row[index]) for index in indices)


def _split(column: str, titles: Sequence[str]) -> tuple[str, str]:
    """Return the sheet and the name of a column; "" if it does not begin with a sheet."""
    title, separator, name = column.partition(_SEPARATOR)
    return (title, name) if separator and title in titles else ("", column)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return label_text(value) or str(value)


def _formulas(path: Path, sheet: Any, values: Sequence[Sequence[object]]) -> dict[tuple[int, int], str]:
    """Return the formulas without a stored value; the file is read again only if cells are empty."""
    if all(value is not None for row in values for value in row):
        return {}
    cells = _load(path, data_only=False)[sheet.title].iter_rows()
    return {
        (cell.row, cell.column - 1): str(cell.value)
        for row, stored in zip(cells, values, strict=False)
        for cell, value in zip(row, stored, strict=False)
        if value is None and cell.data_type == "f"
    }


def _load(path: Path, *, data_only: bool) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError(
            _('{path}: Excel files require openpyxl. Install it: pip install "manyheads[xlsx]".', path=path)
        ) from None
    if path.stat().st_size == 0:
        raise empty_file_error(path)
    try:
        _check_parts(path)
        return load_workbook(path, data_only=data_only)
    except DataError:
        raise
    except Exception as error:  # openpyxl lets any error of a damaged file through
        reason = shortened(str(error).partition("\n")[0] or type(error).__name__).rstrip(".")
        raise DataError(_("{path} cannot be read as a spreadsheet: {reason}.", path=path, reason=reason)) from None


def _check_parts(path: Path) -> None:
    """Raise if a file would fill the memory, or if its XML has a DOCTYPE, which spreadsheets do not."""
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
        if size > max(_LARGEST >> 4, MAX_EXPANSION * path.stat().st_size):
            raise expansion_error(path)
        if size > _LARGEST:
            raise DataError(
                _(
                    "{path} is too large for a spreadsheet: {size:,} MiB of XML. Save it as CSV.",
                    path=path,
                    size=size >> 20,
                )
            )
        for part in archive.infolist():
            with archive.open(part) as stream:
                if b"<!DOCTYPE" in stream.read(_XML_START):
                    raise DataError(
                        _("{path} contains XML with a DOCTYPE, as no spreadsheet does. It is not read.", path=path)
                    )


FORMAT = XlsxFormat()
