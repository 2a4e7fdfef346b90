"""Cleaning: which pairs are worth learning from, and why the others are not.

A pair is left out for the first of these reasons that holds: it has a blank side (EMPTY); it holds U+FFFD or NUL,
the marks of text decoded wrongly (BAD_ENCODING); one side is much longer than the other (LENGTH_RATIO); one of its
sides also stands in the valid or test set (LEAKED); the very same pair came before (DUPLICATE). A leaked pair that
occurs twice is leaked twice, never a duplicate.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from manyheads.data.chunks import chunks
from manyheads.errors import DataError
from manyheads.settings import misfits, refuse

KEPT = "kept"
EMPTY = "empty"
BAD_ENCODING = "bad encoding"
LENGTH_RATIO = "length ratio"
LEAKED = "in valid or test"
DUPLICATE = "duplicate"

_SPARED = 20  # bytes added to both sides, so that short pairs may differ more
_MOST_BAD_LINES = 10
_MOST_BAD_SHARE = 0.01

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class CleanSettings:
    """Which pairs are left out of training. Pairs with a blank side always are; the built-in corpus is clean."""

    max_ratio: float = 3.0  # (longer + 20) / (shorter + 20) in bytes of UTF-8 may not exceed this; 0 is any
    drop_bad_encoding: bool = True  # text with U+FFFD or NUL, and up to 1 % of lines that are not UTF-8
    drop_leaked: bool = True  # a side that, but for case and white space, also stands in the valid or test set
    drop_duplicates: bool = True  # the second and later copies of a pair

    def __post_init__(self) -> None:
        faults = misfits(self, "clean.")
        if not faults and not (self.max_ratio == 0 or self.max_ratio >= 1):
            faults.append(f"clean.max_ratio = {self.max_ratio} must be at least 1, or 0 for any ratio.")
        refuse(faults)


def clean(
    pairs: Iterable[Pair], settings: CleanSettings, counts: "Counter[str]", held_out: Iterable[Pair] = ()
) -> Iterator[Pair]:
    """The pairs worth learning from, as they come; `counts` is told why others are not, and how many are KEPT.

    `held_out` are the valid and test pairs. Memory grows by about 16 bytes a kept pair.
    """
    return Cleaner(settings, held_out).clean(pairs, counts)


class Cleaner:
    """`clean` for several corpora in a row: what one of them had is a duplicate in the next."""

    def __init__(self, settings: CleanSettings, held_out: Iterable[Pair] = ()) -> None:
        self.settings = settings
        self.seen = HashSet()
        self.held_out = (HashSet(), HashSet())
        for chunk in chunks(held_out if settings.drop_leaked else ()):
            for side, known in enumerate(self.held_out):
                known.add(_hashes(_normalised(pair[side]) for pair in chunk))

    def clean(self, pairs: Iterable[Pair], counts: "Counter[str]") -> Iterator[Pair]:
        """The pairs worth learning from; see the function `clean`."""
        for chunk in chunks(pairs):
            kept = []
            for pair in chunk:
                reason = fault(pair, self.settings)
                if reason is None:
                    kept.append(pair)
                else:
                    counts[reason] += 1
            kept = self._without(kept, self._leaked(kept), LEAKED, counts)
            kept = self._without(kept, self._repeated(kept), DUPLICATE, counts)
            counts[KEPT] += len(kept)
            yield from kept

    def _leaked(self, pairs: list[Pair]) -> NDArray[np.bool_]:
        leaked = np.zeros(len(pairs), dtype=np.bool_)
        for side, known in enumerate(self.held_out):
            if len(known):
                leaked |= known.has(_hashes(_normalised(pair[side]) for pair in pairs))
        return leaked

    def _repeated(self, pairs: list[Pair]) -> NDArray[np.bool_]:
        if not self.settings.drop_duplicates:
            return np.zeros(len(pairs), dtype=np.bool_)
        # The length keeps ("a", "bc") apart from ("ab", "c").
        return ~self.seen.add(_hashes(f"{len(source)} {source}{target}" for source, target in pairs))

    @staticmethod
    def _without(pairs: list[Pair], is_out: NDArray[np.bool_], reason: str, counts: "Counter[str]") -> list[Pair]:
        if not is_out.any():
            return pairs
        counts[reason] += int(is_out.sum())
        return [pair for pair, out in zip(pairs, is_out.tolist(), strict=True) if not out]


def fault(pair: Pair, settings: CleanSettings) -> str | None:
    """Why a pair is left out, as far as it can be told from the pair alone; None if it is not."""
    source, target = pair
    if not source or not target or source.isspace() or target.isspace():
        return EMPTY
    if settings.drop_bad_encoding and ("\ufffd" in source or "\ufffd" in target or "\0" in source or "\0" in target):
        return BAD_ENCODING
    if settings.max_ratio and _ratio(source, target) > settings.max_ratio:
        return LENGTH_RATIO
    return None


def _ratio(source: str, target: str) -> float:
    one, other = len(source.encode()) + _SPARED, len(target.encode()) + _SPARED
    return one / other if one > other else other / one


def bear_bad_lines(read: Callable[[Callable[[DataError], None]], Iterable[Pair]]) -> Iterator[Pair]:
    """What `read(on_bad)` yields, where `on_bad` is told of each line that is not UTF-8 but read with U+FFFD.

    A few are borne. When more than ten, and more than 1 % of all, are bad, the whole file is most likely in another
    encoding: then, after the last pair, the error of the first bad line is raised.
    """
    first: list[DataError] = []
    n_bad = n_pairs = 0

    def on_bad(error: DataError) -> None:
        nonlocal n_bad
        n_bad += 1
        if not first:
            first.append(error)

    try:
        for pair in read(on_bad):
            n_pairs += 1
            yield pair
    except DataError:
        if first:  # what cannot be decoded has no columns either
            raise first[0] from None
        raise
    if n_bad > _MOST_BAD_LINES and n_bad > _MOST_BAD_SHARE * n_pairs:
        raise first[0]


class HashSet:
    """A set of 64-bit numbers that only grows, in 8 bytes each and at most 16 while it does.

    It is a few sorted arrays, each at least twice as long as the next: a new one is merged with those before it
    that are no longer than itself, so that every number is moved only log n times.
    """

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.uint64]] = []

    def __len__(self) -> int:
        return sum(map(len, self._sorted))

    def has(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether each of these is in the set."""
        found = np.zeros(len(hashes), dtype=np.bool_)
        for known in self._sorted:
            places = np.searchsorted(known, hashes)
            places[places == len(known)] = 0
            found |= known[places] == hashes
        return found

    def add(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Put these into the set; whether each is new to it, and the first of its kind here."""
        distinct, first = np.unique(hashes, return_index=True)
        is_new = ~self.has(distinct)
        answer = np.zeros(len(hashes), dtype=np.bool_)
        answer[first[is_new]] = True
        self._insert(distinct[is_new])
        return answer

    def _insert(self, hashes: NDArray[np.uint64]) -> None:
        if not len(hashes):
            return
        while self._sorted and len(self._sorted[-1]) < 2 * len(hashes):
            hashes = np.concatenate([self._sorted.pop(), hashes])
            hashes.sort()
        self._sorted.append(hashes)


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """8 bytes of each text's BLAKE2b: among 20 million texts two share theirs once in 90,000 corpora."""
    return np.frombuffer(b"".join([blake2b(text.encode(), digest_size=8).digest() for text in texts]), np.uint64)


def _normalised(text: str) -> str:
    return " ".join(text.casefold().split())
