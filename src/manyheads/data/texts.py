"""`Texts`: rows of text on disk, read in order in bounded memory or by index; `chunks`: rows in lists."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from manyheads.data.ragged import Ragged, RaggedWriter
from manyheads.text.reading.readers import Row

R = TypeVar("R", bound=Row)

_UTF8 = "uint8"
_CHUNK_ROWS = 10_000
_CHUNK_CHARACTERS = 10_000_000  # limits the memory for long documents


@dataclass(frozen=True)
class Texts:
    """Rows of text on disk, one `Ragged` array of UTF-8 bytes per field."""

    columns: tuple[Ragged, ...]

    @classmethod
    def write(cls, folder: Path, rows: Iterable[Row], n_fields: int) -> None:
        """Store rows of `n_fields` fields in a folder, in bounded memory."""
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            columns = [stack.enter_context(RaggedWriter(_column(folder, n), _UTF8)) for n in range(n_fields)]
            for chunk in chunks(rows):
                for field, column in enumerate(columns):
                    column.extend_bytes([row[field].encode() for row in chunk])

    @classmethod
    def open(cls, folder: Path) -> "Texts":
        """Open what `write` stored."""
        columns: list[Ragged] = []
        while _column(folder, len(columns)).with_suffix(".values").exists():
            columns.append(Ragged(_column(folder, len(columns)), _UTF8))
        return cls(tuple(columns))

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def n_bytes(self) -> int:
        """The size of all texts in UTF-8."""
        return sum(len(column.values) for column in self.columns)

    def row_sizes(self) -> Iterator[int]:
        """Yield the number of bytes of each row."""
        for sizes in zip(*(column.length_blocks() for column in self.columns), strict=True):
            yield from np.sum(sizes, axis=0).tolist()

    def rows(self, start: int, end: int) -> list[Row]:
        """Return the rows from `start` up to, but not including, `end`."""
        columns = [[field.decode() for field in column.slice_as_bytes(start, end)] for column in self.columns]
        return list(zip(*columns, strict=True))

    def release(self) -> None:
        """See `MappedArray.release`."""
        for column in self.columns:
            column.release()

    def text(self, field: int, index: int) -> str:
        """Return one field of a row."""
        return self.columns[field][index].tobytes().decode()

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in order, in bounded memory."""
        for row in zip(*(column.each_as_bytes() for column in self.columns), strict=True):
            yield tuple(field.decode() for field in row)


def _column(folder: Path, field: int) -> Path:
    return folder / f"text-{field}"


def chunks(rows: Iterable[R]) -> Iterator[list[R]]:
    """Yield the rows in lists with a bounded number of rows and characters."""
    chunk: list[R] = []
    n_characters = 0
    for row in rows:
        chunk.append(row)
        n_characters += sum(map(len, row))
        if len(chunk) == _CHUNK_ROWS or n_characters >= _CHUNK_CHARACTERS:
            yield chunk
            chunk, n_characters = [], 0
    if chunk:
        yield chunk
