"""Does line n translate line n? A line lost on one side shifts all that follow, and nothing else tells of it.

Translations are long where their sources are long. Within a window of lines the lengths of the two sides go together
if they are aligned; after a slip they go together only when one side is moved by some lines.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.doctor.corpus_stats import CorpusStats
from manyheads.doctor.findings import Finding, share

_WINDOW = 100  # pairs
_MAX_OFFSET = 5  # lines
_MIN_CORRELATION = 0.35  # correlation that a moved side must reach, and by how much it must beat the unmoved one
_MARGIN = 0.3
_UNRELATED = 0.12  # below this the lengths have nothing to do with each other
_MIN_PAIRS = 500  # pairs


@dataclass(frozen=True)
class Misalignment:
    """From a pair on (counted from 0), the target stands so many lines too late; too early if negative."""

    start: int
    end: int
    offset: int


def check_alignment(stats: CorpusStats) -> Finding:
    """Whether the sides go together line by line."""
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
            f"{stats.name}: from about line {first.start + stats.source.first_line:,} to"
            f" {first.end - 1 + stats.source.first_line:,} the target stands {abs(first.offset)} line"
            f"{'s' * (abs(first.offset) > 1)} too {'late' if first.offset > 0 else 'early'}; {share(count, len(stats))} pairs"
            " do not belong together.",
            stats.examples([first.start + n for n in (20, 21, 22)]),
            f"Look around that line for one that is {'extra' if first.offset > 0 else 'missing'} in the target (or"
            f" {'missing' if first.offset > 0 else 'extra'} in the source), mend it, and all that follows fits again."
            " 从该行起源文与译文错位，请在附近查找多出或缺失的一行。",
        )
    if len(stats) < _MIN_PAIRS:
        return Finding(check, "good", f"{stats.name}: {len(stats):,} pairs are too little to tell by; no slip seen.")
    if correlation < _UNRELATED and lengths.std(axis=0).min() <= 0.2:
        return Finding(
            check, "good", f"{stats.name}: all lines are about as long, too little to tell by; no slip seen."
        )
    if correlation < _UNRELATED:
        return Finding(
            check,
            "bad" if correlation < _UNRELATED / 2 else "warning",
            f"{stats.name}: the lengths of source and target have nothing to do with each other"
            f" (correlation {correlation:.2f}).",
            stats.examples(range(3)),
            "Check that line n of one file translates line n of the other: one of them may be sorted or shuffled."
            " 两个文件的行可能没有对应，请检查是否被排序或打乱。",
        )
    return Finding(
        check,
        "good",
        f"{stats.name}: source and target lengths go together (correlation {correlation:.2f}), no slip seen.",
    )


def find_misalignments(lengths: NDArray[np.float64]) -> list[Misalignment]:
    """The stretches in which one side must be moved to fit the other; `lengths` is N × 2, on a logarithmic scale."""
    offsets = [_window_offset(lengths, start) for start in range(0, len(lengths) - _WINDOW + 1, _WINDOW)]
    misalignments: list[Misalignment] = []
    window = 0
    while window < len(offsets):
        offset, last = offsets[window], window
        while last + 1 < len(offsets) and offsets[last + 1] == offset:
            last += 1
        if offset and last > window:  # one window alone may be chance
            start = _change_point(lengths, (window - 1) * _WINDOW, (window + 1) * _WINDOW, offset)
            end = _change_point(lengths, last * _WINDOW, (last + 2) * _WINDOW, offset, back=True)
            misalignments.append(Misalignment(start, end, offset))
        window = last + 1
    return misalignments


def _window_offset(lengths: NDArray[np.float64], start: int) -> int:
    """By how many lines the target is late in a window; 0 where it is not, or where nobody can tell."""
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
    """Between two places, the pair from which the moved target fits better than the unmoved one (or no longer)."""
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
