"""Hold rows out of training for validation, where the recipe names no validation set.

One row in 20 is held out (or `data.valid_fraction`), at most 1,000. Of few rows more are: at least 50, but never more
than one in five, since a handful of rows scores nothing. Rows with labels are held out label by label, in proportion:
a label with at least five rows is validated, and every label keeps a row to train on. The choice is made by the
checksums of the rows: it is the same on every machine and, for rows with labels, whatever their order.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from zlib import crc32

from manyheads.data.cleaning import hash_rows
from manyheads.data.hash_set import HashSet
from manyheads.data.texts import chunks
from manyheads.text.reading.readers import Row

_MAX_ROWS = 1000
_MIN_ROWS = 50
_LARGEST_SHARE = 5  # one in five
_ONE_IN = 20
_ENOUGH = 5  # rows of a label, of which one can be spared

Stratum = tuple[str, ...]  # the labels of a row


def hold_out(rows: Iterable[Row], fraction: float | None = None) -> dict[Row, None]:
    """Return the rows to validate on, of rows without labels; `fraction` is exact up to the rounding of its inverse.

    They are the first distinct rows whose checksum is divisible by 20. A large file is not read to its end.
    """
    one_in = round(1 / fraction) if fraction else _ONE_IN
    drawn: dict[Row, None] = {}
    others: dict[Row, None] = {}  # the first rows that were not drawn: of few rows, some are needed
    for row in rows:
        if _checksum(row) % one_in == 0:
            drawn[row] = None
            if len(drawn) == _MAX_ROWS:
                return drawn
        elif len(others) < _LARGEST_SHARE * _MIN_ROWS:
            others[row] = None
    # Copies do not count: all copies of a row are held out with it.
    n_few = (len(drawn) + len(others)) // _LARGEST_SHARE
    n_missing = 0 if fraction else min(_MIN_ROWS, n_few) - len(drawn)
    return drawn | dict.fromkeys(heapq.nsmallest(max(0, n_missing), others, key=_checksum))


def hold_out_by_label(
    rows: Iterable[Row], stratum_of: Callable[[Row], Stratum], fraction: float | None = None
) -> dict[Row, None]:
    """Return the rows to validate on, of rows with labels, in the order of their checksums."""
    strata: dict[Stratum, list[tuple[int, Row]]] = {}  # heaps of the rows with the smallest checksums
    counts: Counter[Stratum] = Counter()
    seen = HashSet()
    for row in _distinct(rows, seen):
        stratum, checksum = stratum_of(row), _checksum(row)
        counts[stratum] += 1
        heap = strata.setdefault(stratum, [])
        heapq.heappush(heap, (-checksum, row))
        if len(heap) > _MAX_ROWS:
            heapq.heappop(heap)
    quotas = _quotas(counts, fraction)
    chosen = [pair for stratum, heap in strata.items() for pair in heapq.nlargest(quotas[stratum], heap)]
    return dict.fromkeys(row for _, row in sorted(chosen, reverse=True))


def _distinct(rows: Iterable[Row], seen: HashSet) -> Iterator[Row]:
    """Yield the first copy of each row, in 8 to 16 bytes of memory per row."""
    for chunk in chunks(rows):
        for row, is_new in zip(chunk, seen.add(hash_rows(chunk)).tolist(), strict=True):
            if is_new:
                yield row


def assign_folds(rows: Iterable[Row], stratum_of: Callable[[Row], Stratum], n_folds: int) -> dict[Row, int]:
    """Return the fold of each distinct row, from 1 to `n_folds`; the rows of a label are spread over all folds."""
    in_order = sorted(dict.fromkeys(rows), key=lambda row: (stratum_of(row), _checksum(row), row))
    return {row: 1 + index % n_folds for index, row in enumerate(in_order)}


def _quotas(counts: "Counter[Stratum]", fraction: float | None) -> dict[Stratum, int]:
    """Return how many rows of each stratum are held out."""
    total = counts.total()
    default = max(total // _ONE_IN, min(_MIN_ROWS, total // _LARGEST_SHARE))
    size = min(_MAX_ROWS, round(fraction * total) if fraction else default)
    ideal = {stratum: size * count / max(1, total) for stratum, count in counts.items()}
    quotas = {
        stratum: min(count - 1, max(int(ideal[stratum]), 1 if count >= _ENOUGH else 0))
        for stratum, count in counts.items()
    }
    kept = Counter[str]()  # training rows of each label
    for stratum, count in counts.items():
        kept.update(dict.fromkeys(stratum, count - quotas[stratum]))
    n_left = size - sum(quotas.values())
    # What rounding down left over goes to the largest remainders. Of a set of labels that occurs once, the only row may
    # be held out if other sets keep its labels.
    for stratum in sorted(counts, key=lambda stratum: (quotas[stratum] - ideal[stratum], *_tie_break(stratum))):
        may_lose = quotas[stratum] < counts[stratum] - (len(stratum) < 2) and all(kept[label] > 1 for label in stratum)
        if n_left > 0 and may_lose:
            quotas[stratum] += 1
            kept.subtract(stratum)
            n_left -= 1
    return quotas


def _tie_break(stratum: Stratum) -> tuple[int, Stratum]:
    """Sets of labels are drawn by checksum: the first by name would all have the same labels."""
    return _checksum(stratum) if len(stratum) > 1 else 0, stratum


def _checksum(row: Row) -> int:
    return crc32("\n".join(row).encode())
