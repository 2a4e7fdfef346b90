"""Reading lines: line ends, encodings, compression."""

import gzip
import io
import struct
import sys
import tracemalloc
from collections.abc import Callable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.text.reading.readers import read_lines, read_pairs

from text.makers import Write, refuses

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, compress
else:
    from backports.zstd import CompressionParameter, compress


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
    def test_line_ends(self, write: Write, content: str, lines: list[str]) -> None:
        assert list(read_lines(write("text", content))) == lines

    @pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\0"])
    def test_other_characters_do_not_end_a_line(self, write: Write, character: str) -> None:
        assert list(read_lines(write("text", f"a{character}b\nc\n"))) == [f"a{character}b", "c"]

    @given(lines=st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), min_size=1))
    def test_lines_round_trip(self, lines: list[str]) -> None:
        text = "\n".join(lines) + "\n"
        if not text.startswith("\ufeff"):
            assert list(read_lines(io.BytesIO(text.encode()))) == lines

    def test_empty_and_invalid_streams(self) -> None:
        assert list(read_lines(io.BytesIO(b""))) == []
        with pytest.raises(DataError, match=r"^standard input, line 2: byte 1 of the line"):
            list(read_lines(io.BytesIO(b"ok\n\xff\n")))

    def test_reading_is_lazy_and_in_constant_memory(self, write: Write) -> None:
        path = write("long", "a line of text that repeats\n" * 200_000)
        tracemalloc.start()
        assert sum(1 for _ in read_lines(path)) == 200_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()
        assert list(islice(read_lines(write("late", b"fine\n\xff")), 1)) == ["fine"]

    def test_long_and_multilingual_lines_are_unchanged(self, write: Write) -> None:
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
    def test_invalid_utf8_error_has_position_and_advice(
        self, write: Write, text: str, encoding: str, byte: int, value: str, guess: str
    ) -> None:
        path = write("bad", text.encode(encoding))
        with refuses(
            f"*/bad, line 2: byte {byte} of the line (0x{value}) is not UTF-8. "
            f"It may be {guess}: convert it with iconv -f {guess} -t UTF-8 FILE > NEW_FILE."
        ):
            list(read_lines(path))

    @pytest.mark.parametrize(("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
    def test_utf16_with_a_byte_order_mark_is_read(self, write: Write, mark: bytes, encoding: str) -> None:
        lines = ["short", "", "小狗 🐕 " * 20_000, "last"]  # longer than a buffer, with characters of four bytes
        data = mark + "\r\n".join(lines).encode(encoding)
        assert list(read_lines(write("wide", data))) == lines
        assert list(read_lines(write("wide.gz", gzip.compress(data)))) == lines

    def test_invalid_utf16_is_one_line(self, write: Write) -> None:
        fault = "*/wide starts with the byte order mark of UTF-16, but is not valid UTF-16. Save it again as UTF-8."
        for data in (b"\xff\xfea\0b", b"\xff\xfe\x00\xd8a\0"):
            with refuses(fault):
                list(read_lines(write("wide", data)))
        with refuses("*/wide is empty. Give a file with text."):
            list(read_lines(write("wide", b"\xff\xfe")))

    def test_utf32_is_recognized(self, write: Write) -> None:
        with pytest.raises(DataError, match="iconv -f UTF-32 -t UTF-8"):
            list(read_lines(write("wide", "word\n".encode("utf-32"))))

    @pytest.mark.parametrize(
        ("content", "kind", "advice"),
        [
            (b"\x1f\x8b\x08\0rest", "gzip", "Rename it to end in .gz."),
            (b"\x28\xb5\x2f\xfd\x24", "zstd", "Rename it to end in .zst."),
            (b"PAR1\x15\x80", "Parquet", "Rename it to end in .parquet."),
            (b"BZh91AY&SY\x94", "bzip2", "Decompress it, or compress it as .gz or .zst."),
        ],
    )
    def test_binary_file_is_recognized(self, write: Write, content: bytes, kind: str, advice: str) -> None:
        with pytest.raises(DataError, match=rf"is not UTF-8\. It may be {kind}\. {advice}$"):
            list(read_lines(write("binary", content)))

    def test_on_bad_receives_errors_and_bytes_are_replaced(self, write: Write) -> None:
        content = b"fine\nsch\xf6n\r\nfine\n\xff\xfe"
        errors: list[DataError] = []
        expected = ["fine", "sch\ufffdn", "fine", "\ufffd\ufffd"]
        assert list(read_lines(write("text", content), on_bad=errors.append)) == expected
        assert list(read_lines(io.BytesIO(content), on_bad=errors.append)) == expected
        assert [str(error).rpartition("/")[2].partition(":")[0] for error in errors] == [
            "text, line 2",
            "text, line 4",
            "standard input, line 2",
            "standard input, line 4",
        ]
        with pytest.raises(DataError) as raised:
            list(read_lines(write("text", content)))
        assert str(raised.value) == str(errors[0])

    def test_on_bad_may_raise(self, write: Write) -> None:
        def stop(error: DataError) -> None:
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            list(read_lines(write("text", b"\xff\n"), on_bad=stop))

    def test_replacement_character_in_the_text_is_valid(self, write: Write) -> None:
        errors: list[DataError] = []
        assert list(read_lines(write("text", "a\ufffdb\n"), on_bad=errors.append)) == ["a\ufffdb"]
        assert errors == []


Pack = Callable[[bytes], bytes]


def zstd(text: bytes) -> bytes:
    return compress(text, options={CompressionParameter.checksum_flag: 1})


both = pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", zstd)])


@both
class TestCompression:
    def test_parallel_files(self, write: Write, ending: str, pack: Pack) -> None:
        source = write(f"a.en.{ending}", pack("\ufeffone\r\n👩\u200d👧\n".encode()))
        target = write(f"a.de.{ending}", pack(b"eins\nzwei"))
        assert list(read_pairs([source, target])) == [("one", "eins"), ("👩\u200d👧", "zwei")]
        assert list(read_pairs([source, write("a.de", "eins\nzwei")])) == [("one", "eins"), ("👩\u200d👧", "zwei")]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.tsv", b"one\teins\n"),
            ("a.csv", b'source,target\none,"eins"\n'),
            ("a.jsonl", b'{"source": "one", "target": "eins"}\n'),
        ],
    )
    def test_every_format(self, write: Write, ending: str, pack: Pack, name: str, content: bytes) -> None:
        assert list(read_pairs([write(f"{name}.{ending}", pack(content))])) == [("one", "eins")]

    def test_concatenated_members_are_one_text(self, write: Write, ending: str, pack: Pack) -> None:
        path = write(f"a.{ending}", pack(b"a\nb") + pack(b"") + pack(b"c\n" * 70_000) + pack(b"d"))
        assert list(read_lines(path)) == ["a", "bc", *["c"] * 69_999, "d"]

    def test_long_line(self, write: Write, ending: str, pack: Pack) -> None:
        lines = ["x" * 1_000_000, "y" * 1_000_000]
        assert list(read_lines(write(f"a.{ending}", pack("\n".join(lines).encode())))) == lines

    @pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
    def test_empty_text_raises(self, write: Write, ending: str, pack: Pack, content: bytes) -> None:
        with refuses(f"*/a.{ending} is empty. Give a file with text."):
            list(read_lines(write(f"a.{ending}", pack(content))))

    def test_empty_file_raises(self, write: Write, ending: str, pack: Pack) -> None:
        with refuses(f"*/a.{ending} is empty. Give a file with text."):
            list(read_lines(write(f"a.{ending}", b"")))

    def test_truncation_at_any_byte_raises(self, write: Write, ending: str, pack: Pack) -> None:
        packed = pack(b"".join(b"line %d\n" % (number * 7919 % 1000) for number in range(40)))
        for length in range(8, len(packed)):
            with refuses(f"*/a.{ending} is truncated: its compressed data ends too early. Copy or download it again."):
                list(read_lines(write(f"a.{ending}", packed[:length])))

    def test_changed_byte_raises(self, write: Write, ending: str, pack: Pack) -> None:
        text = b"".join(b"line %d\n" % (number * 7919 % 1000) for number in range(40))
        packed = pack(text)
        # Bytes 4 to 9 of gzip are a date and a system, which nothing depends on.
        for position in range(10, len(packed)):
            damaged = bytearray(packed)
            damaged[position] ^= 0x55
            with pytest.raises(DataError) as raised:
                list(read_lines(write(f"a.{ending}", bytes(damaged))))
            assert "\n" not in str(raised.value)
            assert f"a.{ending}" in str(raised.value)

    def test_trailing_garbage_raises(self, write: Write, ending: str, pack: Pack) -> None:
        with pytest.raises(DataError, match=rf"a\.{ending} is corrupt \(.+\)\. Copy or download it again\.$"):
            list(read_lines(write(f"a.{ending}", pack(b"a\n") + b"rubbish")))

    def test_invalid_utf8_error_has_line(self, write: Write, ending: str, pack: Pack) -> None:
        path = write(f"a.{ending}", pack(b"a\n\xff\n"))
        with pytest.raises(DataError, match=rf"a\.{ending}, line 2: byte 1 of the line \(0xFF\) is not UTF-8"):
            list(read_lines(path))
        errors: list[DataError] = []
        assert list(read_lines(path, on_bad=errors.append)) == ["a", "\ufffd"]
        assert len(errors) == 1

    def test_memory_is_constant(self, write: Write, ending: str, pack: Pack) -> None:
        path = write(f"a.{ending}", pack((b"a text that repeats " * 50 + b"\n") * 40_000))
        tracemalloc.start()
        assert sum(1 for _ in read_lines(path)) == 40_000
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12_000_000  # of 40 MB


