"""Rows of any fields: columns, parallel files, converters."""

import gzip
import io
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.text.reading.readers import Row, numbered_rows, read_rows
from manyheads.text.reading.row_spec import label_text, labels_converter

from text.makers import Write, refuses

LABELLED = ("text", "label")
JOINT = ("text", "tags", "label")
CHOOSE = "Choose one with text_column and label_column."


class TestTables:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.tsv", "good\tpos\nbad\tneg\n"),
            ("a.tsv", "id\tlabel\ttext\n1\tpos\tgood\n2\tneg\tbad\n"),
            ("a.csv", "label,id,text\npos,1,good\n\nneg,2,bad\n"),
            ("a.jsonl", '{"label": "pos", "text": "good"}\n{"text": "bad", "label": "neg"}\n'),
            ("a.tsv.gz", gzip.compress(b"good\tpos\nbad\tneg", mtime=0)),
        ],
    )
    def test_columns_by_field_name_or_in_order(self, write: Write, name: str, content: str | bytes) -> None:
        assert list(read_rows([write(name, content)], LABELLED)) == [("good", "pos"), ("bad", "neg")]

    @pytest.mark.parametrize(
        ("columns", "rows"),
        [
            (("review", "stars"), [("good", "5")]),
            (("3", "2"), [("review", "stars"), ("good", "5")]),
            (("review", "2"), [("good", "5")]),
            (("review", None), [("good", "pos")]),
            ((None, None), None),
        ],
    )
    def test_chosen_columns(self, write: Write, columns: Sequence[str | None], rows: list[Row] | None) -> None:
        for name, separator in (("a.tsv", "\t"), ("a.csv", ",")):
            lines = (["label", "stars", "review"], ["pos", "5", "good"])
            path = write(name, "".join(separator.join(line) + "\n" for line in lines))
            if rows is None:
                with refuses(f'*/{name}, line 1: there is no column "text". Available: label, stars, review. {CHOOSE}'):
                    list(read_rows([path], LABELLED, columns))
            else:
                assert list(read_rows([path], LABELLED, columns)) == rows

    def test_first_line_with_one_field_name_is_a_header(self, write: Write) -> None:
        path = write("a.tsv", "sentence\tlabel\nfine\t1\n")
        with refuses(f'*/a.tsv, line 1: there is no column "text". Available: sentence, label. {CHOOSE}'):
            list(read_rows([path], LABELLED))
        assert list(read_rows([path], LABELLED, ("sentence", None))) == [("fine", "1")]

    def test_missing_column_error_has_line(self, write: Write) -> None:
        with refuses(
            "*/a.tsv, line 2: the number of columns is 1, but should be 2. Check for a missing or an extra tab. If the "
            "file has more than 2 columns, choose them with text_column and label_column."
        ):
            list(read_rows([write("a.tsv", "good\tpos\nbad\n")], LABELLED))
        with refuses("*/b.csv, line 3: the number of columns is 1, but should be 3. *"):
            list(read_rows([write("b.csv", "text,tags,label\na,O,x\nb\n")], JOINT))
        with refuses('*/c.jsonl, line 2: there is no key "label". Available: text. ' + CHOOSE):
            list(read_rows([write("c.jsonl", '{"text": "a", "label": "b"}\n{"text": "a"}\n')], LABELLED))

    def test_one_field(self, write: Write) -> None:
        for name, content in (("a.tsv", "one\ntwo\n"), ("b.tsv", "text\none\ntwo\n"), ("c.txt", "one\ntwo")):
            assert list(read_rows([write(name, content)], ("text",))) == [("one",), ("two",)]
        with refuses("*/c.txt: a file of plain lines has no columns. Remove text_column."):
            read_rows([write("c.txt", "one\n")], ("text",), ("1",))
        with refuses("no file given: rows are read from one file (.csv, .json, *) or from one file of plain lines."):
            read_rows([], ("text",))

    def test_header_without_rows_raises(self, write: Write) -> None:
        with refuses("*/a.tsv has a header, but no rows. Give a file with rows."):
            list(read_rows([write("a.tsv", "text\tlabel\n")], LABELLED))

    def test_reading_is_lazy(self, write: Write) -> None:
        for name in ("a.tsv", "a.csv", "a.jsonl", "a.parquet"):
            rows = read_rows([write(name, "")], LABELLED)
            with refuses(f"*/{name} is empty. Give a file with text."):
                next(rows)

    def test_row_numbers_are_line_numbers(self, write: Write) -> None:
        path = write("a.csv", 'text,label\n"two\nlines",x\n\nb,y\n')
        assert list(numbered_rows([path], LABELLED)) == [(2, ("two\nlines", "x")), (5, ("b", "y"))]


