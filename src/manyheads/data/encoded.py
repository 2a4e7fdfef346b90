"""`Encoded`: the rows of a corpus as token ids on disk, in as many columns as the task needs."""

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
TOO_LONG = "too long"

EncodeRows = Callable[[Sequence[Row]], Sequence[Sequence[Sequence[int]]]]  # returns, per column, the ids of each row


@dataclass(frozen=True)
class Encoded:
    """Rows on disk, as token ids and as text."""

    columns: tuple[Ragged, ...]
    texts: Texts
    rows: MappedArray  # the index of each row in `texts`

    @classmethod
    def write(cls, folder: Path, texts: Texts, encode: EncodeRows, max_length: int | None) -> "Counter[str]":
        """Encode texts into a folder in bounded memory; return the number of kept rows and the reasons of the others.

        A row is dropped if one of its columns is empty or has more ids than `max_length`.
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
                reasons = [_reason(row, max_length) for row in zip(*columns, strict=True)]
                kept = [index for index, reason in enumerate(reasons) if reason == KEPT]
                counts.update(reasons)
                for writer, column in zip(writers, columns, strict=True):
                    writer.extend(column if len(kept) == len(column) else [column[index] for index in kept])
                rows.write((np.array(kept, np.int64) + start).tobytes())
                start += len(chunk)
        return counts

    @classmethod
    def open(cls, folder: Path, texts: Texts) -> "Encoded":
        """Open what `write` stored for these texts."""
        columns: list[Ragged] = []
        while _column(folder, len(columns)).with_suffix(".values").exists():
            columns.append(Ragged(_column(folder, len(columns)), _IDS))
        return cls(tuple(columns), texts, MappedArray(folder / _ROWS, "int64"))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The number of ids of each row, plus one for EOS: an array of N × columns."""
        lengths = np.empty((len(self), len(self.columns)), dtype=np.int32)
        for index, column in enumerate(self.columns):
            lengths[:, index] = column.lengths
        lengths += 1
        return lengths

    def find_rows(self, boundaries: Sequence[int]) -> list[int]:
        """Return the index of each of these rows of the texts, or of the next kept row."""
        return np.searchsorted(self.rows.values, boundaries).tolist()

    def ids(self, column: int, indices: NDArray[np.int64]) -> list[NDArray[np.generic]]:
        """Return the ids of these rows in one column."""
        return [self.columns[column][index] for index in indices.tolist()]

    def text(self, field: int, index: int) -> str:
        """Return the text of one field of a row."""
        return self.texts.text(field, int(self.rows.values[index]))

    def release(self) -> None:
        """Release the memory of the pages read so far; called after every batch to keep resident memory small."""
        for column in (*self.columns, *self.texts.columns):
            column.release()
        self.rows.release()


def _column(folder: Path, index: int) -> Path:
    return folder / f"ids-{index}"


def _reason(row: Sequence[Sequence[int]], max_length: int | None) -> str:
    if not all(len(ids) for ids in row):
        return EMPTY
    return KEPT if max_length is None or max(map(len, row)) <= max_length else TOO_LONG
