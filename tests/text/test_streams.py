import io
import tracemalloc
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.text.readers import read_lines

from text.files import Write, refuses


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
    def test_what_a_line_is(self, write: Write, content: str, lines: list[str]) -> None:
        assert list(read_lines(write("text", content))) == lines

    @pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\0"])
    def test_no_other_sign_ends_a_line(self, write: Write, character: str) -> None:
        assert list(read_lines(write("text", f"a{character}b\nc\n"))) == [f"a{character}b", "c"]

    @given(lines=st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), min_size=1))
    def test_every_line_comes_back(self, lines: list[str]) -> None:
        text = "\n".join(lines) + "\n"
        if not text.startswith("\ufeff"):
            assert list(read_lines(io.BytesIO(text.encode()))) == lines

    def test_a_stream_may_be_empty_or_bad(self) -> None:
        assert list(read_lines(io.BytesIO(b""))) == []
        with pytest.raises(DataError, match=r"^standard input, line 2: byte 1 of the line"):
            list(read_lines(io.BytesIO(b"ok\n\xff\n")))

    def test_it_is_lazy_and_constant_in_memory(self, write: Write) -> None:
        path = write("long", "a line of text that repeats\n" * 200_000)
        tracemalloc.start()
        assert sum(1 for _ in read_lines(path)) == 200_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()
        assert list(islice(read_lines(write("late", b"fine\n\xff")), 1)) == ["fine"]

    def test_long_and_foreign_lines_come_back_as_they_are(self, write: Write) -> None:
        lines = [
            "x" * 1_000_000,
            "שלום עולם",
            "\u202bمرحبا\u202c بالعالم",
            "👩\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 👍🏽 🇩🇪",
            "e\u0301 and é",
            "a\0b\0",
            "\0",
            "a\rb",
            "",
        ]
        mixed = "".join(line + end for line, end in zip(lines, ["\r\n", "\n"] * 5, strict=False))
        assert list(read_lines(write("text", mixed))) == lines


class TestEncoding:
    @pytest.mark.parametrize(
        ("text", "encoding", "byte", "value", "guess"),
        [
            ("ok\nein schöner Tag\n", "latin1", 8, "F6", "LATIN1"),
            ("ok\n一只小狗。\n", "gb18030", 7, "B9", "GB18030"),
        ],
    )
    def test_bad_utf8_says_where_and_what_to_do(
        self, write: Write, text: str, encoding: str, byte: int, value: str, guess: str
    ) -> None:
        path = write("bad", text.encode(encoding))
        with refuses(
            f"*/bad, line 2: byte {byte} of the line (0x{value}) is not UTF-8. "
            f"It may be {guess}: convert it with iconv -f {guess} -t UTF-8 FILE > NEW_FILE."
        ):
            list(read_lines(path))

    def test_utf16_is_recognised(self, write: Write) -> None:
        with pytest.raises(DataError, match=r"line 1: byte 1 of the line \(0xFF\) .* iconv -f UTF-16 -t UTF-8"):
            list(read_lines(write("wide", "word\n".encode("utf-16"))))

    @pytest.mark.parametrize(
        ("content", "kind", "advice"),
        [
            (b"\x1f\x8b\x08\0rest", "gzip", "End its name in .gz."),
            (b"\x28\xb5\x2f\xfd\x24", "zstd", "End its name in .zst."),
            (b"PAR1\x15\x80", "Parquet", "End its name in .parquet."),
            (b"BZh91AY&SY\x94", "bzip2", "Unpack it, or pack it as .gz or .zst."),
        ],
    )
    def test_a_binary_file_is_recognised(self, write: Write, content: bytes, kind: str, advice: str) -> None:
        with pytest.raises(DataError, match=rf"is not UTF-8\. It may be {kind}\. {advice}$"):
            list(read_lines(write("binary", content)))

    def test_bad_lines_may_be_told_and_replaced(self, write: Write) -> None:
        content = b"fine\nsch\xf6n\r\nfine\n\xff\xfe"
        told: list[DataError] = []
        expected = ["fine", "sch\ufffdn", "fine", "\ufffd\ufffd"]
        assert list(read_lines(write("text", content), on_bad=told.append)) == expected
        assert list(read_lines(io.BytesIO(content), on_bad=told.append)) == expected
        assert [str(error).rpartition("/")[2].partition(":")[0] for error in told] == [
            "text, line 2",
            "text, line 4",
            "standard input, line 2",
            "standard input, line 4",
        ]
        with pytest.raises(DataError) as raised:
            list(read_lines(write("text", content)))
        assert str(raised.value) == str(told[0])

    def test_who_is_told_may_raise(self, write: Write) -> None:
        def stop(error: DataError) -> None:
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            list(read_lines(write("text", b"\xff\n"), on_bad=stop))

    def test_a_replacement_sign_that_was_there_is_not_bad(self, write: Write) -> None:
        told: list[DataError] = []
        assert list(read_lines(write("text", "a\ufffdb\n"), on_bad=told.append)) == ["a\ufffdb"]
        assert told == []
