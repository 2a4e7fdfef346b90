"""Lines of a pipe in batches that never wait for a line that is not there yet."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.text.reading import arriving_lines
from manyheads.text.reading.arriving_lines import ArrivingLines


class Pipe:
    """A pipe whose ends are both in this process."""

    def __init__(self) -> None:
        reader, self.writer = os.pipe()
        self.stream = os.fdopen(reader, "rb")

    def write(self, data: bytes) -> None:
        os.write(self.writer, data)

    def end(self) -> None:
        os.close(self.writer)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.stream.close()


def test_each_line_of_a_slow_writer_is_a_batch(pipe: Pipe) -> None:
    lines = ArrivingLines(pipe.stream)
    batches = lines.batches(1000)
    for text in ("one", "", "drei äöü", "四"):
        pipe.write(f"{text}\n".encode())
        assert next(batches) == [text]
        assert lines.is_waiting
    pipe.write(b"five\r\nsix\nsev")
    assert next(batches) == ["five", "six"]
    pipe.write(b"en\n")
    assert next(batches) == ["seven"]
    pipe.write(b"the last")
    pipe.end()
    assert list(batches) == [["the last"]]
    assert not lines.is_waiting


def test_a_fast_writer_gets_full_batches(pipe: Pipe) -> None:
    pipe.write(b"".join(b"%d\n" % number for number in range(2500)))
    pipe.end()
    lines = ArrivingLines(pipe.stream)
    found = [(batch, lines.is_waiting) for batch in lines.batches(1000)]
    assert [(len(batch), is_waiting) for batch, is_waiting in found] == [(1000, False), (1000, False), (500, False)]
    assert [line for batch, _ in found for line in batch] == [str(number) for number in range(2500)]


def test_streams_in_memory_files_and_pipes_have_the_same_lines(pipe: Pipe, tmp_path: Path) -> None:
    content = "\ufeffone\r\n\ntwo\u2028three\rfour\n五".encode()
    (tmp_path / "text").write_bytes(content)
    pipe.write(content)
    pipe.end()
    with (tmp_path / "text").open("rb") as file:
        for stream in (io.BytesIO(content), file, pipe.stream):
            assert list(ArrivingLines(stream).batches(3)) == [["one", "", "two\u2028three\rfour"], ["五"]]
    assert list(ArrivingLines(io.BytesIO(b"")).batches(3)) == []


def test_faulty_lines_are_named(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = ArrivingLines(pipe.stream).batches(1000)
    pipe.write(b"good\n")
    assert next(batches) == ["good"]
    pipe.write(b"\xff\n")
    with pytest.raises(DataError, match="standard input, line 2: byte 1"):
        next(batches)
    pipe.end()


def test_too_long_a_line_is_refused_before_its_end_comes(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving_lines, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr("manyheads.text.reading.files.MAX_LINE_BYTES", 1000)
    pipe.write(b"x" * 1001)
    with pytest.raises(DataError, match="line 1 is longer than"):
        next(ArrivingLines(pipe.stream).batches(10))
    pipe.end()
