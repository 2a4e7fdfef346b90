"""Cleaning of training data: drops unusable rows and counts the reasons.

A row is dropped for the first reason that applies:

- EMPTY: a field is blank.
- BAD_ENCODING: it contains U+FFFD or NUL, which result from decoding with the wrong encoding.
- LENGTH_RATIO: one of its two texts is much longer than the other.
- LEAKED: one of its texts is also in the validation or test set. Each copy of a leaked row counts as leaked.
- DUPLICATE: the same row occurred before.

The task defines by `Fields` which fields are texts (rather than labels) and which may be blank.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyheads.data.hash_set import HashSet
from manyheads.data.texts import R, chunks
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.settings import raise_faults, type_faults
from manyheads.text.reading.readers import Row

KEPT = "kept"
EMPTY = "empty"
BAD_ENCODING = "bad encoding"
LENGTH_RATIO = "length ratio"
LEAKED = "in valid or test"
IN_TEST = "in test"  # of a validation row
DUPLICATE = "duplicate"

_RATIO_OFFSET = 20  # bytes added to both lengths, so that short texts may differ more
_MAX_BAD_LINES = 10
_MAX_BAD_SHARE = 0.01


@dataclass(frozen=True)
class Fields:
    """The fields of a row: the first `n_texts` are texts, the others are labels or tags of the texts."""

    n_fields: int = 2
    n_texts: int = 2
    may_be_blank: tuple[int, ...] = ()


PAIR = Fields()


@dataclass(frozen=True, kw_only=True)
class CleanSettings:
    """Which rows are dropped from the training data. Rows with a blank field always are."""

    max_ratio: float = 3.0  # maximum of (longer + 20) / (shorter + 20) in UTF-8 bytes; 0 allows any ratio
    drop_bad_encoding: bool = True  # rows with U+FFFD or NUL, and up to 1 % of lines that are not UTF-8
    drop_leaked: bool = True  # rows with a text of the validation or test set, ignoring case and white space
    drop_duplicates: bool = True  # all copies of a row but the first

    def __post_init__(self) -> None:
        faults = type_faults(self, "clean.")
        if not faults and not (self.max_ratio == 0 or self.max_ratio >= 1):
            faults.append(
                _("clean.max_ratio = {max_ratio} must be at least 1, or 0 for any ratio.", max_ratio=self.max_ratio)
            )
        raise_faults(faults)


def clean(
    rows: Iterable[R],
    settings: CleanSettings,
    counts: "Counter[str]",
    held_out: Iterable[Row] = (),
    fields: Fields = PAIR,
) -> Iterator[R]:
    """Yield the usable rows in order; add the reasons of dropped rows, and the number of KEPT rows, to `counts`.

    `held_out` are the validation and test rows. Memory grows by about 16 bytes per kept row.
    """
    return Cleaner(settings, held_out, fields).clean(rows, counts)


class TextSet:
    """The texts of some rows, field by field, ignoring case and white space, in 8 to 16 bytes of memory per text."""

    def __init__(self, rows: Iterable[Row], fields: Fields = PAIR) -> None:
        self._hashes = [HashSet() for _ in range(fields.n_texts)]
        for chunk in chunks(rows):
            for field, hashes in enumerate(self._hashes):
                hashes.add(_hashes(text for row in chunk if (text := _normalized(row[field]))))

    def has(self, rows: Sequence[Row]) -> NDArray[np.bool_]:
        """Return which of these rows have a text of the set; a blank text is never one."""
        is_known = np.zeros(len(rows), dtype=np.bool_)
        for field, hashes in enumerate(self._hashes):
            if len(hashes):
                is_known |= hashes.has(_hashes(_normalized(row[field]) for row in rows))
        return is_known

    def drop_from(self, rows: Iterable[R], reason: str, counts: "Counter[str]") -> Iterator[R]:
        """Yield the rows without a text of the set; count the others by this reason."""
        for chunk in chunks(rows):
            yield from _drop(chunk, self.has(chunk), reason, counts)


class Cleaner:
    """Cleans several corpora in sequence: a row of an earlier corpus is a duplicate in a later one."""

    def __init__(
        self,
        settings: CleanSettings,
        held_out: Iterable[Row] = (),
        fields: Fields = PAIR,
        scratch: Path | None = None,
    ) -> None:
        """`scratch` is a folder for the hashes of many rows; without one they are in memory."""
        self.settings = settings
        self.fields = fields
        self.seen = HashSet(scratch)
        self.held_out = TextSet(held_out if settings.drop_leaked else (), fields)

    def clean(self, rows: Iterable[R], counts: "Counter[str]") -> Iterator[R]:
        """Yield the usable rows; see the function `clean`."""
        for chunk in chunks(rows):
            kept = []
            for row in chunk:
                reason = rejection_reason(row, self.settings, self.fields)
                if reason is None:
                    kept.append(row)
                else:
                    counts[reason] += 1
            kept = _drop(kept, self.held_out.has(kept), LEAKED, counts)
            kept = _drop(kept, self._is_duplicate(kept), DUPLICATE, counts)
            counts[KEPT] += len(kept)
            yield from kept

    def _is_duplicate(self, rows: Sequence[Row]) -> NDArray[np.bool_]:
        if not self.settings.drop_duplicates:
            return np.zeros(len(rows), dtype=np.bool_)
        return ~self.seen.add(hash_rows(rows))


def _drop(rows: list[R], is_dropped: NDArray[np.bool_], reason: str, counts: "Counter[str]") -> list[R]:
    if not is_dropped.any():
        return rows
    counts[reason] += int(is_dropped.sum())
    return [row for row, dropped in zip(rows, is_dropped.tolist(), strict=True) if not dropped]


def rejection_reason(row: Row, settings: CleanSettings, fields: Fields = PAIR) -> str | None:
    """Return the reason to drop a row that depends on the row alone (not LEAKED or DUPLICATE), or None."""
    for index, field in enumerate(row):
        if (not field or field.isspace()) and index not in fields.may_be_blank:
            return EMPTY
    if settings.drop_bad_encoding:
        for field in row:
            if "\0" in field or "\ufffd" in field:
                return BAD_ENCODING
    if settings.max_ratio and fields.n_texts == 2 and _ratio(row[0], row[1]) > settings.max_ratio:
        return LENGTH_RATIO
    return None


def _ratio(source: str, target: str) -> float:
    one, other = _n_bytes(source) + _RATIO_OFFSET, _n_bytes(target) + _RATIO_OFFSET
    return one / other if one > other else other / one


def _n_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def tolerate_bad_lines(read: Callable[[Callable[[DataError], None]], Iterable[R]]) -> Iterator[R]:
    """Yield the rows of `read(on_bad)`, tolerating a few lines that are not UTF-8.

    If more than ten lines and more than 1 % of all rows are invalid, the whole file is most likely in another encoding:
    after the last row, the error of the first invalid line is raised.
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
        if first:  # a wrong encoding is the likely cause of the other error
            raise first[0] from None
        raise
    if n_bad > _MAX_BAD_LINES and n_bad > _MAX_BAD_SHARE * n_rows:
        raise first[0]


def hash_rows(rows: Sequence[Row]) -> NDArray[np.uint64]:
    """Return a hash of each row."""
    # The lengths distinguish ("a", "bc") from ("ab", "c").
    if rows and len(rows[0]) == 2:
        return _hashes(f"{len(row[0])} {row[0]}{row[1]}" for row in rows)
    return _hashes(" ".join([*map(str, map(len, row[:-1])), "".join(row)]) for row in rows)


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Return 8 bytes of each text's BLAKE2b; a collision among 20 million texts has probability 1 in 90,000."""
    return np.frombuffer(b"".join([blake2b(text.encode(), digest_size=8).digest() for text in texts]), np.uint64)


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())
