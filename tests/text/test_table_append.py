"""Tables are written with columns appended; everything that was in them stays as it was."""

import csv
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manyheads.errors import DataError
from manyheads.text.reading.formats import format_of
from manyheads.text.reading.readers import columns_of, read_rows
from manyheads.text.reading.row_spec import RowSpec
from manyheads.text.reading.table_format import NewCells, NumberedRow, TableFormat, free_names

from text.makers import Write, refuses

# Line ends in cells, quotes, separators, spaces, blank lines before and after, no line end at the end.
NASTY = (
    'id;"body";note\r\n1;"two\r\nlines";"a;b"\r\n\r\n2;  spaces  ;"say ""x"""\r\n'
    '3;"";\r\n4;"only\nLF\n\nhere";小狗\r\n\r\n5;last;"end"'
)
TEXTS = ["two\r\nlines", "  spaces  ", "", "only\nLF\n\nhere", "last"]


def _append(path: Path, column: str = "body", converter: Any = None) -> bytes:
    """Append the length of each text, read three rows ahead, as a model that answers batches reads them."""

    def fill(rows: Iterator[NumberedRow]) -> Iterator[NewCells]:
        taken: list[NumberedRow] = []
        for row in rows:
            taken.append(row)
            if len(taken) == 3:
                yield from map(_cells, taken)
                taken = []
        yield from map(_cells, taken)

    output = io.BytesIO()
    table = format_of(path)
    assert table is not None
    table.append(path, output, RowSpec(("text",), (column,), (converter,)), fill)
    return output.getvalue()


def _cells(row: NumberedRow) -> dict[str, str | float | None]:
    text = row[1][0]
    return {"label": f'{text[:3]};"', "share": len(text) / 8 if text else None}


