"""`Texts`: rows of text as UTF-8 on disk, read in order in bounded memory or one by one."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from manyheads.data.ragged import Ragged, RaggedWriter
from manyheads.text.readers import Row

R = TypeVar("R", bound=Row)

_UTF8 = "uint8"
_ROWS_AT_ONCE = 10_000
_CHARACTERS_AT_ONCE = 10_000_000  # documents are long


@dataclass(frozen=True)
class Texts:
    """Rows of so many fields on disk."""

    columns: tuple[Ragged, ...]

    @classmethod
    def write(cls, folder: Path, rows: Iterable[Row], n_fields: int) -> None:
        """Store rows of so many fields in a folder as they come."""
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            columns = [stack.enter_context(RaggedWriter(_column(folder, n), _UTF8)) for n in range(n_fields)]
            for chunk in chunks(rows):
                for field, column in enumerate(columns):
                    column.extend_bytes([row[field].encode() for row in chunk])

    @classmethod
    def open(cls, folder: Path) -> "Texts":
        """What `write` stored."""
        columns: list[Ragged] = []
        while _column(folder, len(columns)).with_suffix(".values").exists():
            columns.append(Ragged(_column(folder, len(columns)), _UTF8))
        return cls(tuple(columns))

    def __len__(self) -> int:
        return len(self.columns[0])

    def text(self, field: int, index: int) -> str:
        """One field of a row as it was given."""
        return self.columns[field][index].tobytes().decode()

    def __iter__(self) -> Iterator[Row]:
        """Each in turn, in bounded memory."""
        for row in zip(*(column.each_as_bytes() for column in self.columns), strict=True):
            yield tuple(field.decode() for field in row)


def _column(folder: Path, field: int) -> Path:
    return folder / f"text-{field}"


def chunks(rows: Iterable[R]) -> Iterator[list[R]]:
    """Lists in the order of the stream, bounded in number and in characters; a longer row ends its list."""
    chunk: list[R] = []
    n_characters = 0
    for row in rows:
        chunk.append(row)
        n_characters += sum(map(len, row))
        if len(chunk) == _ROWS_AT_ONCE or n_characters >= _CHARACTERS_AT_ONCE:
            yield chunk
            chunk, n_characters = [], 0
    if chunk:
        yield chunk
