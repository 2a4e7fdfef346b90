import csv
import gzip
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.text.reading.readers import columns_of, read_lines, read_pairs

from text.makers import Write, refuses


class TestFiles:
    def test_missing_file_error_suggests_similar_name(self, write: Write, tmp_path: Path) -> None:
        write("train.en", "a\n")
        with refuses("*/trian.en: there is no such file. Did you mean train.en?"):
            read_lines(tmp_path / "trian.en")
        with refuses("*/zzz: there is no such file."):
            read_lines(tmp_path / "zzz")
        with refuses("*/none/a: there is no folder */none."):
            read_lines(tmp_path / "none" / "a")

    def test_folder_raises(self, tmp_path: Path) -> None:
        with refuses("* is a folder. Give a file in it."):
            read_pairs([tmp_path])

    @pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
    @pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.txt"])
    def test_empty_file_raises(self, write: Write, name: str, content: bytes) -> None:
        path = write(name, content)
        with refuses(f"*/{name} is empty. Give a file with text."):
            list(read_pairs([path, path] if name == "a.txt" else [path]))


class TestParallel:
    def test_unequal_lengths_error_mentions_carriage_returns(self, write: Write) -> None:
        pairs = read_pairs([write("a.en", "x\r\ny\nz\n"), write("a.de", "eins\rzwei\ndrei\n")])
        with refuses(
            "*/a.en has 3 lines, but */a.de has 2. */a.de contains carriage returns (\\r), which do not end a line. If "
            "they should, convert them to \\n: tr '\\r' '\\n' < FILE > NEW_FILE."
        ):
            list(pairs)

    def test_pairs_are_unchanged(self, write: Write) -> None:
        source, target = write("a.en", "one\n\n three \nx\u2028y\n"), write("a.de", "eins\r\nzwei\r\n\r\nz")
        assert list(read_pairs([source, str(target)])) == [
            ("one", "eins"),
            ("", "zwei"),
            (" three ", ""),
            ("x\u2028y", "z"),
        ]

    @pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 3), (3, 4)])
    def test_unequal_lengths_give_both_counts(self, write: Write, m: int, n: int) -> None:
        pairs = read_pairs([write("a.en", "x\n" * m), write("a.de", "y\n" * n)])
        assert list(islice(pairs, 3)) == [("x", "y")] * 3
        with refuses(
            f"*/a.en has {m} lines, but */a.de has {n}. "
            "Line n of one file must be the translation of line n of the other: align the files again."
        ):
            next(pairs)

    def test_invalid_parallel_files(self, write: Write) -> None:
        text, table = write("a.en", "x\n"), write("a.tsv", "x\ty\n")
        with pytest.raises(DataError, match=r"en: parallel files have no columns\. Remove source_column"):
            read_pairs([text, text], source_column="1", target_column="2")
        with refuses("*/a.tsv is a table. Give it alone, or give one file of plain lines per field."):
            read_pairs([text, table])
        with pytest.raises(
            DataError, match=r"a\.en: a single file must end in \.csv, \.jsonl, \.parquet, \.tmx, \.tsv, .*\.mqxliff,"
        ):
            read_pairs([text])
        for paths in ([], [text] * 3):
            with pytest.raises(DataError, match=r"from one file .* or from one file per field \(source, target\)"):
                read_pairs(paths)


