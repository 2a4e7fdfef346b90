"""Does line n translate line n? A line lost on one side shifts all that follow, and nothing else tells of it.

Translations are long where their sources are long. Within a window of lines the lengths of the two sides go together
if they are aligned; after a slip they go together only when one side is moved by some lines.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.doctor.findings import Finding, share
from manyheads.doctor.survey import Survey

_WINDOW = 100  # pairs
_FARTHEST = 5  # lines
_LEAST = 0.35  # correlation that a moved side must reach, and by how much it must beat the unmoved one
_MARGIN = 0.3
_UNRELATED = 0.12  # below this the lengths have nothing to do with each other
_ENOUGH = 500  # pairs


@dataclass(frozen=True)
class Slip:
    """From a pair on (counted from 0), the target stands so many lines too late; too early if negative."""

    start: int
    end: int
    by: int


def check_alignment(found: Survey) -> Finding:
    """Whether the sides go together line by line."""
    check = "alignment"
    lengths = np.log1p(found.n_bytes.astype(np.float64))
    slips = find_slips(lengths)
    together = _correlation(lengths[:, 0], lengths[:, 1])
    if slips:
        first = slips[0]
        count = sum(slip.end - slip.start for slip in slips)
        return Finding(
            check,
            "bad",
            f"{found.name}: from about line {first.start + found.source.first_line:,} to"
            f" {first.end - 1 + found.source.first_line:,} the target stands {abs(first.by)} line"
            f"{'s' * (abs(first.by) > 1)} too {'late' if first.by > 0 else 'early'}; {share(count, len(found))} pairs"
            " do not belong together.",
            found.examples([first.start + offset for offset in (20, 21, 22)]),
            f"Look around that line for one that is {'extra' if first.by > 0 else 'missing'} in the target (or"
            f" {'missing' if first.by > 0 else 'extra'} in the source), mend it, and all that follows fits again."
            " 从该行起源文与译文错位，请在附近查找多出或缺失的一行。",
        )
    if len(found) < _ENOUGH:
        return Finding(check, "good", f"{found.name}: {len(found):,} pairs are too little to tell by; no slip seen.")
    if together < _UNRELATED and lengths.std(axis=0).min() <= 0.2:
        return Finding(
            check, "good", f"{found.name}: all lines are about as long, too little to tell by; no slip seen."
        )
    if together < _UNRELATED:
        return Finding(
            check,
            "bad" if together < _UNRELATED / 2 else "warning",
            f"{found.name}: the lengths of source and target have nothing to do with each other"
            f" (correlation {together:.2f}).",
            found.examples(range(3)),
            "Check that line n of one file translates line n of the other: one of them may be sorted or shuffled."
            " 两个文件的行可能没有对应，请检查是否被排序或打乱。",
        )
    return Finding(
        check,
        "good",
        f"{found.name}: source and target lengths go together (correlation {together:.2f}), no slip seen.",
    )


def find_slips(lengths: NDArray[np.float64]) -> list[Slip]:
    """The stretches in which one side must be moved to fit the other; `lengths` is N × 2, on a logarithmic scale."""
    moved = [_moved_by(lengths, start) for start in range(0, len(lengths) - _WINDOW + 1, _WINDOW)]
    slips: list[Slip] = []
    window = 0
    while window < len(moved):
        by, last = moved[window], window
        while last + 1 < len(moved) and moved[last + 1] == by:
            last += 1
        if by and last > window:  # one window alone may be chance
            start = _turning_point(lengths, (window - 1) * _WINDOW, (window + 1) * _WINDOW, by)
            end = _turning_point(lengths, last * _WINDOW, (last + 2) * _WINDOW, by, back=True)
            slips.append(Slip(start, end, by))
        window = last + 1
    return slips


def _moved_by(lengths: NDArray[np.float64], start: int) -> int:
    """By how many lines the target is late in a window; 0 where it is not, or where nobody can tell."""
    source = lengths[start : start + _WINDOW, 0]
    scores = {}
    for by in range(-_FARTHEST, _FARTHEST + 1):
        first = start + by
        if first >= 0 and first + _WINDOW <= len(lengths):
            scores[by] = _correlation(source, lengths[first : first + _WINDOW, 1])
    best = max(scores, key=lambda by: scores[by])
    is_clear = scores[best] >= _LEAST and scores[best] >= scores[0] + _MARGIN
    return best if is_clear else 0


def _turning_point(lengths: NDArray[np.float64], low: int, high: int, by: int, *, back: bool = False) -> int:
    """Between two places, the pair from which the moved target fits better than the unmoved one (or no longer)."""
    low, high = max(low, max(0, -by)), min(high, len(lengths) - max(0, by))
    if back and high == len(lengths) - max(0, by):
        return len(lengths)
    centre = np.median(lengths[:, 1] - lengths[:, 0])
    rows = np.arange(low, high)
    stays = np.abs(lengths[rows, 1] - lengths[rows, 0] - centre)
    moves = np.abs(lengths[rows + by, 1] - lengths[rows, 0] - centre)
    gain = (moves - stays) if not back else (stays - moves)
    return int(low + np.argmax(np.concatenate([[0.0], np.cumsum(gain)])))


def _correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    left, right = left - left.mean() if len(left) else left, right - right.mean() if len(right) else right
    spread = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / spread if spread > 0 else 0.0
