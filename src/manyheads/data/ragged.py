"""`Ragged`: sequences of different lengths in one flat memory-mapped file."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Ragged:
    """Many sequences of numbers, read from disk only where touched."""

    def __init__(self, path: Path, dtype: str) -> None:
        """Open what a `RaggedWriter` stored at `path`."""
        self.offsets: NDArray[np.int64] = np.load(path.with_suffix(".offsets.npy"), allow_pickle=False)
        self.values: NDArray[np.generic] = np.empty(0, dtype)
        if self.offsets[-1]:  # an empty file cannot be mapped
            self.values = np.memmap(path.with_suffix(".values"), dtype=dtype, mode="r")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.generic]:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How long each sequence is."""
        return np.diff(self.offsets)


class RaggedWriter:
    """Stores sequences as they come, in bounded memory, in two files: `path` ending in .values and .offsets.npy."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.path = path
        self.dtype = dtype
        self.offsets = [0]

    def append(self, sequence: ArrayLike) -> None:
        """Store one more sequence."""
        array = np.asarray(sequence, dtype=self.dtype)
        self._stream.write(array.tobytes())
        self.offsets.append(self.offsets[-1] + len(array))

    def __enter__(self) -> "RaggedWriter":
        self._stream = self.path.with_suffix(".values").open("wb")
        return self

    def __exit__(self, *reason: object) -> None:
        self._stream.close()
        np.save(self.path.with_suffix(".offsets.npy"), np.array(self.offsets, dtype=np.int64))