class TestParallel:
    def test_three_files(self, write: Write) -> None:
        files = [write("seq.in", "a b\nc\n"), write("seq.out", "O O\r\nB-x\r\n"), write("label", "p\nq")]
        assert list(read_rows(files, JOINT)) == [("a b", "O O", "p"), ("c", "B-x", "q")]

    def test_error_names_the_file_of_different_length(self, write: Write) -> None:
        files = [write("seq.in", "a\nb\n"), write("seq.out", "O\nO\n"), write("label", "p\nq\nr\n")]
        with refuses(
            "*/seq.in has 2 lines, but */label has 3. "
            "Line n of one file must belong to line n of the other: align the files again."
        ):
            list(read_rows(files, JOINT))

    def test_invalid_combinations_of_files(self, write: Write) -> None:
        plain, table = write("a", "x\n"), write("a.csv", "text,label\n")
        with refuses(
            "*/a, */a: rows are read from one file (.csv, .json, *) or from one file per field (text, tags, label)."
        ):
            read_rows([plain, plain], JOINT)
        with refuses("*/a: a single file must end in .csv, .json, *, * (text, tags, label)."):
            read_rows([plain], JOINT)
        with refuses("*/a.csv is a table. Give it alone, or give one file of plain lines per field."):
            read_rows([plain, table], LABELLED)
        with refuses("*/a, */a: parallel files have no columns. Remove text_column and label_column."):
            read_rows([plain, plain], LABELLED, ("1", None))


class TestConversions:
    @pytest.mark.parametrize(
        ("value", "text"),
        [(1, "1"), (0.0, "0"), (2.5, "2.5"), (True, "true"), (False, "false"), ("1", "1"), ("", "")],
    )
    def test_numeric_labels(self, write: Write, value: object, text: str) -> None:
        path = write("a.jsonl", json.dumps({"text": "a", "label": value}))
        assert list(read_rows([path], LABELLED, converters={"label": label_text})) == [("a", text)]

    @pytest.mark.parametrize(
        ("value", "text"), [(["x", "y"], "x|y"), ([], ""), ([1, True], "1|true"), ("x|y", "x|y"), (3, "3")]
    )
    def test_lists_of_labels(self, write: Write, value: object, text: str) -> None:
        path = write("a.jsonl", json.dumps({"text": "a", "label": value}))
        assert list(read_rows([path], LABELLED, converters={"label": labels_converter("|")})) == [("a", text)]

    @pytest.mark.parametrize("value", ["null", '["x|y", "z"]', '[""]', "[[1]]", '{"a": 1}', "NaN"])
    def test_unsupported_labels(self, write: Write, value: str) -> None:
        path = write("a.jsonl", f'{{"text": "a", "label": {value}}}\n')
        with refuses(f'*/a.jsonl, line 1: "label" is {value}, which is not supported. Use a string.'):
            list(read_rows([path], LABELLED, converters={"label": labels_converter("|")}))

    def test_fields_without_converter_must_be_strings(self, write: Write) -> None:
        path = write("a.jsonl", '{"text": 1, "label": 1}')
        with refuses('*/a.jsonl, line 1: "text" is 1, not a string. Write it in quotes.'):
            list(read_rows([path], LABELLED, converters={"label": label_text}))

    @settings(deadline=None)
    @given(st.lists(st.text(min_size=1).filter(lambda label: "|" not in label)))
    def test_joined_labels_round_trip(self, labels: list[str]) -> None:
        joined = labels_converter("|")(labels)
        assert joined is not None
        assert (joined.split("|") if joined else []) == labels

    def test_parquet(self, write: Write) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")

        def rows(labels: list[object]) -> list[Row]:
            stream = io.BytesIO()
            parquet.write_table(pyarrow.table({"label": labels, "text": ["t"] * len(labels)}), stream)
            path = write("a.parquet", stream.getvalue())
            return list(read_rows([path], LABELLED, converters={"label": labels_converter("|")}))

        assert rows([1, 0]) == [("t", "1"), ("t", "0")]
        assert rows([True]) == [("t", "true")]
        assert rows([["a", "b"], []]) == [("t", "a|b"), ("t", "")]
        assert rows(["a", "b"]) == [("t", "a"), ("t", "b")]
        with refuses('*/a.parquet, row 2, column "label" is null, which is not supported. Use a string.'):
            rows([1, None])
        with refuses('*/a.parquet, row 2, column "label" is null, not a string. Remove or fill such rows.'):
            rows(["a", None])


def test_on_bad_receives_invalid_bytes(write: Write) -> None:
    errors: list[DataError] = []
    assert list(read_rows([write("a.tsv", b"\xff\tx\n")], LABELLED, on_bad=errors.append)) == [("\ufffd", "x")]
    assert len(errors) == 1
