"""`Ragged`: sequences of different lengths in one flat memory-mapped file."""

import mmap
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 10_000  # sequences


class MappedArray:
    """One array in a file, read from disk only where touched."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.values: NDArray[np.generic] = np.empty(0, dtype)
        self._map: mmap.mmap | None = None
        if path.stat().st_size:  # an empty file cannot be mapped
            with path.open("rb") as stream:
                self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            self.values = np.frombuffer(self._map, dtype)

    def __len__(self) -> int:
        return len(self.values)

    def release(self) -> None:
        """Give touched pages back to the system, which still caches them; else all of the file is resident in time."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._map.madvise(mmap.MADV_DONTNEED)


class Ragged:
    """Many sequences of numbers, read from disk only where touched."""

    def __init__(self, path: Path, dtype: str) -> None:
        """Open what a `RaggedWriter` stored at `path`."""
        self.path = path
        self.dtype = np.dtype(dtype)
        self.offsets = MappedArray(path.with_suffix(".offsets"), "int64")
        self.values = MappedArray(path.with_suffix(".values"), dtype)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.generic]:
        return self.values.values[self.offsets.values[index] : self.offsets.values[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int32]:
        """How long each sequence is."""
        lengths = np.empty(len(self), dtype=np.int32)
        start = 0
        for offsets in self._offset_blocks():
            lengths[start : start + len(offsets) - 1] = np.diff(offsets)
            start += len(offsets) - 1
        return lengths

    def each_as_bytes(self) -> Iterator[bytes]:
        """The sequences in turn as they are stored, read in blocks rather than mapped."""
        with self.path.with_suffix(".values").open("rb") as stream:
            for offsets in self._offset_blocks():
                positions = ((offsets - offsets[0]) * self.dtype.itemsize).tolist()
                block = stream.read(positions[-1])
                for start, end in pairwise(positions):
                    yield block[start:end]

    def _offset_blocks(self) -> Iterator[NDArray[np.int64]]:
        """The offsets, so many sequences at a time; each block begins with the end of the one before."""
        with self.path.with_suffix(".offsets").open("rb") as stream:
            last = stream.read(8)
            while block := stream.read(8 * _AT_ONCE):
                yield np.frombuffer(last + block, np.int64)
                last = block[-8:]

    def release(self) -> None:
        """See `MappedArray.release`."""
        self.offsets.release()
        self.values.release()


class RaggedWriter:
    """Stores sequences as they come, in bounded memory, in two files: `path` ending in .values and .offsets."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self.end = 0

    def append(self, sequence: Sequence[int]) -> None:
        """Store one more sequence."""
        self.extend([sequence])

    def extend(self, sequences: Sequence[Sequence[int]]) -> None:
        """Store several more."""
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        values = np.fromiter(chain.from_iterable(sequences), self.dtype, int(lengths.sum()))
        self._write(values.tobytes(), lengths)

    def extend_bytes(self, sequences: Sequence[bytes]) -> None:
        """Store several more whose values are bytes already, much faster."""
        self._write(b"".join(sequences), np.fromiter(map(len, sequences), np.int64, len(sequences)))

    def _write(self, values: bytes, lengths: NDArray[np.int64]) -> None:
        self._values.write(values)
        ends = np.cumsum(lengths) + self.end
        self._offsets.write(ends.tobytes())
        self.end = int(ends[-1]) if len(ends) else self.end

    def __enter__(self) -> "RaggedWriter":
        self._values = self.path.with_suffix(".values").open("wb")
        self._offsets = self.path.with_suffix(".offsets").open("wb")
        self._offsets.write(bytes(8))  # where the first one begins
        return self

    def __exit__(self, *reason: object) -> None:
        self._values.close()
        self._offsets.close()