class TestNames:
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            (
                "a.en.gz",
                b"text\n",
                "not gzip, although its name ends in .gz. If it is plain text, remove .gz from its name.",
            ),
            (
                "a.zst",
                b"text\n",
                "not zstd, although its name ends in .zst. If it is plain text, remove .zst from its name.",
            ),
            (
                "a.gz",
                zstd(b"a"),
                "not gzip, although its name ends in .gz. It looks like zstd. Rename it to end in .zst.",
            ),
            (
                "a.tsv.zst",
                gzip.compress(b"a\tb", mtime=0),
                "not zstd, although its name ends in .zst. It looks like gzip. Rename it to end in .gz.",
            ),
        ],
    )
    def test_misleading_file_name(self, write: Write, name: str, content: bytes, message: str) -> None:
        with refuses(f"*/{name} is {message}"):
            list(read_lines(write(name, content)))

    def test_suffixes_are_case_insensitive(self, write: Write) -> None:
        assert list(read_pairs([write("A.TSV.GZ", gzip.compress(b"x\ty\n"))])) == [("x", "y")]
        with refuses("*/B.ZST is empty. Give a file with text."):
            list(read_lines(write("B.ZST", zstd(b""))))

    def test_format_of_compressed_files(self, write: Write) -> None:
        table, text = write("a.tsv.gz", gzip.compress(b"x\ty\n")), write("a.en.gz", gzip.compress(b"x\n"))
        with refuses("*/a.tsv.gz is a table. Give it alone, or give one file of plain lines per field."):
            read_pairs([text, table])
        with pytest.raises(DataError, match=r"a\.en\.gz: a single file must end in \.csv, \.json, \.jsonl"):
            read_pairs([text])


def test_skippable_zstd_frames(write: Write) -> None:
    skipped = struct.pack("<II", 0x184D2A5A, 3) + b"abc"
    path = write("a.zst", skipped + zstd(b"a\n") + skipped + zstd(b"b\n") + skipped)
    assert list(read_lines(path)) == ["a", "b"]


def test_zero_padding_after_gzip(write: Write) -> None:
    assert list(read_lines(write("a.gz", gzip.compress(b"a\n") + b"\0" * 512))) == ["a"]
