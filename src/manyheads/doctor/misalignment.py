"""Misalignment: a line missing on one side shifts all that follow.

Long sources have long translations. In a window of aligned lines the lengths of both sides correlate; after a missing
line they correlate only when one side is moved by some lines.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.doctor.corpus_stats import CorpusStats
from manyheads.messages import _, _n
from manyheads.tasks.findings import Finding, share

_WINDOW = 100  # pairs
_MAX_OFFSET = 5  # lines
_MIN_CORRELATION = 0.35  # of the moved side
_MARGIN = 0.3  # by which the moved side must exceed the unmoved one
_UNRELATED = 0.12  # a lower correlation means that the lengths are unrelated
_MIN_PAIRS = 500  # pairs


@dataclass(frozen=True)
class Misalignment:
    """In pairs start to end (counted from 0), the target is `offset` lines late; early if negative."""

    start: int
    end: int
    offset: int


def check_alignment(stats: CorpusStats) -> Finding:
    """Check that line n of the target translates line n of the source."""
    check = "alignment"
    lengths = np.log1p(stats.n_bytes.astype(np.float64))
    misalignments = find_misalignments(lengths)
    correlation = _correlation(lengths[:, 0], lengths[:, 1])
    if misalignments:
        first = misalignments[0]
        count = sum(part.end - part.start for part in misalignments)
        return Finding(
            check,
            "bad",
            _misalignment_message(stats, first, count),
            stats.examples([first.start + n for n in (20, 21, 22)]),
            _(
                "Near that line, a line is extra in the target (or missing in the source). Fix it, and the rest is "
                "aligned again."
            )
            if first.offset > 0
            else _(
                "Near that line, a line is missing in the target (or extra in the source). Fix it, and the rest is "
                "aligned again."
            ),
        )
    if len(stats) < _MIN_PAIRS:
        message = _(
            "{name}: {n_pairs:,} pairs are too few to be sure; no misalignment found.",
            name=stats.name,
            n_pairs=len(stats),
        )
        return Finding(check, "good", message)
    if correlation < _UNRELATED and lengths.std(axis=0).min() <= 0.2:
        message = _(
            "{name}: all lines have about the same length, so this cannot be checked; no misalignment found.",
            name=stats.name,
        )
        return Finding(check, "good", message)
    if correlation < _UNRELATED:
        return Finding(
            check,
            "bad" if correlation < _UNRELATED / 2 else "warning",
            _(
                "{name}: the lengths of source and target are unrelated (correlation {correlation:.2f}).",
                name=stats.name,
                correlation=correlation,
            ),
            stats.examples(range(3)),
            _("Check that line n of one file translates line n of the other: one of them may be sorted or shuffled."),
        )
    return Finding(
        check,
        "good",
        _(
            "{name}: source and target lengths correlate ({correlation:.2f}); no misalignment found.",
            name=stats.name,
            correlation=correlation,
        ),
    )


def _misalignment_message(stats: CorpusStats, first: Misalignment, count: int) -> str:
    start, end = first.start + stats.source.first_line, first.end - 1 + stats.source.first_line
    lines = abs(first.offset)
    offset = (
        _n("1 line too late", "{n} lines too late", lines)
        if first.offset > 0
        else _n("1 line too early", "{n} lines too early", lines)
    )
    return _(
        "{name}: from about line {start:,} to {end:,} the target is {offset}; {counted} pairs are misaligned.",
        name=stats.name,
        start=start,
        end=end,
        offset=offset,
        counted=share(count, len(stats)),
    )


def find_misalignments(lengths: NDArray[np.float64]) -> list[Misalignment]:
    """Return the stretches in which one side must be moved to fit; `lengths` is N × 2, on a logarithmic scale."""
    offsets = [_window_offset(lengths, start) for start in range(0, len(lengths) - _WINDOW + 1, _WINDOW)]
    misalignments: list[Misalignment] = []
    window = 0
    while window < len(offsets):
        offset, last = offsets[window], window
        while last + 1 < len(offsets) and offsets[last + 1] == offset:
            last += 1
        if offset and last > window:  # a single window may be chance
            start = _change_point(lengths, (window - 1) * _WINDOW, (window + 1) * _WINDOW, offset)
            end = _change_point(lengths, last * _WINDOW, (last + 2) * _WINDOW, offset, back=True)
            misalignments.append(Misalignment(start, end, offset))
        window = last + 1
    return misalignments


def _window_offset(lengths: NDArray[np.float64], start: int) -> int:
    """Return by how many lines the target is late in a window; 0 if it is not, or if that is unclear."""
    source = lengths[start : start + _WINDOW, 0]
    scores = {}
    for offset in range(-_MAX_OFFSET, _MAX_OFFSET + 1):
        first = start + offset
        if first >= 0 and first + _WINDOW <= len(lengths):
            scores[offset] = _correlation(source, lengths[first : first + _WINDOW, 1])
    best = max(scores, key=lambda offset: scores[offset])
    is_clear = scores[best] >= _MIN_CORRELATION and scores[best] >= scores[0] + _MARGIN
    return best if is_clear else 0


def _change_point(lengths: NDArray[np.float64], low: int, high: int, offset: int, *, back: bool = False) -> int:
    """Return the pair, between two bounds, from which the moved target fits better (with `back`: fits no longer)."""
    low, high = max(low, max(0, -offset)), min(high, len(lengths) - max(0, offset))
    if back and high == len(lengths) - max(0, offset):
        return len(lengths)
    center = np.median(lengths[:, 1] - lengths[:, 0])
    rows = np.arange(low, high)
    stays = np.abs(lengths[rows, 1] - lengths[rows, 0] - center)
    moves = np.abs(lengths[rows + offset, 1] - lengths[rows, 0] - center)
    gain = (moves - stays) if not back else (stays - moves)
    return int(low + np.argmax(np.concatenate([[0.0], np.cumsum(gain)])))


def _correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    left, right = left - left.mean() if len(left) else left, right - right.mean() if len(right) else right
    spread = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / spread if spread > 0 else 0.0
