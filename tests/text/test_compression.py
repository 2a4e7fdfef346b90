import gzip
import struct
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard

from manyheads.errors import DataError
from manyheads.text.readers import read_lines, read_pairs

from text.files import Write, refuses

Pack = Callable[[bytes], bytes]


def zstd(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


both = pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", zstd)])


@both
class TestBoth:
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

    def test_several_members_are_one_text(self, write: Write, ending: str, pack: Pack) -> None:
        path = write(f"a.{ending}", pack(b"a\nb") + pack(b"") + pack(b"c\n" * 70_000) + pack(b"d"))
        assert list(read_lines(path)) == ["a", "bc", *["c"] * 69_999, "d"]

    def test_a_long_line(self, write: Write, ending: str, pack: Pack) -> None:
        lines = ["x" * 1_000_000, "y" * 1_000_000]
        assert list(read_lines(write(f"a.{ending}", pack("\n".join(lines).encode())))) == lines

    @pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
    def test_an_empty_text_is_refused(self, write: Write, ending: str, pack: Pack, content: bytes) -> None:
        with refuses(f"*/a.{ending} is empty. Give a file with text."):
            list(read_lines(write(f"a.{ending}", pack(content))))

    def test_an_empty_file_is_refused(self, write: Write, ending: str, pack: Pack) -> None:
        with refuses(f"*/a.{ending} is empty. Give a file with text."):
            list(read_lines(write(f"a.{ending}", b"")))

    def test_every_truncation_is_refused(self, write: Write, ending: str, pack: Pack) -> None:
        packed = pack(b"".join(b"line %d\n" % (number * 7919 % 1000) for number in range(40)))
        for length in range(8, len(packed)):
            with refuses(f"*/a.{ending} is cut short: its compressed text does not end. Copy or download it anew."):
                list(read_lines(write(f"a.{ending}", packed[:length])))

    def test_a_changed_byte_is_never_an_end(self, write: Write, ending: str, pack: Pack) -> None:
        text = b"".join(b"line %d\n" % (number * 7919 % 1000) for number in range(40))
        packed = pack(text)
        # Bytes 4 to 9 of gzip are a date and a system, which nothing depends on.
        for place in range(10, len(packed)):
            damaged = bytearray(packed)
            damaged[place] ^= 0x55
            with pytest.raises(DataError) as raised:
                list(read_lines(write(f"a.{ending}", bytes(damaged))))
            assert "\n" not in str(raised.value)
            assert f"a.{ending}" in str(raised.value)

    def test_what_follows_the_text_is_damage(self, write: Write, ending: str, pack: Pack) -> None:
        with pytest.raises(DataError, match=rf"a\.{ending} is damaged \(.+\)\. Copy or download it anew\.$"):
            list(read_lines(write(f"a.{ending}", pack(b"a\n") + b"rubbish")))

    def test_bad_utf8_names_the_line(self, write: Write, ending: str, pack: Pack) -> None:
        path = write(f"a.{ending}", pack(b"a\n\xff\n"))
        with pytest.raises(DataError, match=rf"a\.{ending}, line 2: byte 1 of the line \(0xFF\) is not UTF-8"):
            list(read_lines(path))
        told: list[DataError] = []
        assert list(read_lines(path, on_bad=told.append)) == ["a", "\ufffd"]
        assert len(told) == 1

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
                "not gzip, though its name ends in .gz. If it is plain text, take .gz off its name.",
            ),
            (
                "a.zst",
                b"text\n",
                "not zstd, though its name ends in .zst. If it is plain text, take .zst off its name.",
            ),
            ("a.gz", zstd(b"a"), "not gzip, though its name ends in .gz. It looks like zstd. End its name in .zst."),
            (
                "a.tsv.zst",
                gzip.compress(b"a\tb", mtime=0),
                "not zstd, though its name ends in .zst. It looks like gzip. End its name in .gz.",
            ),
        ],
    )
    def test_a_name_that_misleads(self, write: Write, name: str, content: bytes, message: str) -> None:
        with refuses(f"*/{name} is {message}"):
            list(read_lines(write(name, content)))

    def test_capitals_are_no_other_name(self, write: Write) -> None:
        assert list(read_pairs([write("A.TSV.GZ", gzip.compress(b"x\ty\n"))])) == [("x", "y")]
        with refuses("*/B.ZST is empty. Give a file with text."):
            list(read_lines(write("B.ZST", zstd(b""))))

    def test_formats_are_known_under_their_packing(self, write: Write) -> None:
        table, text = write("a.tsv.gz", gzip.compress(b"x\ty\n")), write("a.en.gz", gzip.compress(b"x\n"))
        with refuses("*/a.tsv.gz holds pairs by itself. Give it alone, or give two files of plain lines."):
            read_pairs([text, table])
        with pytest.raises(DataError, match=r"a\.en\.gz: one file of pairs must end in \.tsv, \.csv"):
            read_pairs([text])


def test_frames_to_skip_are_skipped(write: Write) -> None:
    skipped = struct.pack("<II", 0x184D2A5A, 3) + b"abc"
    path = write("a.zst", skipped + zstd(b"a\n") + skipped + zstd(b"b\n") + skipped)
    assert list(read_lines(path)) == ["a", "b"]


def test_zeros_after_gzip_are_padding(write: Write) -> None:
    assert list(read_lines(write("a.gz", gzip.compress(b"a\n") + b"\0" * 512))) == ["a"]
