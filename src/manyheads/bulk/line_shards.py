"""`ShardPlan`: the lines of several files, divided into numbered shards of a fixed number of lines.

A plan is a function of the contents of the files and of the number of lines per shard. It holds byte offsets, never
lines, so that a worker reads its own shard and nothing else.
"""

import codecs
import hashlib
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import (
    MAX_LINE_BYTES,
    UTF8_BOM,
    byte_order_mark,
    check_readable,
    empty_file_error,
    file_lines,
    lines_at,
)

_BLOCK_BYTES = 1 << 20


class Segment(NamedTuple):
    """Consecutive lines of one file."""

    file: int  # its index
    start: int  # the byte offset of the first line
    n_lines: int


class Shard(NamedTuple):
    """Consecutive lines of the input."""

    number: int
    first: int  # the index of its first line in the whole input
    segments: tuple[Segment, ...]

    @property
    def n_lines(self) -> int:
        """The number of lines."""
        return sum(segment.n_lines for segment in self.segments)

    @property
    def lines(self) -> str:
        """The numbers of the lines, counted from 1, as messages name them."""
        return _("{first:,} to {last:,}", first=self.first + 1, last=self.first + self.n_lines)


@dataclass(frozen=True)
class InputFile:
    """A file as it was when the plan was made."""

    path: str
    sha256: str
    n_bytes: int
    n_lines: int
    modified: int  # nanoseconds

    def check_unchanged(self) -> None:
        """Raise DataError if the file was changed since the plan was made."""
        status = Path(self.path).stat()
        if (status.st_size, status.st_mtime_ns) != (self.n_bytes, self.modified):
            raise DataError(
                _("{path} changed during the job. Restore it, and run the same command again.", path=self.path)
            )


@dataclass(frozen=True)
class ShardPlan:
    """The files of a job and its shards."""

    files: tuple[InputFile, ...]
    shards: tuple[Shard, ...]

    @property
    def n_lines(self) -> int:
        """The number of lines of all files."""
        return sum(file.n_lines for file in self.files)


class LineSource:
    """Reads the lines of shards from the files of a plan."""

    def __init__(self, files: Sequence[InputFile]) -> None:
        self.files = files
        self._starts = [0, *accumulate(file.n_lines for file in files)]

    @classmethod
    def from_table(cls, table: Sequence[dict[str, Any]]) -> "LineSource":
        """Make a source from the files of a plan as JSON values."""
        return cls([InputFile(**file) for file in table])

    def lines(self, shard: Shard) -> Iterator[str]:
        """Yield the lines of a shard."""
        for segment in shard.segments:
            file = self.files[segment.file]
            file.check_unchanged()
            yield from lines_at(Path(file.path), segment.start, segment.n_lines)
            file.check_unchanged()

    def name_line(self, number: int) -> str:
        """Name the line of this number, counted from 1: with its file, if there are several."""
        if len(self.files) == 1:
            return _("Line {number}", number=number)
        index = bisect_right(self._starts, number - 1) - 1
        return _("{path}, line {number}", path=self.files[index].path, number=number - self._starts[index])


def plan_shards(paths: Sequence[Path], shard_lines: int) -> ShardPlan:
    """Read the files once, and divide their lines into shards of `shard_lines` lines; the last may have fewer.

    A line that is not UTF-8 or too long raises the DataError that `read_lines` would raise.
    """
    files: list[InputFile] = []
    shards: list[Shard] = []
    open_segments: list[Segment] = []  # of the shard that is not full yet
    n_free = shard_lines
    for path in paths:
        file, segments = _scan(len(files), path, n_free, shard_lines)
        files.append(file)
        for segment in segments:
            open_segments.append(segment)
            n_free -= segment.n_lines
            if not n_free:
                shards.append(Shard(len(shards), len(shards) * shard_lines, tuple(open_segments)))
                open_segments, n_free = [], shard_lines
    if open_segments:
        shards.append(Shard(len(shards), len(shards) * shard_lines, tuple(open_segments)))
    return ShardPlan(tuple(files), tuple(shards))


def _scan(index: int, path: Path, n_first: int, n_lines: int) -> tuple[InputFile, list[Segment]]:
    """Cut a file into segments of `n_lines` lines, the first of `n_first`, and compute its digest."""
    check_readable(path)
    if byte_order_mark(path)[1] != "utf-8":
        raise DataError(
            _(
                "{path} is UTF-16, which is not read in parts. Convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE.",
                path=path,
            )
        )
    digest = hashlib.sha256()
    cutter = _Cutter(index, n_first, n_lines)
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            decoder = codecs.getincrementaldecoder("utf-8")()
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
                decoder.decode(block)
                cutter.add(block)
                if cutter.position - cutter.line_start > MAX_LINE_BYTES:
                    break
            decoder.decode(b"", final=True)
    except OSError as error:
        raise DataError(_("{path} cannot be read: {strerror}.", path=path, strerror=error.strerror)) from None
    except UnicodeDecodeError:
        cutter.is_valid = False
    if cutter.position in (0, len(UTF8_BOM)) and path.read_bytes() in (b"", UTF8_BOM):
        raise empty_file_error(path)
    if not cutter.is_valid or cutter.longest > MAX_LINE_BYTES or cutter.position != status.st_size:
        for _line in file_lines(path, None):  # raises for the first line that cannot be read
            pass
        raise DataError(_("{path} changed while it was read. Run the same command again.", path=path))
    segments = cutter.finish()
    n_all = sum(segment.n_lines for segment in segments)
    return InputFile(str(path), digest.hexdigest(), status.st_size, n_all, status.st_mtime_ns), segments


class _Cutter:
    """Finds where segments begin, block by block."""

    def __init__(self, file: int, n_first: int, n_lines: int) -> None:
        self.file, self.n_lines = file, n_lines
        self.segments: list[Segment] = []
        self.start = 0  # of the open segment
        self.n_open, self.n_left = 0, n_first  # lines of the open segment: that ended, and that are missing
        self.position = 0  # the number of bytes read
        self.line_start = 0  # where the last line begins
        self.longest = 0  # bytes of a line, at least where it matters
        self.is_valid = True

    def add(self, block: bytes) -> None:
        end = block.find(b"\n")
        if end >= 0:
            self.longest = max(self.longest, self.position + end + 1 - self.line_start)
            self.line_start = self.position + block.rfind(b"\n") + 1
        else:
            self.longest = max(self.longest, self.position + len(block) - self.line_start)
        n_found, offset = block.count(b"\n"), 0
        while n_found >= self.n_left:
            for _line in range(self.n_left):
                offset = block.index(b"\n", offset) + 1
            n_found -= self.n_left
            self._close(self.n_open + self.n_left, self.position + offset)
        self.n_open += n_found
        self.n_left -= n_found
        self.position += len(block)

    def _close(self, n_lines: int, end: int) -> None:
        self.segments.append(Segment(self.file, self.start, n_lines))
        self.start, self.n_open, self.n_left = end, 0, self.n_lines

    def finish(self) -> list[Segment]:
        """Return all segments; a last line without a line end counts."""
        n_lines = self.n_open + (self.line_start < self.position)
        if n_lines:
            self._close(n_lines, self.position)
        return self.segments
