"""`Encoded`: the rows of a corpus as token ids on disk, in as many columns as the task needs."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyheads.data.cleaning import KEPT
from manyheads.data.parallel_encoding import TOO_LONG, EncodeRows, encode_texts
from manyheads.data.ragged import MappedArray, Ragged, RaggedWriter
from manyheads.data.texts import Texts

__all__ = ["TOO_LONG", "EncodeRows", "Encoded"]

_IDS = "int32"
_ROWS = "rows"


@dataclass(frozen=True)
class Encoded:
    """Rows on disk, as token ids and as text."""

    columns: tuple[Ragged, ...]
    texts: Texts
    rows: MappedArray  # the index of each row in `texts`

    @classmethod
    def write(
        cls, folder: Path, texts: Texts, encode: EncodeRows, max_length: int | None, *, n_processes: int = 1
    ) -> "Counter[str]":
        """Encode texts into a folder in bounded memory; return the number of kept rows and the reasons of the others.

        A row is dropped if one of its columns is empty or has more ids than `max_length`. The files do not depend on
        the number of processes.
        """
        folder.mkdir(parents=True, exist_ok=True)
        counts: Counter[str] = Counter({KEPT: 0})
        with ExitStack() as stack:
            writers: list[RaggedWriter] = []
            rows = stack.enter_context((folder / _ROWS).open("wb"))
            ranges = stack.enter_context(closing(encode_texts(texts, encode, max_length, n_processes)))
            for own in ranges:
                while len(writers) < len(own.columns):
                    writers.append(stack.enter_context(RaggedWriter(_column(folder, len(writers)), _IDS)))
                for writer, (values, lengths) in zip(writers, own.columns, strict=True):
                    writer.extend_stored(values, lengths)
                rows.write(own.rows.tobytes())
                counts.update(own.counts)
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
