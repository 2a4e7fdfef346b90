"""A confusion matrix as a picture: an SVG that needs nothing else, in light and in dark surroundings."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from manyheads.metrics import NO_LABEL, Confusion
from manyheads.report.markup import text

_MOST = 40  # labels that can still be read
_WIDTH = 760  # of the matrix, if its cells need not be larger or smaller than they may
_SMALLEST, _LARGEST = 22.0, 64.0  # cells
_LONGEST = 24.0  # ems of a label
_FONT = 12.0
_SLANT = sqrt(0.5)  # labels of columns stand at 45 degrees
_DARK_ENOUGH = 0.7  # opacity from which text on a cell changes its colour

_STYLE = """
.confusion { --paper: #fff; --ink: #1b1d21; --soft: #5d636e; --line: #e3e5e9; --main: #0b62a4; --accent: #b8500a; }
@media (prefers-color-scheme: dark) {
  .confusion { --paper: #14161a; --ink: #e7e9ed; --soft: #9ba2ae; --line: #2c3038; --main: #6cb6f0; --accent: #f0a35e; }
}
.confusion text { font-family: system-ui, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", \
"Noto Sans SC", sans-serif; fill: var(--ink); font-variant-numeric: tabular-nums; }
.confusion .paper { fill: var(--paper); }
.confusion .grid { stroke: var(--line); stroke-width: 1; shape-rendering: crispEdges; }
.confusion .right { fill: var(--main); }
.confusion .wrong { fill: var(--accent); }
.confusion text.light { fill: var(--paper); }
.confusion text.soft { fill: var(--soft); }
"""


@dataclass(frozen=True)
class _Frame:
    """Where things stand."""

    cell: float
    left: float
    top: float
    size: float  # of the matrix
    width: float
    height: float
    is_slanted: bool  # the labels of columns are wider than these


def confusion_svg(confusion: Confusion) -> str:
    """The matrix as SVG: gold labels down, predicted across, shaded by the share of the row, with the counts.

    Of more labels than can be read, those that are confused most are drawn.
    """
    kept = _most_confused(confusion)
    names = [_shortened(confusion.labels[row]) for row in kept]
    frame = _frame(names)
    told = text(f"Confusion matrix of {len(confusion.labels)} labels · 混淆矩阵")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="confusion" role="img" aria-label="{told}" '
        f'width="{frame.width:.0f}" height="{frame.height:.0f}" viewBox="0 0 {frame.width:.0f} {frame.height:.0f}" '
        'style="max-width:100%;height:auto">',
        f"<style>{_STYLE}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
        _grid(frame, len(names)),
        _labels(frame, names),
        _cells(frame, confusion, kept),
        _titles(frame),
        _legend(frame, names, len(confusion.labels)),
        "</svg>",
    ]
    return "".join(parts)


def _most_confused(confusion: Confusion) -> list[int]:
    """The places of the labels to draw, in their order."""
    counts, places = confusion.counts, range(len(confusion.labels))
    mistakes = [sum(counts[one]) + sum(row[one] for row in counts) - 2 * counts[one][one] for one in places]
    return sorted(sorted(places, key=lambda one: -mistakes[one])[:_MOST])


def _frame(names: list[str]) -> _Frame:
    cell = min(_LARGEST, max(_SMALLEST, _WIDTH / len(names)))
    longest = _FONT * max(map(_ems, names))
    is_slanted = longest > cell - 6
    size, left, top, right = cell * len(names), 40 + longest, 60.0, 16.0
    if is_slanted:
        top, right = 54 + longest * _SLANT, max(16.0, longest * _SLANT - cell / 2 + 16)
    return _Frame(cell, left, top, size, max(left + size + right, 420), top + size + 60, is_slanted)


def _grid(frame: _Frame, n: int) -> str:
    lines = []
    for at in (frame.cell * number for number in range(n + 1)):
        x, y, end_x, end_y = frame.left + at, frame.top + at, frame.left + frame.size, frame.top + frame.size
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.top:.1f}" y2="{end_y:.1f}"/>')
        lines.append(f'<line class="grid" x1="{frame.left:.1f}" x2="{end_x:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
    return "".join(lines)


def _labels(frame: _Frame, names: list[str]) -> str:
    parts = []
    for number, name in enumerate(names):
        middle = frame.cell * (number + 0.5)
        x, y = frame.left + middle, frame.top - 8
        turned = f'transform="rotate(-45 {x:.1f} {y:.1f})"' if frame.is_slanted else 'text-anchor="middle"'
        parts.append(
            f'<text x="{frame.left - 8:.1f}" y="{frame.top + middle + 4:.1f}" font-size="{_FONT}" text-anchor="end">'
            f'{text(name)}</text><text x="{x:.1f}" y="{y:.1f}" font-size="{_FONT}" {turned}>{text(name)}</text>'
        )
    return "".join(parts)


def _cells(frame: _Frame, confusion: Confusion, kept: Sequence[int]) -> str:
    return "".join(
        _cell(frame, confusion, (row, kept[row]), (column, kept[column]))
        for row in range(len(kept))
        for column in range(len(kept))
        if confusion.counts[kept[row]][kept[column]]
    )


def _cell(frame: _Frame, confusion: Confusion, row: tuple[int, int], column: tuple[int, int]) -> str:
    """One cell; its row and its column are given by where they are drawn and where they are in the matrix."""
    count = confusion.counts[row[1]][column[1]]
    share = count / sum(confusion.counts[row[1]])
    # The root: otherwise what is confused once in fifty times could not be seen.
    opacity = max(0.1, sqrt(share))
    x, y, cell = frame.left + column[0] * frame.cell, frame.top + row[0] * frame.cell, frame.cell
    told = f"{count:,}" if count < 1000 or cell > 40 else f"{count / 1000:.{count < 10_000}f}k"
    size = min(14.0, 0.9 * cell / max(1.8, 0.6 * len(told)), 0.5 * cell)
    title = f"{confusion.labels[row[1]]} → {confusion.labels[column[1]]}: {count:,} ({100 * share:.1f} %)"
    return (
        f'<g><title>{text(title)}</title><rect class="{"right" if row == column else "wrong"}" x="{x + 0.5:.1f}" '
        f'y="{y + 0.5:.1f}" width="{cell - 1:.1f}" height="{cell - 1:.1f}" fill-opacity="{opacity:.2f}"/>'
        f'<text class="{"light" if opacity > _DARK_ENOUGH else "count"}" x="{x + cell / 2:.1f}" '
        f'y="{y + cell / 2 + 0.36 * size:.1f}" font-size="{size:.1f}" text-anchor="middle">{told}</text></g>'
    )


def _titles(frame: _Frame) -> str:
    x, y = 18, frame.top + frame.size / 2
    return (
        f'<text x="{frame.left + frame.size / 2:.1f}" y="22" font-size="14" font-weight="600" text-anchor="middle">'
        f"predicted · 预测标签</text>"
        f'<text x="{x}" y="{y:.1f}" font-size="14" font-weight="600" text-anchor="middle" '
        f'transform="rotate(-90 {x} {y:.1f})">correct · 正确标签</text>'
    )


def _legend(frame: _Frame, names: list[str], n_labels: int) -> str:
    y = frame.top + frame.size + 26
    notes = ["shade: share of the row · 深浅：占该行的比例"]
    if NO_LABEL in names:
        notes.append(f"{NO_LABEL} none · 无")
    if n_labels > len(names):
        notes.append(f"{len(names)} of {n_labels} labels, the most confused · 仅列出最易混淆的标签")
    return (
        f'<rect class="right" x="16" y="{y - 10:.1f}" width="11" height="11"/>'
        f'<text class="soft" x="32" y="{y:.1f}" font-size="{_FONT}">right · 正确</text>'
        f'<rect class="wrong" x="118" y="{y - 10:.1f}" width="11" height="11"/>'
        f'<text class="soft" x="134" y="{y:.1f}" font-size="{_FONT}">wrong · 错误</text>'
        f'<text class="soft" x="16" y="{y + 20:.1f}" font-size="{_FONT}">{text("; ".join(notes))}</text>'
    )


def _ems(name: str) -> float:
    """About how wide a label is: Chinese characters are twice as wide as letters."""
    return sum(1.0 if unicodedata.east_asian_width(character) in "WF" else 0.56 for character in name)


def _shortened(label: str) -> str:
    if _ems(label) <= _LONGEST:
        return label
    while _ems(label) > _LONGEST - 1:
        label = label[:-1]
    return label + "…"
