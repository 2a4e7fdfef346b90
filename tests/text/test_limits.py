"""What readers refuse instead of filling the memory or waiting for ever."""

import gzip
import io
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from manyheads.errors import DataError
from manyheads.tasks import columns
from manyheads.tasks.columns import columns_in
from manyheads.tasks.data_files import DataFiles
from manyheads.text.reading import documents, files, tagged_readers
from manyheads.text.reading.documents import read_documents
from manyheads.text.reading.files import MAX_LINE_BYTES, first_lines
from manyheads.text.reading.formats import parquet_format as parquet_reader
from manyheads.text.reading.readers import columns_of, read_lines, read_pairs, read_rows
from manyheads.text.reading.tagged_readers import read_tagged
from manyheads.text.suggestions import missing_name

from text.makers import Write, refuses

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress


@contextmanager
def limited_memory(megabytes: float) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """A line of two gigabytes in some kilobytes."""
    return compress(b"a" * (1 << 25)) * 64


class TestLongLines:
    def test_compressed_line_of_two_gigabytes(self, write: Write, bomb: bytes) -> None:
        path = write("bomb.zst", compress(b"first\n") + bomb)
        lines = read_lines(path)
        assert next(lines) == "first"
        message = "line 2 is longer than 16 MiB, the limit of a line. Check that it is text, and split it into shorter"
        with limited_memory(80), refuses(f"*/bomb.zst, {message} lines."):
            next(lines)

    @pytest.mark.parametrize("name", ["a.tsv.zst", "a.csv.zst", "a.jsonl.zst"])
    def test_compressed_tables(self, write: Write, bomb: bytes, name: str) -> None:
        path = write(name, compress(b'{"text": "') + bomb)
        for read in (columns_of, columns_in, lambda path: list(read_rows([path], ["text"]))):
            with limited_memory(120), pytest.raises(DataError, match=rf"{name}, line 1 is longer than 16 MiB"):
                read(path)

    def test_compressed_tagged_text(self, write: Write, bomb: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "_MAX_FIRST_CHARACTERS", 1000)
        with limited_memory(120), pytest.raises(DataError, match=r'a\.conll\.zst: "a{200}…" has one column'):
            list(read_tagged(write("a.conll.zst", bomb)))
        with limited_memory(120), pytest.raises(DataError, match=r"b\.conll\.zst, line 2 is longer than 16 MiB"):
            list(read_tagged(write("b.conll.zst", compress(b"a O\n") + bomb)))

    def test_sentence_without_end(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tagged_readers, "_LONGEST_SENTENCE", 10)
        assert len(list(read_tagged(write("a.conll", ("a O\n" * 10 + "\n") * 2)))) == 2
        with refuses(
            "*/a.conll, lines 1 to 10: the sentence has more than 10 words. Put a blank line between sentences."
        ):
            list(read_tagged(write("a.conll", "a O\n" * 11)))

    def test_standard_input(self) -> None:
        stream = io.BytesIO(b"first\n" + b"x" * (MAX_LINE_BYTES + 1))
        with refuses("standard input, line 2 is longer than 16 MiB, *"):
            list(read_lines(stream))

    def test_longest_line(self, write: Write) -> None:
        longest = "x" * (MAX_LINE_BYTES - 1)
        assert list(read_lines(write("a", f"{longest}\n{longest}y"))) == [longest, f"{longest}y"]
        with pytest.raises(DataError, match="line 1 is longer"):
            list(read_lines(write("a", f"{longest}yy")))

    @pytest.mark.parametrize(
        "text", ["床前明月光" * 9 + "\n", "x" * 21 + "👍🏽" * 9, "y" * 20 + "\nzz\r\n", "\x80" * 50]
    )
    def test_long_line_of_a_document_is_read_in_parts(
        self, write: Write, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        monkeypatch.setattr(files, "MAX_LINE_BYTES", 24)
        monkeypatch.setattr(documents, "_MAX_CHARACTERS", 10)
        path = write("a.txt", text)
        parts = [part for (part,) in read_documents([path])]
        assert "".join(parts) == text.replace("\r\n", "\n")
        assert max(map(len, parts)) <= 34
        assert DataFiles([path]).is_plain_text and not DataFiles([path]).is_conll
        with pytest.raises(DataError, match="longer than 0 MiB"):
            list(read_documents([write("b.txt", "z" * 30)], "line"))

    def test_first_lines_are_fewer_if_they_are_long(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "_MAX_FIRST_CHARACTERS", 30)
        path = write("a", "0123456789\n" * 100)
        assert len(first_lines(path, 2)) == 2
        assert len(first_lines(path, 50)) == 4


class TestExpansion:
    @pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", compress)])
    def test_text_that_expands_too_much(
        self, write: Write, monkeypatch: pytest.MonkeyPatch, ending: str, pack: object
    ) -> None:
        monkeypatch.setattr(files, "_EXPANSION_CHECKED_FROM", 1 << 20)
        path = write(f"a.{ending}", pack(b"the same line again\n" * 100_000))  # type: ignore[operator]
        message = "expands to more than 200 times its size, as no text does. Check what it contains."
        with refuses(f"*/a.{ending} {message}"):
            list(read_lines(path))
        monkeypatch.undo()
        assert sum(1 for _ in read_lines(path)) == 100_000  # too little text to matter


class TestParquet:
    def write(self, path: Path, values: "pa.Array") -> Path:
        parquet.write_table(pa.table({"text": values}), path, compression="zstd")
        return path

    def test_text_that_expands_too_much(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = self.write(tmp_path / "a.parquet", pa.array(["a" * 1_000_000]))
        assert [len(text) for (text,) in read_rows([path], ["text"])] == [1_000_000]
        monkeypatch.setattr(parquet_reader, "_BATCH_BYTES", 100_000)
        with refuses("*/a.parquet expands to more than 200 times its size, as no text does. Check what it contains."):
            list(read_rows([path], ["text"]))

    @pytest.mark.parametrize("is_dictionary", [False, True])
    def test_long_text_that_is_stored_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_dictionary: bool
    ) -> None:
        monkeypatch.setattr(parquet_reader, "_BATCH_BYTES", 2_000_000)
        texts = pa.array(["a" * 1_000_000, "b", "c"])
        column = pa.DictionaryArray.from_arrays(pa.array([0] * 20 + [1, 2] * 10), texts)
        path = self.write(tmp_path / "a.parquet", column if is_dictionary else column.cast(pa.large_string()))
        with limited_memory(6):
            assert [len(text) for (text,) in read_rows([path], ["text"])] == [1_000_000] * 20 + [1] * 20

    def test_name_that_is_not_utf8(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "a.parquet", pa.array(["x"]))
        path.write_bytes(path.read_bytes().replace(b"text", b"te\xff\xfe"))
        with pytest.raises(DataError, match=r"a\.parquet cannot be read as Parquet: "):
            columns_of(path)

    def test_too_many_columns(self, tmp_path: Path) -> None:
        parquet.write_table(pa.table({f"c{n}": ["x"] for n in range(10_001)}), tmp_path / "a.parquet")
        with refuses("*/a.parquet: the number of columns is 10,001, but at most 10,000 are supported. *"):
            columns_of(tmp_path / "a.parquet")


class TestColumns:
    def test_time_is_linear_in_columns(self, write: Write) -> None:
        path = write("wide.csv", (",".join(f"c{number}" for number in range(10_000)) + "\n") * 3)
        started = time.process_time()
        assert len(columns_in(path)) == 10_000
        assert time.process_time() - started < 5  # 20 s before

    @pytest.mark.parametrize(("name", "separator"), [("wide.csv", ","), ("wide.tsv", "\t")])
    def test_too_many_columns(self, write: Write, name: str, separator: str) -> None:
        path = write(name, (separator.join(["x"] * 100_000) + "\n") * 2)
        message = "line 1: the number of columns is 100,000, but at most 10,000 are supported."
        for read in (columns_of, columns_in, lambda path: list(read_rows([path], ["text"], ["1"]))):
            with refuses(
                f"*/{name}, {message} Remove columns that are not needed, and check that no line ends are missing."
            ):
                read(path)

    def test_empty_cells_count_because_they_need_memory(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(columns, "_CHARACTERS", 8_000)
        path = write("wide.csv", ("," * 99 + "\n") * 50)
        assert len(columns_in(path)[0].values) == 11

    def test_row_of_many_long_fields(self, write: Write) -> None:
        field = '"' + ("x" * 1000 + "\n") * 9000 + '",'
        with refuses("*/a.csv, line 2: the row that starts here is not valid CSV (it is longer than 33554432 *"):
            list(read_pairs([write("a.csv", "source,target\n" + field * 5)]))

    def test_suggestions_for_many_and_long_names_are_fast(self) -> None:
        started = time.process_time()
        missing_name("a", "key", "text" * 5000, [f"{number}" * 50 for number in range(20_000)], "text_column")
        missing_name("a", "key", "text", ["text" * 100_000] * 100, "text_column")
        assert time.process_time() - started < 2

    def test_half_of_a_surrogate_pair_can_be_printed(self, write: Write) -> None:
        (text, label) = columns_in(write("a.jsonl", '{"text": "\\ud83d", "label": ["\\udc00"]}\n'))
        assert (text.values, label.values) == (["?"], ["?"])


class TestSpecialFiles:
    def test_device_and_pipe_are_refused_as_data(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.csv")
        advice = "Data is read more than once: write it to a file first."
        for path, kind in (("/dev/zero", "a device"), (str(tmp_path / "pipe.csv"), "a pipe")):
            for read in (
                lambda path: read_pairs([path, path]),
                lambda path: read_rows([path], ["text"]),
                read_tagged,
                lambda path: read_documents([path]),
                lambda path: DataFiles([Path(path)]).is_conll or DataFiles([Path(path)]).header,
            ):
                with refuses(f"{path} is {kind}. {advice}"):
                    list(read(path))

    def test_lines_are_read_from_a_pipe(self, tmp_path: Path) -> None:
        """As of `manyheads predict BUNDLE <(zcat letters.gz)`."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=("one\ntwo\n",))
        writer.start()
        assert list(read_lines(pipe)) == ["one", "two"]
        writer.join()

    @pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
    def test_endless_device(self) -> None:
        with limited_memory(80), pytest.raises(DataError, match=r"^/dev/zero, line 1 is longer than 16 MiB"):
            list(read_lines("/dev/zero"))
        with refuses("/dev/null is empty. Give a file with text."):
            list(read_lines("/dev/null"))

    def test_paths_that_cannot_be_opened(self, tmp_path: Path) -> None:
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        for read in (read_lines, read_tagged, lambda path: read_documents([path]), columns_of):
            with refuses("'*/a\\x00b' is not the name of a file: it contains a NUL character."):
                list(read(tmp_path / "a\0b"))
            with refuses("*/loop cannot be read: Too many levels of symbolic links."):
                list(read(tmp_path / "loop"))
            with refuses(f"*{'x' * 50}… cannot be read: File name too long."):
                list(read(tmp_path / ("x" * 5000)))
            with refuses("*/file/below: there is no folder */file."):
                (tmp_path / "file").touch()
                list(read(tmp_path / "file" / "below"))
