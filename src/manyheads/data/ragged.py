"""`Ragged`: memory-mapped sequences of different lengths, stored one after another."""

import mmap
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_BLOCK_SEQUENCES = 10_000


class MappedArray:
    """A memory-mapped array, read from disk on access."""

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
        """Release the resident pages, which the operating system still caches; else they accumulate up to the file."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            self._map.madvise(mmap.MADV_DONTNEED)


class Ragged:
    """Sequences of numbers, read from disk on access."""

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
        """The length of each sequence."""
        lengths = np.empty(len(self), dtype=np.int32)
        start = 0
        for block in self.length_blocks():
            lengths[start : start + len(block)] = block
            start += len(block)
        return lengths

    def length_blocks(self) -> Iterator[NDArray[np.int64]]:
        """Yield the lengths in blocks, which are the same for all arrays of as many sequences."""
        return (np.diff(offsets) for offsets in self._offset_blocks())

    def slice_as_bytes(self, start: int, end: int) -> list[bytes]:
        """Return the bytes of the sequences from `start` up to, but not including, `end`."""
        offsets = self.offsets.values[start : end + 1]
        block = self.values.values[offsets[0] : offsets[-1]].tobytes()
        positions = ((offsets - offsets[0]) * self.dtype.itemsize).tolist()
        return [block[first:last] for first, last in pairwise(positions)]

    def each_as_bytes(self) -> Iterator[bytes]:
        """Yield the bytes of each sequence in order, read in blocks rather than memory-mapped."""
        with self.path.with_suffix(".values").open("rb") as stream:
            for offsets in self._offset_blocks():
                positions = ((offsets - offsets[0]) * self.dtype.itemsize).tolist()
                block = stream.read(positions[-1])
                for start, end in pairwise(positions):
                    yield block[start:end]

    def _offset_blocks(self) -> Iterator[NDArray[np.int64]]:
        """Yield the offsets in blocks; each block starts with the last offset of the previous one."""
        with self.path.with_suffix(".offsets").open("rb") as stream:
            last = stream.read(8)
            while block := stream.read(8 * _BLOCK_SEQUENCES):
                yield np.frombuffer(last + block, np.int64)
                last = block[-8:]

    def release(self) -> None:
        """See `MappedArray.release`."""
        self.offsets.release()
        self.values.release()


class RaggedWriter:
    """Writes sequences in bounded memory to two files, `path` with the suffixes .values and .offsets."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self.end = 0

    def append(self, sequence: Sequence[int]) -> None:
        """Append one sequence."""
        self.extend([sequence])

    def extend(self, sequences: Sequence[Sequence[int]]) -> None:
        """Append several sequences."""
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        values = np.fromiter(chain.from_iterable(sequences), self.dtype, int(lengths.sum()))
        self._write(values.tobytes(), lengths)

    def extend_bytes(self, sequences: Sequence[bytes]) -> None:
        """Append several sequences of bytes; much faster than `extend`."""
        self._write(b"".join(sequences), np.fromiter(map(len, sequences), np.int64, len(sequences)))

    def extend_stored(self, values: bytes, lengths: NDArray[np.int64]) -> None:
        """Append several sequences that are stored one after another."""
        self._write(values, lengths)

    def _write(self, values: bytes, lengths: NDArray[np.int64]) -> None:
        self._values.write(values)
        ends = np.cumsum(lengths) + self.end
        self._offsets.write(ends.tobytes())
        self.end = int(ends[-1]) if len(ends) else self.end

    def __enter__(self) -> "RaggedWriter":
        self._values = self.path.with_suffix(".values").open("wb")
        self._offsets = self.path.with_suffix(".offsets").open("wb")
        self._offsets.write(bytes(8))  # the start of the first sequence
        return self

    def __exit__(self, *reason: object) -> None:
        self._values.close()
        self._offsets.close()
