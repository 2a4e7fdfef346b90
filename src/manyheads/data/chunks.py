"""`chunks`: a stream of pairs a few thousand at a time, for what is done faster to many at once."""

from collections.abc import Iterable, Iterator

Pair = tuple[str, str]

_PAIRS_AT_ONCE = 10_000
_CHARACTERS_AT_ONCE = 10_000_000  # pairs of documents are long


def chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Lists in the order of the stream, bounded in number and in characters; a longer pair ends its list."""
    chunk: list[Pair] = []
    n_characters = 0
    for pair in pairs:
        chunk.append(pair)
        n_characters += len(pair[0]) + len(pair[1])
        if len(chunk) == _PAIRS_AT_ONCE or n_characters >= _CHARACTERS_AT_ONCE:
            yield chunk
            chunk, n_characters = [], 0
    if chunk:
        yield chunk
