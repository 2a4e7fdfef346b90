"""`HashSet`: a growing set of 64-bit hashes in sorted arrays, the large ones on disk."""

import mmap
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_STORED_FROM = 2_000_000  # numbers: longer arrays are stored on disk, if there is a folder for them
_BLOCK = 500_000  # numbers that are merged at once


class _StoredArray:
    """An array in a file without a name, which the operating system deletes with the last reference to it."""

    def __init__(self, blocks: Iterator[Hashes], folder: Path) -> None:
        with tempfile.TemporaryFile(dir=folder) as file:
            for block in blocks:
                file.write(block.tobytes())
            file.flush()
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.values: Hashes = np.frombuffer(self._map, np.uint64)

    def release(self) -> None:
        """Release the resident pages, which the operating system still caches."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


class HashSet:
    """A growing set of 64-bit numbers that takes 8 bytes per number, and at most 16 while it grows.

    It consists of sorted arrays, each at least twice as long as the next. A new array is merged with the shorter ones
    before it, so that each number is moved O(log n) times. With a folder for `scratch`, arrays of more than two million
    numbers are files there, and memory stays below 100 MB however large the set is.
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self._scratch = scratch
        self._sorted: list[Hashes | _StoredArray] = []

    def __len__(self) -> int:
        return sum(len(_values(block)) for block in self._sorted)

    def has(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return which of these numbers are in the set."""
        is_member = np.zeros(len(hashes), dtype=np.bool_)
        for block in self._sorted:
            members = _values(block)
            positions = np.searchsorted(members, hashes)
            positions[positions == len(members)] = 0
            is_member |= members[positions] == hashes
            if isinstance(block, _StoredArray):
                block.release()
        return is_member

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Add these numbers; return for each whether it is new and is its first occurrence in `hashes`."""
        distinct, first = np.unique(hashes, return_index=True)
        is_new_distinct = ~self.has(distinct)
        is_new = np.zeros(len(hashes), dtype=np.bool_)
        is_new[first[is_new_distinct]] = True
        self._insert(distinct[is_new_distinct])
        return is_new

    def _insert(self, hashes: Hashes) -> None:
        if not len(hashes):
            return
        merged: Hashes | _StoredArray = hashes
        while self._sorted and len(_values(self._sorted[-1])) < 2 * len(_values(merged)):
            longer = self._sorted.pop()
            n_both = len(_values(longer)) + len(_values(merged))
            if self._scratch is not None and n_both > _STORED_FROM:
                merged = _StoredArray(_merged(_values(longer), _values(merged)), self._scratch)
            else:
                merged = np.concatenate([_values(longer), _values(merged)])
                merged.sort()
        self._sorted.append(merged)


def _values(block: Hashes | _StoredArray) -> Hashes:
    return block.values if isinstance(block, _StoredArray) else block


def _merged(first: Hashes, second: Hashes) -> Iterator[Hashes]:
    """Yield the sorted union of two sorted arrays in blocks; hashes are spread evenly, so the blocks are of a size."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    position = 0
    for start in range(0, len(longer), _BLOCK):
        block = longer[start : start + _BLOCK]
        is_last = start + _BLOCK >= len(longer)
        end = len(shorter) if is_last else int(np.searchsorted(shorter, block[-1], side="right"))
        merged = np.concatenate([block, shorter[position:end]])
        merged.sort(kind="stable")
        yield merged
        position = end
