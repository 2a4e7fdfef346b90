"""`chunks`: a stream of rows a few thousand at a time, for what is done faster to many at once."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from manyheads.text.readers import Row

R = TypeVar("R", bound=Row)

_ROWS_AT_ONCE = 10_000
_CHARACTERS_AT_ONCE = 10_000_000  # documents are long


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