class TestTsv:
    def test_two_columns(self, write: Write) -> None:
        path = write("a.tsv", '\ufeffone\teins\n"two\t\n\t\nx\x85\u2028\ty\r\n')
        assert list(read_pairs([path])) == [("one", "eins"), ('"two', ""), ("", ""), ("x\x85\u2028", "y")]

    @pytest.mark.parametrize(
        ("columns", "pairs"),
        [
            (("de", "en"), [("eins", "one"), ("zwei", "two")]),
            (("3", "2"), [("de", "en"), ("eins", "one"), ("zwei", "two")]),
            (("de", "1"), [("eins", "7"), ("zwei", "8")]),
        ],
    )
    def test_chosen_columns(self, write: Write, columns: tuple[str, str], pairs: list[tuple[str, str]]) -> None:
        path = write("a.TSV", "id\ten\tde\n7\tone\teins\n8\ttwo\tzwei\n")
        assert list(read_pairs([path], source_column=columns[0], target_column=columns[1])) == pairs

    @pytest.mark.parametrize(
        ("content", "line", "columns"),
        [("a\tb\nc\n", 2, 1), ("a\tb\nc\td\te\n", 2, 3), ("a\n", 1, 1), ("a\tb\tc\n", 1, 3), ("a\tb\n\n", 2, 1)],
    )
    def test_wrong_number_of_columns(self, write: Write, content: str, line: int, columns: int) -> None:
        with pytest.raises(
            DataError, match=rf"a\.tsv, line {line}: the number of columns is {columns}, but should be 2\."
        ):
            list(read_pairs([write("a.tsv", content)]))

    def test_extra_tab_raises_with_chosen_columns(self, write: Write) -> None:
        path = write("a.tsv", "id\ten\tde\n7\to\tne\teins\n")
        with pytest.raises(DataError, match="line 2: the number of columns is 4, but should be 3"):
            list(read_pairs([path], source_column="en", target_column="de"))

    def test_missing_column_error_lists_columns(self, write: Write) -> None:
        path = write("a.tsv", "id\tenglish\tenglish\tgerman\n1\ta\tb\tc\n")
        with refuses(
            '*/a.tsv, line 1: there is no column "germn". Available: id, english, english, german. Did you mean german?'
        ):
            list(read_pairs([path], source_column="id", target_column="germn"))
        choose = "Choose one with source_column and target_column."
        for number in ("0", "5"):
            with refuses(f'*/a.tsv, line 1: there is no column "{number}". Available: 1, 2, 3, 4. {choose}'):
                list(read_pairs([path], source_column="1", target_column=number))
        with pytest.raises(DataError, match='several columns "english"'):
            list(read_pairs([path], source_column="english", target_column="german"))
        with pytest.raises(DataError, match="only one column is given"):
            read_pairs([path], source_column="id")

    def test_header_without_rows_raises(self, write: Write) -> None:
        with refuses("*/a.tsv has a header, but no rows. Give a file with rows."):
            list(read_pairs([write("a.tsv", "en\tde\n")], source_column="en", target_column="de"))


class TestJsonl:
    def test_keys(self, write: Write) -> None:
        rows = [{"source": "a\tb\u2028", "target": "", "id": 1}, {"target": "日本", "source": "x"}]
        path = write("a.jsonl", "\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
        assert list(read_pairs([path])) == [("a\tb\u2028", ""), ("x", "日本")]
        chosen = write("b.jsonl", '{"en": "a", "de": "b"}\r\n')
        assert list(read_pairs([chosen], source_column="de", target_column="en")) == [("b", "a")]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{oops", "is not JSON (Expecting property name*). Write one object per line."),
            ("", "is not JSON (Expecting value*). Write one object per line."),
            ("[" * 100_000, "is nested more than 100 levels deep. Write the text as a string."),
            (
                '{"source": "a", "target": ' + "[" * 500 + "]" * 500 + "}",
                "is nested more than 100 levels deep. Write the text as a string.",
            ),
            (
                '{"source": "a", "target": ' + "9" * 5000 + "}",
                "is not JSON (Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits). "
                "Write one object per line.",
            ),
            (
                '{"\\ud800": 1}',
                ": a key contains half of a surrogate pair (\\ud800 to \\udfff). Rename the key.",
            ),
            (
                "{" + ", ".join(f'"{number}": 0' for number in range(10_001)) + "}",
                "has 10,001 keys, but at most 10,000 are supported.",
            ),
            ('["a", "b"]', "is not a JSON object. Write one object per line, in { }."),
            (
                '{"source": "a", "tarqet": "b"}',
                ': there is no key "target". Available: source, tarqet. Did you mean tarqet?',
            ),
            ("{}", ': there is no key "source". There is no key at all.'),
            ('{"source": 5, "target": "b"}', ': "source" is 5, not a string. Write it in quotes.'),
            ('{"source": "a", "target": null}', ': "target" is null, not a string. Write it in quotes.'),
            (
                '{"source": "\\ud83d", "target": "b"}',
                ': "source" contains \\ud83d, half of a surrogate pair. Write the whole character.',
            ),
        ],
    )
    def test_faults(self, write: Write, line: str, message: str) -> None:
        pairs: Iterator[tuple[str, str]] = read_pairs(
            [write("a.jsonl", '{"source": "a", "target": "b"}\n' + line + "\n")]
        )
        assert next(pairs) == ("a", "b")
        with refuses("*/a.jsonl, line 2" + ("" if message.startswith(":") else " ") + message):
            next(pairs)