def _read_csv(text: str, delimiter: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
def test_csv_keeps_every_byte(write: Write, encoding: str) -> None:
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    path = write("nasty.csv", (mark + NASTY).encode(encoding))
    assert [row[0] for row in read_rows([path], ["text"], ["body"])] == TEXTS
    written = _append(path).decode(encoding)
    before, after = _read_csv(mark + NASTY, ";"), _read_csv(written, ";")
    assert [row[:3] for row in after] == before
    assert [row[3:] for row in after] == [
        ["label", "share"],
        *([f'{text[:3]};"', f"{len(text) / 8:.4f}" if text else ""] for text in TEXTS),
    ]
    for record in NASTY.split("\r\n"):  # as text, too: quotes and blank lines are not written anew
        assert record in written
    assert written.count("\r\n\r\n") == 2


def test_csv_without_a_header(write: Write) -> None:
    path = write("plain.csv", "1,a cat\n2,a dog\n")
    assert _append(path, "2") == b'1,a cat,"a c;""",0.6250\n2,a dog,"a d;""",0.6250\n'


def test_blank_lines_at_the_end_of_a_csv_stay(write: Write) -> None:
    assert _append(write("a.csv", "body\nx\n\n\n")).decode() == 'body,label,share\nx,"x;""",0.1250\n\n\n'


def test_a_row_with_too_few_cells_is_named(write: Write) -> None:
    with refuses("*/a.csv, line 3: the number of columns is 1, but should be 2. *"):
        _append(write("a.csv", "body,id\nx,1\ny\n"))


def test_tsv_keeps_every_byte(write: Write) -> None:
    path = write("a.tsv", 'id\tbody\r\n1\t"a" cat\r\n2\tb\\t;\n3\tlast')
    assert _append(path).decode() == (
        'id\tbody\tlabel\tshare\r\n1\t"a" cat\t"a";"\t0.8750\r\n2\tb\\t;\tb\\t;"\t0.5000\n3\tlast\tlas;"\t0.5000'
    )
    path = write("b.tsv", "a cat\tx\na dog\ty\n")
    assert _append(path, "1").decode().split("\n")[0] == 'a cat\tx\ta c;"\t0.6250'


def test_new_cells_of_a_tsv_have_no_tabs_and_no_line_ends(write: Write) -> None:
    output = io.BytesIO()
    table = format_of(path := write("a.tsv", "body\nx\n"))
    assert table is not None
    spec = RowSpec(("text",), ("body",), (None,))
    table.append(path, output, spec, lambda rows: ({"answer": "a\tb\r\nc"} for _row in rows))
    assert output.getvalue() == b"body\tanswer\nx\ta b  c\n"


def test_jsonl_keeps_every_object(write: Write) -> None:
    lines = ['{"body": "a cat",  "n": 1.50, "list": [1, {"x": null}]}', '{ "label": "old", "body": "小狗\\u0021" } ']
    written = _append(write("a.jsonl", "\n".join(lines))).decode().splitlines()
    for line, new in zip(lines, written, strict=True):
        assert new.startswith(line.rstrip()[:-1])
        assert json.loads(line).items() <= json.loads(new).items()
    # The second row has a label of its own, so that no column is called so.
    assert [json.loads(new)["predicted_label"] for new in written] == ['a c;"', '小狗!;"']
    assert json.loads(written[0])["share"] == 0.625


def test_parquet_keeps_schema_and_values(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    n_rows = 1300  # more than two batches
    columns = {
        "body": pyarrow.array([None if row == 7 else f"text {row}" for row in range(n_rows)]),
        "share": pyarrow.array([row / 3 for row in range(n_rows)]),
        "nested": pyarrow.array([{"x": [row]} for row in range(n_rows)]),
        "kind": pyarrow.array(["a", "b"] * (n_rows // 2)).dictionary_encode(),
    }
    table = pyarrow.table(columns).replace_schema_metadata({"made": "here"})
    parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(_append(tmp_path / "a.parquet", converter=lambda value: ""))
    written = parquet.read_table(tmp_path / "b.parquet")
    assert written.column_names == [*columns, "label", "predicted_share"]
    assert written.select(list(columns)).equals(table)
    assert written.schema.metadata[b"made"] == b"here"
    assert written["label"].to_pylist()[6:9] == ['tex;"', ';"', 'tex;"']
    assert written["predicted_share"].to_pylist()[6:9] == [0.75, None, 0.75]


def test_free_names() -> None:
    assert free_names(["label", "flags"], ["id"]) == ["label", "flags"]
    assert free_names(["label"], ["label", "predicted_label", "predicted_label_2"]) == ["predicted_label_3"]


def test_a_format_that_is_only_read_says_so(tmp_path: Path) -> None:
    class Only(TableFormat):
        suffixes = (".only",)

        def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
            yield 1, ("x",)

        def columns(self, path: Path) -> list[str]:
            return ["body"]

    with refuses("*/a.only: .only files are read, but not written. Add --json."):
        Only().append(tmp_path / "a.only", io.BytesIO(), RowSpec(("text",), (None,), (None,)), lambda rows: iter(()))


class TestXlsx:
    @pytest.fixture
    def book(self) -> Any:
        return pytest.importorskip("openpyxl").Workbook()

    def test_rows_and_columns(self, tmp_path: Path, book: Any) -> None:
        sheet = book.active
        for row in ((), ("id", "body", "team"), (1, "two\nlines", "x"), (), (2, 4711, True), (3, None, None)):
            sheet.append(row)
        book.create_sheet("Empty")
        book.save(path := tmp_path / "a.xlsx")
        assert columns_of(path) == ["id", "body", "team"]
        rows = list(read_rows([path], ["text", "label"], ["body", "team"]))
        assert rows == [("two\nlines", "x"), ("4711", "true"), ("", "")]
        assert list(read_rows([path], ["text"], ["2"])) == [(row[0],) for row in rows]
        with refuses('*/a.xlsx: there is no column "txt". Available: id, body, team. Choose one with *'):
            list(read_rows([path], ["text"], ["txt"]))

    def test_appended_columns_keep_formulas_and_values(self, tmp_path: Path, book: Any) -> None:
        from openpyxl import load_workbook
        from openpyxl.styles import Font

        book.active.append(("body", "n", "label"))
        book.active.append(("=cmd", "=1+2", "old"))
        book.active["A2"].data_type = "s"
        book.active["A2"].font = Font(bold=True)
        book.save(path := tmp_path / "a.xlsx")
        (tmp_path / "b.xlsx").write_bytes(_append(path))
        sheet = load_workbook(tmp_path / "b.xlsx").active
        assert [[cell.value for cell in row] for row in sheet.iter_rows()] == [
            ["body", "n", "label", "predicted_label", "share"],
            ["=cmd", "=1+2", "old", '=cm;"', 0.5],
        ]
        assert sheet["A2"].font.bold
        assert (sheet["B2"].data_type, sheet["D2"].data_type) == ("f", "s")  # the answer is no formula

    def test_several_sheets_are_asked_for(self, tmp_path: Path, book: Any) -> None:
        book.active.title = "January"
        book.active.append(("body",))
        for number in range(2, 11):
            book.create_sheet(f"Month {number}").append(("Text",))
        book["Month 3"].append(("a cat",))
        book.save(path := tmp_path / "a.xlsx")
        with refuses(
            "*/a.xlsx has 10 sheets (January, Month 2, *). Choose one with the names of the columns: "
            '--text-column "January!COLUMN".'
        ):
            columns_of(path)
        assert list(read_rows([path], ["text"], ["Month 3!Text"])) == [("a cat",)]
        with refuses("*/a.xlsx: the columns are of several sheets (January, Month 3)."):
            list(read_rows([path], ["text", "label"], ["Month 3!Text", "January!body"]))
        with refuses("*/a.xlsx has a header, but no rows. Give a file with rows."):
            list(read_rows([path], ["text"], ["Month 2!Text"]))

    def test_merged_cells_have_one_value(self, tmp_path: Path, book: Any) -> None:
        for row in (("body", "team"), ("a", "x"), ("b", None), ("c", "y")):
            book.active.append(row)
        book.active.merge_cells("B2:B3")
        book.save(path := tmp_path / "a.xlsx")
        assert list(read_rows([path], ["text", "label"], ["body", "team"])) == [("a", "x"), ("b", "x"), ("c", "y")]

    def test_a_formula_without_a_value_is_named(self, tmp_path: Path, book: Any) -> None:
        book.active.append(("body", "n"))
        book.active.append(('=CONCAT("a","b")', 1))
        book.save(path := tmp_path / "a.xlsx")
        assert list(read_rows([path], ["text"], ["n"])) == [("1",)]
        with refuses('*/a.xlsx, row 2, column "body" is a formula without a stored value. Open the file *'):
            list(read_rows([path], ["text"], ["body"]))

    def test_the_stored_value_of_a_formula_is_read(self, tmp_path: Path, book: Any) -> None:
        book.active.append(("body",))
        book.active.append(("=1+2",))
        book.save(path := tmp_path / "a.xlsx")
        _edit(path, "xl/worksheets/sheet1.xml", b"<v></v>", b"<v>3</v>", b"<v />", b"<v>3</v>")
        assert list(read_rows([path], ["text"], ["body"])) == [("3",)]

    def test_damaged_and_hostile_files(self, tmp_path: Path, book: Any, write: Write) -> None:
        with refuses("*/a.xlsx cannot be read as a spreadsheet: *"):
            columns_of(write("a.xlsx", b"no zip"))
        with refuses("*/b.xlsx is empty. Give a file with text."):
            columns_of(write("b.xlsx", b""))
        book.active.append(("body",))
        book.save(path := tmp_path / "c.xlsx")
        _edit(path, "xl/workbook.xml", b"<workbook", b'<!DOCTYPE a [<!ENTITY b "c">]><workbook')
        with refuses("*/c.xlsx contains XML with a DOCTYPE, as no spreadsheet does. It is not read."):
            columns_of(path)
        with zipfile.ZipFile(bomb := tmp_path / "d.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/worksheets/sheet1.xml", b" " * (33 << 20))
        with refuses("*/d.xlsx expands to more than 200 times its size, as no text does. Check what it contains."):
            columns_of(bomb)

    def test_without_openpyxl(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(DataError, match=r'Install it: pip install "manyheads\[xlsx\]"'):
            columns_of(write("a.xlsx", b"PK"))


def _edit(path: Path, name: str, *changes: bytes) -> None:
    """Replace bytes of a part of a zip file."""
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    before = parts[name]
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        parts[name] = parts[name].replace(old, new)
    assert parts[name] != before
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
