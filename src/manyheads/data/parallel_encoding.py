"""Encoding of stored texts by several processes; the ids are those of one process, bit for bit.

The rows are divided into ranges, which are a function of the texts alone. Forked processes read a range from the mapped
file, encode it, and return its bytes; this process writes the ranges in order. A range whose process dies or raises an
error is encoded here, which raises the error in its place.
"""

import multiprocessing
import signal
import sys
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyheads.data.cleaning import EMPTY, KEPT
from manyheads.data.texts import Texts
from manyheads.text.reading.readers import Row

EncodeRows = Callable[[Sequence[Row]], Sequence[Sequence[Sequence[int]]]]  # returns, per column, the ids of each row

TOO_LONG = "too long"
_IDS = np.dtype("int32")
_RANGE_ROWS = 10_000
_RANGE_BYTES = 4_000_000  # limits the memory for long documents
_BATCH_ROWS = 500  # encoded at once in a forked process: the tokenizer starts no threads for so few
_PER_PROCESS = 2  # ranges that are encoded or wait to be written
_MIN_BYTES = 20_000_000  # of text that is worth several processes

Range = tuple[int, int]  # the first row, and the one after the last


class EncodedRange(NamedTuple):
    """The kept rows of a range, encoded."""

    columns: list[tuple[bytes, NDArray[np.int64]]]  # of each column: the ids as bytes, and the length of each row
    rows: NDArray[np.int64]  # the indices of the kept rows in the texts
    counts: "Counter[str]"  # rows by reason for dropping them, KEPT for the others


def choose_processes(texts: Texts, n_cores: int) -> int:
    """Return how many processes should encode these texts: one unless there is much text and forking is safe."""
    may_fork = sys.platform == "linux" and not multiprocessing.current_process().daemon
    return n_cores if may_fork and texts.n_bytes >= _MIN_BYTES else 1


def row_ranges(texts: Texts) -> Iterator[Range]:
    """Yield ranges of at most 10,000 rows and a bounded number of bytes, but at least one row."""
    start = n_bytes = 0
    for row, size in enumerate(texts.row_sizes()):
        if row > start and (row - start == _RANGE_ROWS or n_bytes + size > _RANGE_BYTES):
            yield start, row
            start, n_bytes = row, 0
        n_bytes += size
    if len(texts) > start:
        yield start, len(texts)


def encode_texts(
    texts: Texts, encode: EncodeRows, max_length: int | None, n_processes: int = 1
) -> Generator[EncodedRange, None, None]:
    """Yield the encoded ranges in order. A row is dropped if a column is empty or has more ids than `max_length`."""
    if n_processes == 1:
        for own in row_ranges(texts):
            yield _encode_range(texts, encode, max_length, own, _RANGE_ROWS)
        return
    with _Pool(texts, encode, max_length, n_processes) as pool:
        yield from pool.run(row_ranges(texts))


def _encode_range(
    texts: Texts, encode: EncodeRows, max_length: int | None, own: Range, batch_rows: int
) -> EncodedRange:
    parts = []
    for start in range(own[0], own[1], batch_rows):
        rows = texts.rows(start, min(start + batch_rows, own[1]))
        parts.append(_encode_batch(rows, start, encode, max_length))
    texts.release()
    columns = [
        (b"".join(values for values, _ in column), np.concatenate([lengths for _, lengths in column]))
        for column in zip(*(part.columns for part in parts), strict=True)
    ]
    counts = sum((part.counts for part in parts), Counter({KEPT: 0}))
    return EncodedRange(columns, np.concatenate([part.rows for part in parts]), counts)


