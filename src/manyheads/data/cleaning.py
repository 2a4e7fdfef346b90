"""Cleaning: which rows are worth learning from, and why the others are not.

A row is left out for the first of these reasons that holds: a field of it is blank (EMPTY); it holds U+FFFD or NUL,
the marks of text decoded wrongly (BAD_ENCODING); one of two texts is much longer than the other (LENGTH_RATIO); one
of its texts also stands in the valid or test set (LEAKED); the very same row came before (DUPLICATE). A leaked row
that occurs twice is leaked twice, never a duplicate. Which fields are texts (and not labels, which all rows share)
and which may be blank is the task's to say: `Fields`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from manyheads.data.texts import R, chunks
from manyheads.errors import DataError
from manyheads.settings import raise_faults, type_faults
from manyheads.text.readers import Row

KEPT = "kept"
EMPTY = "empty"
BAD_ENCODING = "bad encoding"
LENGTH_RATIO = "length ratio"
LEAKED = "in valid or test"
DUPLICATE = "duplicate"

_SPARED = 20  # bytes added to both sides, so that short pairs may differ more
_MOST_BAD_LINES = 10
_MOST_BAD_SHARE = 0.01


@dataclass(frozen=True)
class Fields:
    """What the cleaner has to know of a row's fields: the first `n_texts` are texts, the others tell about them."""

    n_fields: int = 2
    n_texts: int = 2
    may_be_blank: tuple[int, ...] = ()


PAIR = Fields()


@dataclass(frozen=True, kw_only=True)
class CleanSettings:
    """Which rows are left out of training. Blank ones always are; the built-in corpus is clean."""

    max_ratio: float = 3.0  # (longer + 20) / (shorter + 20) in bytes of UTF-8 may not exceed this; 0 is any
    drop_bad_encoding: bool = True  # text with U+FFFD or NUL, and up to 1 % of lines that are not UTF-8
    drop_leaked: bool = True  # a text that, but for case and white space, also stands in the valid or test set
    drop_duplicates: bool = True  # the second and later copies of a row

    def __post_init__(self) -> None:
        faults = type_faults(self, "clean.")
        if not faults and not (self.max_ratio == 0 or self.max_ratio >= 1):
            faults.append(f"clean.max_ratio = {self.max_ratio} must be at least 1, or 0 for any ratio.")
        raise_faults(faults)


def clean(
    rows: Iterable[R],
    settings: CleanSettings,
    counts: "Counter[str]",
    held_out: Iterable[Row] = (),
    fields: Fields = PAIR,
) -> Iterator[R]:
    """The rows worth learning from, as they come; `counts` is told why others are not, and how many are KEPT.

    `held_out` are the valid and test rows. Memory grows by about 16 bytes a kept row.
    """
    return Cleaner(settings, held_out, fields).clean(rows, counts)


class Cleaner:
    """`clean` for several corpora in a row: what one of them had is a duplicate in the next."""

    def __init__(self, settings: CleanSettings, held_out: Iterable[Row] = (), fields: Fields = PAIR) -> None:
        self.settings = settings
        self.fields = fields
        self.seen = HashSet()
        self.held_out = [HashSet() for _ in range(fields.n_texts)]
        for chunk in chunks(held_out if settings.drop_leaked else ()):
            for field, known in enumerate(self.held_out):
                known.add(_hashes(_normalized(row[field]) for row in chunk))

    def clean(self, rows: Iterable[R], counts: "Counter[str]") -> Iterator[R]:
        """The rows worth learning from; see the function `clean`."""
        for chunk in chunks(rows):
            kept = []
            for row in chunk:
                reason = rejection_reason(row, self.settings, self.fields)
                if reason is None:
                    kept.append(row)
                else:
                    counts[reason] += 1
            kept = self._without(kept, self._leaked(kept), LEAKED, counts)
            kept = self._without(kept, self._repeated(kept), DUPLICATE, counts)
            counts[KEPT] += len(kept)
            yield from kept

    def _leaked(self, rows: Sequence[Row]) -> NDArray[np.bool_]:
        leaked = np.zeros(len(rows), dtype=np.bool_)
        for field, known in enumerate(self.held_out):
            if len(known):
                leaked |= known.has(_hashes(_normalized(row[field]) for row in rows))
        return leaked

    def _repeated(self, rows: Sequence[Row]) -> NDArray[np.bool_]:
        if not self.settings.drop_duplicates:
            return np.zeros(len(rows), dtype=np.bool_)
        # The lengths keep ("a", "bc") apart from ("ab", "c").
        return ~self.seen.add(_hashes(" ".join([*map(str, map(len, row[:-1])), "".join(row)]) for row in rows))

    @staticmethod
    def _without(rows: list[R], is_out: NDArray[np.bool_], reason: str, counts: "Counter[str]") -> list[R]:
        if not is_out.any():
            return rows
        counts[reason] += int(is_out.sum())
        return [row for row, out in zip(rows, is_out.tolist(), strict=True) if not out]


def rejection_reason(row: Row, settings: CleanSettings, fields: Fields = PAIR) -> str | None:
    """Why a row is left out, as far as it can be told from the row alone; None if it is not."""
    for index, field in enumerate(row):
        if (not field or field.isspace()) and index not in fields.may_be_blank:
            return EMPTY
    if settings.drop_bad_encoding and any("\ufffd" in field or "\0" in field for field in row):
        return BAD_ENCODING
    if settings.max_ratio and fields.n_texts == 2 and _ratio(row[0], row[1]) > settings.max_ratio:
        return LENGTH_RATIO
    return None


def _ratio(source: str, target: str) -> float:
    one, other = len(source.encode()) + _SPARED, len(target.encode()) + _SPARED
    return one / other if one > other else other / one


def tolerate_bad_lines(read: Callable[[Callable[[DataError], None]], Iterable[R]]) -> Iterator[R]:
    """What `read(on_bad)` yields, where `on_bad` is told of each line that is not UTF-8 but read with U+FFFD.

    A few are borne. When more than ten, and more than 1 % of all, are bad, the whole file is most likely in another
    encoding: then, after the last row, the error of the first bad line is raised.
    """
    first: list[DataError] = []
    n_bad = n_rows = 0

    def on_bad(error: DataError) -> None:
        nonlocal n_bad
        n_bad += 1
        if not first:
            first.append(error)

    try:
        for row in read(on_bad):
            n_rows += 1
            yield row
    except DataError:
        if first:  # what cannot be decoded has no columns either
            raise first[0] from None
        raise
    if n_bad > _MOST_BAD_LINES and n_bad > _MOST_BAD_SHARE * n_rows:
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
            positions = np.searchsorted(known, hashes)
            positions[positions == len(known)] = 0
            found |= known[positions] == hashes
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


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())