class TestCsv:
    def test_named_columns(self, write: Write) -> None:
        rows = '\ufeffid,source,target\r\n1,"Hello, you","say ""hallo"""\n\n2,"two\nlines","zwei\r\nZeilen"\r\n3,,x\0y'
        expected = [("Hello, you", 'say "hallo"'), ("two\nlines", "zwei\r\nZeilen"), ("", "x\0y")]
        path = write("a.csv", rows)
        assert list(read_pairs([path])) == expected
        swapped = read_pairs([path], source_column="target", target_column="source")
        assert list(swapped) == [(target, source) for source, target in expected]

    @pytest.mark.parametrize(
        ("columns", "pairs"),
        [
            (("de", "en"), [("eins", "one"), ("zwei", "two")]),
            (("3", "2"), [("de", "en"), ("eins", "one"), ("zwei", "two")]),
            (("de", "1"), [("eins", "7"), ("zwei", "8")]),
        ],
    )
    def test_columns_are_chosen_as_in_tsv(
        self, write: Write, columns: tuple[str, str], pairs: list[tuple[str, str]]
    ) -> None:
        path = write("a.CSV", "id,en,de\n7,one,eins\n8,two,zwei\n")
        assert list(read_pairs([path], source_column=columns[0], target_column=columns[1])) == pairs

    @pytest.mark.parametrize(
        ("content", "pairs"),
        [
            ('source;target\n"a;b";"c,d"\ne,f;g\n', [("a;b", "c,d"), ("e,f", "g")]),
            ('"source";"target"\na;b\n', [("a", "b")]),
            ("id;x,source,target\n1,a;b,c\n", [("a;b", "c")]),
            ('"id;x",source,target\n1,a,b\n', [("a", "b")]),
        ],
    )
    def test_semicolon_delimiter(self, write: Write, content: str, pairs: list[tuple[str, str]]) -> None:
        assert list(read_pairs([write("a.csv", content)])) == pairs

    @given(
        pairs=st.lists(st.tuples(texts := st.text(st.characters(exclude_categories=["Cs"])), texts), min_size=1),
        end=st.sampled_from(["\n", "\r\n"]),
        delimiter=st.sampled_from([",", ";"]),
    )
    def test_rows_written_by_python_round_trip(
        self, tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], end: str, delimiter: str
    ) -> None:
        r"""Line ends inside quoted fields come back as they are, \n as \n and \r\n as \r\n."""
        path = tmp_path_factory.getbasetemp() / "written.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            # Python 3.11 forgets to quote \r unless the line end holds it.
            writer = csv.writer(file, lineterminator=end, delimiter=delimiter, quoting=csv.QUOTE_ALL)
            writer.writerows([("source", "target"), *pairs])
        assert list(read_pairs([path])) == pairs

    @given(pairs=st.lists(st.tuples(texts, texts), min_size=1))
    def test_rows_written_with_default_dialect_round_trip(
        self, tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "written.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("source", "target"), *pairs])
        assert list(read_pairs([path])) == pairs

    def test_field_of_one_megabyte(self, write: Write) -> None:
        long = "é," * 500_000
        assert list(read_pairs([write("a.csv", f'source,target\n"{long}",b\n')])) == [(long, "b")]

    @pytest.mark.parametrize(("row", "columns"), [("a", 1), ("a,b,c", 3), (",,", 3)])
    def test_row_with_wrong_number_of_columns(self, write: Write, row: str, columns: int) -> None:
        path = write("a.csv", f'source,target\n"two\nlines",x\n\n{row}\n')
        with refuses(
            f"*/a.csv, line 5: the number of columns is {columns}, but should be 2. "
            "Quote every field that contains a separator, a quote or a line end."
        ):
            list(read_pairs([path]))

    @pytest.mark.parametrize(
        ("rows", "reason"),
        [
            ('"never closed,b\nc,d\n', "unexpected end of data"),
            ('"a"b,c\n', "',' expected after '\"'"),
            ("a\rb,c\n", "new-line character seen in unquoted field"),
            ('"' + ("x" * 999 + "\n") * 17_000, "field larger than field limit (16777216)"),
        ],
    )
    def test_invalid_csv(self, write: Write, rows: str, reason: str) -> None:
        with refuses(
            f"*/a.csv, line 3: the row that starts here is not valid CSV ({reason}). Close every quote, double the "
            "quotes inside a quoted field, and quote every field that contains a line end."
        ):
            list(read_pairs([write("a.csv", f"source,target\na,b\n{rows}")]))

    def test_missing_column_error_lists_columns(self, write: Write) -> None:
        path = write("a.csv", "sorce,german\na,b\n")
        with refuses('*/a.csv, line 1: there is no column "source". Available: sorce, german. Did you mean sorce?'):
            list(read_pairs([path]))
        with refuses(
            '*/a.csv, line 1: there is no column "zh". Available: sorce, german. '
            "Choose one with source_column and target_column."
        ):
            list(read_pairs([path], source_column="sorce", target_column="zh"))
        with pytest.raises(DataError, match='several columns "source"'):
            list(read_pairs([write("b.csv", "source,source,target\na,b,c\n")]))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("source,target\n", "*/a.csv has a header, but no rows. Give a file with rows."),
            ("\n\r\n", "*/a.csv has only blank lines. Give a file with text."),
        ],
    )
    def test_file_without_rows(self, write: Write, content: str, message: str) -> None:
        with refuses(message):
            list(read_pairs([write("a.csv", content)]))

    def test_invalid_utf8_error_has_line_inside_a_row(self, write: Write) -> None:
        path = write("a.csv", b'source,target\na,"two\nsch\xf6n"\nc,d\n')
        with pytest.raises(DataError, match=r"a\.csv, line 3: byte 4 of the line \(0xF6\) is not UTF-8"):
            list(read_pairs([path]))


