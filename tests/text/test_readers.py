import io
import json
import re
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.text.readers import read_lines, read_pairs


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def refuses(message: str):  # type: ignore[no-untyped-def]
    """The whole error, one line: a star stands for the folder."""
    return pytest.raises(DataError, match="^" + re.escape(message).replace(r"\*", r"[^\n]*") + "$")


class TestLines:
    @pytest.mark.parametrize(
        ("content", "lines"),
        [
            ("a\nb\n", ["a", "b"]),
            ("a\nb", ["a", "b"]),
            ("a\r\nb\r\n", ["a", "b"]),
            ("\n\na\n\n", ["", "", "a", ""]),
            ("\ufeffa\n\ufeffb", ["a", "\ufeffb"]),
            (" a \t\n", [" a \t"]),
            ("a\rb\r", ["a\rb\r"]),
            ("\ufeff\n", [""]),
        ],
    )
    def test_what_a_line_is(self, write, content: str, lines: list[str]) -> None:  # type: ignore[no-untyped-def]
        assert list(read_lines(write("text", content))) == lines

    @pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\0"])
    def test_no_other_sign_ends_a_line(self, write, sign: str) -> None:  # type: ignore[no-untyped-def]
        assert list(read_lines(write("text", f"a{sign}b\nc\n"))) == [f"a{sign}b", "c"]

    @given(lines=st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), min_size=1))
    def test_every_line_comes_back(self, lines: list[str]) -> None:
        text = "\n".join(lines) + "\n"
        if not text.startswith("\ufeff"):
            assert list(read_lines(io.BytesIO(text.encode()))) == lines

    def test_a_stream_may_be_empty_or_bad(self) -> None:
        assert list(read_lines(io.BytesIO(b""))) == []
        with pytest.raises(DataError, match=r"^standard input, line 2: byte 1 of the line"):
            list(read_lines(io.BytesIO(b"ok\n\xff\n")))

    def test_it_is_lazy_and_constant_in_memory(self, write) -> None:  # type: ignore[no-untyped-def]
        path = write("long", "a line of text that repeats\n" * 200_000)
        tracemalloc.start()
        assert sum(1 for _ in read_lines(path)) == 200_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()
        assert list(islice(read_lines(write("late", b"fine\n\xff")), 1)) == ["fine"]


class TestFiles:
    def test_a_missing_file_suggests_its_neighbour(self, write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        write("train.en", "a\n")
        with refuses("*/trian.en: there is no such file. Did you mean train.en?"):
            read_lines(tmp_path / "trian.en")
        with refuses("*/zzz: there is no such file."):
            read_lines(tmp_path / "zzz")
        with refuses("*/none/a: there is no folder */none."):
            read_lines(tmp_path / "none" / "a")

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        with refuses("* is a folder. Give a file in it."):
            read_pairs([tmp_path])

    @pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
    @pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "a.txt"])
    def test_an_empty_file_is_refused(self, write, name: str, content: bytes) -> None:  # type: ignore[no-untyped-def]
        path = write(name, content)
        with refuses(f"*/{name} is empty. Give a file with text."):
            list(read_pairs([path, path] if name == "a.txt" else [path]))

    @pytest.mark.parametrize(
        ("text", "encoding", "byte", "value", "guess"),
        [
            ("ok\nein schöner Tag\n", "latin1", 8, "F6", "LATIN1"),
            ("ok\n一只小狗。\n", "gb18030", 7, "B9", "GB18030"),
        ],
    )
    def test_bad_utf8_says_where_and_what_to_do(  # type: ignore[no-untyped-def]
        self, write, text: str, encoding: str, byte: int, value: str, guess: str
    ) -> None:
        path = write("bad", text.encode(encoding))
        with refuses(
            f"*/bad, line 2: byte {byte} of the line (0x{value}) is not UTF-8. "
            f"It may be {guess}: convert it with iconv -f {guess} -t UTF-8 FILE > NEW_FILE."
        ):
            list(read_lines(path))

    def test_utf16_is_recognised(self, write) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(DataError, match=r"line 1: byte 1 of the line \(0xFF\) .* iconv -f UTF-16 -t UTF-8"):
            list(read_lines(write("wide", "word\n".encode("utf-16"))))


