"""`chunks`: a stream a few thousand at a time, for what is done faster to many at once."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

PAIRS_AT_ONCE = 10_000


def chunks(stream: Iterable[T], size: int = PAIRS_AT_ONCE) -> Iterator[list[T]]:
    """Lists of `size` in the order of the stream; the last may be shorter."""
    iterator = iter(stream)
    while chunk := list(islice(iterator, size)):
        yield chunk