def _encode_batch(rows: Sequence[Row], start: int, encode: EncodeRows, max_length: int | None) -> EncodedRange:
    columns = encode(rows)
    reasons = [_reason(row, max_length) for row in zip(*columns, strict=True)]
    kept = [index for index, reason in enumerate(reasons) if reason == KEPT]
    stored = []
    for column in columns:
        own = column if len(kept) == len(column) else [column[index] for index in kept]
        lengths = np.fromiter(map(len, own), np.int64, len(own))
        values = np.fromiter((token for ids in own for token in ids), _IDS, int(lengths.sum()))
        stored.append((values.tobytes(), lengths))
    return EncodedRange(stored, np.array(kept, np.int64) + start, Counter(reasons))


def _reason(row: Sequence[Sequence[int]], max_length: int | None) -> str:
    if not all(len(ids) for ids in row):
        return EMPTY
    return KEPT if max_length is None or max(map(len, row)) <= max_length else TOO_LONG


class _Pool:
    """Forked processes that encode ranges."""

    def __init__(self, texts: Texts, encode: EncodeRows, max_length: int | None, n_processes: int) -> None:
        self.texts, self.encode, self.max_length, self.n_processes = texts, encode, max_length, n_processes
        self.idle: list[Connection] = []
        self.busy: dict[Connection, int] = {}  # the number of the range that is encoded
        self.processes: list[Any] = []

    def __enter__(self) -> "_Pool":
        context: Any = multiprocessing.get_context("fork")
        for _ in range(self.n_processes):
            ours, theirs = context.Pipe()
            process = context.Process(target=self._work, args=(ours, theirs), daemon=True)
            with warnings.catch_warnings():
                # Python warns of threads. None of ours is needed there: the new process only tokenizes.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            self.idle.append(ours)
            self.processes.append(process)
        return self

    def __exit__(self, *reason: object) -> None:
        for connection in (*self.idle, *self.busy):
            connection.close()
        for process in self.processes:
            process.terminate()
            process.join()

    def run(self, ranges: Iterator[Range]) -> Iterator[EncodedRange]:
        """Yield the encoded ranges in the order of the ranges."""
        waiting: deque[tuple[int, Range]] = deque()  # in order: those that are not yet yielded
        done: dict[int, EncodedRange] = {}
        number = 0
        while True:
            while self.idle and len(waiting) < _PER_PROCESS * self.n_processes and (own := next(ranges, None)):
                waiting.append((number, own))
                self._send(number, own)
                number += 1
            if not waiting and not self.idle and (own := next(ranges, None)):  # all processes have died
                waiting.append((number, own))
                number += 1
            if not waiting:
                return
            first, own = waiting[0]
            if first not in done and first in self.busy.values():
                self._receive(done)
                continue
            waiting.popleft()
            yield done.pop(first) if first in done else self._encode_here(own)

    def _encode_here(self, own: Range) -> EncodedRange:
        return _encode_range(self.texts, self.encode, self.max_length, own, _RANGE_ROWS)

    def _send(self, number: int, own: Range) -> None:
        connection = self.idle.pop()
        with suppress(OSError):  # if its process has died, `_receive` sees it
            connection.send(own)
        self.busy[connection] = number

    def _receive(self, done: dict[int, EncodedRange]) -> None:
        """Wait until some ranges are done; one that failed is in neither `done` nor `busy` then."""
        for connection in wait(list(self.busy)):
            assert isinstance(connection, Connection)
            number = self.busy.pop(connection)
            try:
                encoded = connection.recv()
            except (EOFError, OSError):
                connection.close()
                continue
            if encoded is not None:
                done[number] = encoded
            self.idle.append(connection)

    def _work(self, parents: Connection, connection: Connection) -> None:
        """Encode ranges in the forked process until the pipe is closed."""
        parents.close()  # else the pipe would never be closed for this process
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a run replaces it, to save first
        with suppress(EOFError, OSError):
            while True:
                own = connection.recv()
                try:
                    encoded = _encode_range(self.texts, self.encode, self.max_length, own, _BATCH_ROWS)
                except Exception:  # raised again where the range is encoded once more
                    encoded = None
                connection.send(encoded)
