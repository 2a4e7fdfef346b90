"""`Encoded`: the rows of a corpus as ids on disk, in as many columns as its task needs."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyheads.data.cleaning import EMPTY, KEPT
from manyheads.data.ragged import MappedArray, Ragged, RaggedWriter
from manyheads.data.texts import Texts, chunks
from manyheads.text.readers import Row

_IDS = "int32"
_ROWS = "rows"

EncodeRows = Callable[[Sequence[Row]], Sequence[Sequence[Sequence[int]]]]  # for each column, the ids of each row


@dataclass(frozen=True)
class Encoded:
    """Rows on disk, as ids and as text."""

    columns: tuple[Ragged, ...]
    texts: Texts
    rows: MappedArray  # which row of the texts each of these is

    @classmethod
    def write(cls, folder: Path, texts: Texts, encode: EncodeRows, longest: int) -> "Counter[str]":
        """Encode texts into a folder, in bounded memory; how many were kept, and why the others were not.

        A row is left out when one of its columns is empty, or has more ids than `longest`, unless that is 0.
        """
        folder.mkdir(parents=True, exist_ok=True)
        counts: Counter[str] = Counter({KEPT: 0})
        with ExitStack() as stack:
            writers: list[RaggedWriter] = []
            rows = stack.enter_context((folder / _ROWS).open("wb"))
            start = 0
            for chunk in chunks(texts):
                columns = encode(chunk)
                while len(writers) < len(columns):
                    writers.append(stack.enter_context(RaggedWriter(_column(folder, len(writers)), _IDS)))
                verdicts = [_verdict(row, longest) for row in zip(*columns, strict=True)]
                kept = [index for index, verdict in enumerate(verdicts) if verdict == KEPT]
                counts.update(verdicts)
                for writer, column in zip(writers, columns, strict=True):
                    writer.extend(column if len(kept) == len(column) else [column[index] for index in kept])
                rows.write((np.array(kept, np.int64) + start).tobytes())
                start += len(chunk)
        return counts

    @classmethod
    def open(cls, folder: Path, texts: Texts) -> "Encoded":
        """What `write` stored of these texts."""
        columns: list[Ragged] = []
        while _column(folder, len(columns)).with_suffix(".values").exists():
            columns.append(Ragged(_column(folder, len(columns)), _IDS))
        return cls(tuple(columns), texts, MappedArray(folder / _ROWS, "int64"))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> NDArray[np.int32]:
        """N × columns: the ids of each row, and one more for what ends it."""
        lengths = np.empty((len(self), len(self.columns)), dtype=np.int32)
        for index, column in enumerate(self.columns):
            lengths[:, index] = column.lengths
        lengths += 1
        return lengths

    def find_rows(self, boundaries: Sequence[int]) -> list[int]:
        """Where rows numbered so in the texts, or the next that were kept, stand here."""
        return np.searchsorted(self.rows.values, boundaries).tolist()

    def ids(self, column: int, indices: NDArray[np.int64]) -> list[NDArray[np.generic]]:
        """The ids of these rows in one column."""
        return [self.columns[column][index] for index in indices.tolist()]

    def text(self, field: int, index: int) -> str:
        """One field of a row as it was given."""
        return self.texts.text(field, int(self.rows.values[index]))

    def release(self) -> None:
        """Give the memory of what was read back to the system; after every batch, lest all be resident in time."""
        for column in (*self.columns, *self.texts.columns):
            column.release()
        self.rows.release()


def _column(folder: Path, index: int) -> Path:
    return folder / f"ids-{index}"


def _verdict(row: Sequence[Sequence[int]], longest: int) -> str:
    if not all(len(ids) for ids in row):
        return EMPTY
    return KEPT if not longest or max(map(len, row)) <= longest else "too long"