class TestBadBytes:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.tsv", b"a\tb\n\xff\td\ne\tf\n"),
            ("a.csv", b"source,target\na,b\n\xff,d\ne,f\n"),
            (
                "a.jsonl",
                b'{"source": "a", "target": "b"}\n{"source": "\xff", "target": "d"}\n{"source": "e", "target": "f"}',
            ),
            (
                "b.jsonl",
                b'{"source": "a", "target": "b"}\n{"source": "\\ud83d", "target": "d"}\n{"source": "e", "target": "f"}',
            ),
        ],
    )
    def test_on_bad_receives_invalid_bytes_of_a_pair(self, write: Write, name: str, content: bytes) -> None:
        errors: list[DataError] = []
        seen = [(pair, len(errors)) for pair in read_pairs([write(name, content)], on_bad=errors.append)]
        assert seen == [(("a", "b"), 0), (("\ufffd", "d"), 1), (("e", "f"), 1)]
        with pytest.raises(DataError, match=re.escape(str(errors[0]))):
            list(read_pairs([write(name, content)]))

    def test_on_either_side_of_parallel_files(self, write: Write) -> None:
        errors: list[DataError] = []
        files = [write("a.en", b"a\n\xff\nc\n"), write("a.de", b"b\nb\n\xffc\n")]
        pairs = list(read_pairs(files, on_bad=errors.append))
        assert pairs == [("a", "b"), ("\ufffd", "b"), ("c", "\ufffdc")]
        assert [str(error).partition(":")[0].rpartition("/")[2] for error in errors] == ["a.en, line 2", "a.de, line 3"]


class TestColumns:
    @pytest.mark.parametrize(
        ("name", "content", "columns"),
        [
            ("a.tsv", "id\ten\tde\n1\ta\tb\n", ["id", "en", "de"]),
            ("a.csv", '\ufeffid;"a name";de\n1;a;b\n', ["id", "a name", "de"]),
            ("a.jsonl", '{"en": "a", "de": 1}\nnot read', ["en", "de"]),
            ("a.csv.gz", gzip.compress(b"en,de\n", mtime=0), ["en", "de"]),
        ],
    )
    def test_names(self, write: Write, name: str, content: str | bytes, columns: list[str]) -> None:
        assert columns_of(write(name, content)) == columns
        assert columns_of(str(write(name, content))) == columns

    def test_files_without_columns(self, write: Write, tmp_path: Path) -> None:
        with refuses(
            "*/a.en: a single file must end in .csv, .jsonl, .parquet, .tmx, .tsv, "
            ".xliff, .xlf, .sdlxliff or .mqxliff, optionally followed by .gz or "
            ".zst. Rename it, or give one file per field (source, target)."
        ):
            columns_of(write("a.en", "a\n"))
        with refuses("*/b.csv is empty. Give a file with text."):
            columns_of(write("b.csv", ""))
        with refuses("*/c.jsonl, line 1 is not a JSON object. Write one object per line, in { }."):
            columns_of(write("c.jsonl", "[]\n"))
        with refuses("*/d.csv: there is no such file. Did you mean b.csv?"):
            columns_of(tmp_path / "d.csv")