class TestParallel:
    def test_pairs_are_kept_as_they_are(self, write) -> None:  # type: ignore[no-untyped-def]
        source, target = write("a.en", "one\n\n three \nx\u2028y\n"), write("a.de", "eins\r\nzwei\r\n\r\nz")
        assert list(read_pairs([source, str(target)])) == [
            ("one", "eins"),
            ("", "zwei"),
            (" three ", ""),
            ("x\u2028y", "z"),
        ]

    @pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 3), (3, 4)])
    def test_unequal_lengths_give_both_counts(self, write, m: int, n: int) -> None:  # type: ignore[no-untyped-def]
        pairs = read_pairs([write("a.en", "x\n" * m), write("a.de", "y\n" * n)])
        assert list(islice(pairs, 3)) == [("x", "y")] * 3
        with refuses(
            f"*/a.en has {m} lines, but */a.de has {n}. "
            "Line n of one must translate line n of the other: align them anew."
        ):
            next(pairs)

    def test_what_two_files_cannot_be(self, write) -> None:  # type: ignore[no-untyped-def]
        text, table = write("a.en", "x\n"), write("a.tsv", "x\ty\n")
        with pytest.raises(DataError, match="two parallel files have no columns"):
            read_pairs([text, text], source_column="1", target_column="2")
        with refuses("*/a.tsv holds pairs by itself. Give it alone, or give two files of plain lines."):
            read_pairs([text, table])
        with pytest.raises(DataError, match=r"a\.en: one file of pairs must end in \.tsv or \.jsonl"):
            read_pairs([text])
        for paths in ([], [text] * 3):
            with pytest.raises(DataError, match=r"from one file .* or from two parallel ones"):
                read_pairs(paths)


class TestTsv:
    def test_two_columns(self, write) -> None:  # type: ignore[no-untyped-def]
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
    def test_chosen_columns(self, write, columns: tuple[str, str], pairs: list[tuple[str, str]]) -> None:  # type: ignore[no-untyped-def]
        path = write("a.TSV", "id\ten\tde\n7\tone\teins\n8\ttwo\tzwei\n")
        assert list(read_pairs([path], source_column=columns[0], target_column=columns[1])) == pairs

    @pytest.mark.parametrize(
        ("content", "line", "columns"),
        [("a\tb\nc\n", 2, 1), ("a\tb\nc\td\te\n", 2, 3), ("a\n", 1, 1), ("a\tb\tc\n", 1, 3), ("a\tb\n\n", 2, 1)],
    )
    def test_a_wrong_number_of_columns(self, write, content: str, line: int, columns: int) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(
            DataError, match=rf"a\.tsv, line {line}: the number of columns is {columns}, but should be 2\."
        ):
            list(read_pairs([write("a.tsv", content)]))

    def test_a_stray_tab_never_shifts_a_chosen_column(self, write) -> None:  # type: ignore[no-untyped-def]
        path = write("a.tsv", "id\ten\tde\n7\to\tne\teins\n")
        with pytest.raises(DataError, match="line 2: the number of columns is 4, but should be 3"):
            list(read_pairs([path], source_column="en", target_column="de"))

    def test_a_missing_column_lists_what_there_is(self, write) -> None:  # type: ignore[no-untyped-def]
        path = write("a.tsv", "id\tenglish\tenglish\tgerman\n1\ta\tb\tc\n")
        with refuses(
            '*/a.tsv, line 1: there is no column "germn". There is: id, english, english, german. Did you mean german?'
        ):
            list(read_pairs([path], source_column="id", target_column="germn"))
        for number in ("0", "5"):
            with refuses(f'*/a.tsv, line 1: there is no column "{number}". There is: 1, 2, 3, 4.'):
                list(read_pairs([path], source_column="1", target_column=number))
        with pytest.raises(DataError, match='more than one column "english"'):
            list(read_pairs([path], source_column="english", target_column="german"))
        with pytest.raises(DataError, match="only one column is given"):
            read_pairs([path], source_column="id")

    def test_a_header_alone_is_refused(self, write) -> None:  # type: ignore[no-untyped-def]
        with refuses("*/a.tsv has a header, but no rows. Give a file with pairs."):
            list(read_pairs([write("a.tsv", "en\tde\n")], source_column="en", target_column="de"))


class TestJsonl:
    def test_keys(self, write) -> None:  # type: ignore[no-untyped-def]
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
            ("[" * 100_000, "is not JSON (*). Write one object per line."),
            ('["a", "b"]', "is not a JSON object. Write one object per line, in { }."),
            (
                '{"source": "a", "tarqet": "b"}',
                ': there is no key "target". There is: source, tarqet. Did you mean tarqet?',
            ),
            ("{}", ': there is no key "source". There is: none.'),
            ('{"source": 5, "target": "b"}', ': "source" is 5, not a text. Write it in quotes.'),
            ('{"source": "a", "target": null}', ': "target" is null, not a text. Write it in quotes.'),
            (
                '{"source": "\\ud83d", "target": "b"}',
                ': "source" holds half a character (\\ud83d without its other half).',
            ),
        ],
    )
    def test_faults(self, write, line: str, message: str) -> None:  # type: ignore[no-untyped-def]
        pairs: Iterator[tuple[str, str]] = read_pairs(
            [write("a.jsonl", '{"source": "a", "target": "b"}\n' + line + "\n")]
        )
        assert next(pairs) == ("a", "b")
        with refuses("*/a.jsonl, line 2" + ("" if message.startswith(":") else " ") + message):
            next(pairs)
