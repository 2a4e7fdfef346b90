"""`ArrivingLines`: lines of a pipe or a terminal in batches, none of which waits for lines that are not there yet."""

import os
import select
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from manyheads.text.reading.files import MAX_LINE_BYTES
from manyheads.text.reading.readers import read_lines

_READ_BYTES = 1 << 16
_PATIENCE = 0.02  # seconds: a batch waits so long for its next line; a person does not notice it


class ArrivingLines:
    """The lines of a binary stream such as standard input.

    A fast writer gets full batches, a slow one an answer to each line: a batch ends when no line follows at once.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._pipe = _Pipe.of(stream)
        self._lines = read_lines(self._pipe or stream)  # type: ignore[arg-type]  # only its readline is used
        self.is_waiting = False  # whether the last batch ended because the writer paused

    def batches(self, size: int) -> Iterator[list[str]]:
        """Yield batches of at most `size` lines."""
        while batch := list(islice(self._lines, 1)):
            self.is_waiting = False
            while len(batch) < size and not self.is_waiting:
                if self._pipe and not self._pipe.has_line():
                    self.is_waiting = True
                elif following := list(islice(self._lines, 1)):
                    batch += following
                else:
                    break
            yield batch


class _Pipe:
    """Reads lines from a file descriptor, and tells whether reading the next one would wait."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._rest = b""  # the start of a line whose end has not come yet
        self._has_ended = False

    @classmethod
    def of(cls, stream: BinaryIO) -> "_Pipe | None":
        """The pipe of a stream; None for a stream in memory and on Windows, where waiting cannot be detected."""
        try:
            descriptor = stream.fileno()
            select.select([descriptor], [], [], 0)
        except (OSError, ValueError):
            return None
        return cls(descriptor)

    def readline(self, limit: int) -> bytes:
        """Return the next line, waiting for it; at most `limit` bytes of it, and b"" at the end."""
        while not self._is_complete():
            self._read()
        if not self._lines:
            line, self._rest = self._rest[:limit], self._rest[limit:]
            return line
        line = self._lines.popleft()
        if len(line) > limit:
            self._lines.appendleft(line[limit:])
        return line[:limit]

    def has_line(self) -> bool:
        """Return whether the next line, or the end, is there or comes at once."""
        while not self._is_complete():
            if not select.select([self._descriptor], [], [], _PATIENCE)[0]:
                return False
            self._read()
        return True

    def _is_complete(self) -> bool:
        return bool(self._lines) or self._has_ended or len(self._rest) > MAX_LINE_BYTES

    def _read(self) -> None:
        data = os.read(self._descriptor, _READ_BYTES)
        self._has_ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(line + b"\n" for line in lines)
