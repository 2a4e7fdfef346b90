"""A confusion matrix as a self-contained SVG, for light and dark backgrounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from html import escape
from math import sqrt

from manyheads.charts import drawing, label_width, line
from manyheads.messages import Message
from manyheads.metrics import NO_LABEL, Confusion

_MAX_LABELS = 40  # more are not readable
_WIDTH = 760  # of the matrix, within the limits of its cells
_MIN_CELL, _MAX_CELL = 22.0, 64.0
_MAX_LABEL_WIDTH = 24.0  # em
_FONT = 12.0
_SLANT = sqrt(0.5)  # column labels are rotated by 45 degrees
_DARK = 0.7  # opacity above which the text of a cell is light

_STYLE = """
.confusion text { font-family: system-ui, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", \
"Noto Sans SC", sans-serif; fill: var(--ink); font-variant-numeric: tabular-nums; }
.confusion .grid { stroke: var(--line); stroke-width: 1; shape-rendering: crispEdges; }
.confusion .right { fill: var(--main); }
.confusion .wrong { fill: var(--accent); }
.confusion text.light { fill: var(--paper); }
.confusion .soft text { fill: var(--soft); }
"""


@dataclass(frozen=True)
class _Frame:
    """Sizes and positions, in pixels."""

    cell: float
    left: float
    top: float
    size: float  # of the matrix
    width: float
    height: float
    is_slanted: bool  # column labels are wider than the columns


def confusion_svg(confusion: Confusion, *, is_bilingual: bool = False) -> str:
    """Return the matrix as SVG: gold labels in rows, predicted ones in columns, shaded by their share of the row.

    If there are too many labels to read, those that are confused most are drawn. With `is_bilingual`, captions are
    in both languages, of which the page shows one; otherwise in the language in use.
    """
    shown = _most_confused(confusion)
    names = [_shortened(confusion.labels[row]) for row in shown]
    frame = _frame(names)
    n_labels = len(confusion.labels)
    description = Message("Confusion matrix of {n_labels} labels", n_labels=n_labels)
    label = " · ".join(description.by_language().values()) if is_bilingual else str(description)
    parts = [
        _grid(frame, len(names)),
        _labels(frame, names),
        _cells(frame, confusion, shown),
        _titles(frame, is_bilingual=is_bilingual),
        _legend(frame, names, n_labels, is_bilingual=is_bilingual),
    ]
    return drawing("confusion", frame.width, frame.height, parts, label=label, style=_STYLE)


def _caption(attributes: str, text: Message, *, is_bilingual: bool) -> str:
    """Return a text element, or one for each language, of which the page's style hides one."""
    if not is_bilingual:
        return f'<text class="caption" {attributes}>{escape(str(text))}</text>'
    return "".join(
        f'<text class="caption {language}" {attributes}>{escape(words)}</text>'
        for language, words in text.by_language().items()
    )


def _most_confused(confusion: Confusion) -> list[int]:
    """Return the indices of the labels to draw, in their order."""
    counts, indices = confusion.counts, range(len(confusion.labels))
    mistakes = [sum(counts[label]) + sum(row[label] for row in counts) - 2 * counts[label][label] for label in indices]
    return sorted(sorted(indices, key=lambda label: -mistakes[label])[:_MAX_LABELS])


def _frame(names: list[str]) -> _Frame:
    cell = min(_MAX_CELL, max(_MIN_CELL, _WIDTH / len(names)))
    longest = _FONT * max(map(_ems, names))
    is_slanted = longest > cell - 6
    size, left, top, right = cell * len(names), 40 + longest, 60.0, 16.0
    if is_slanted:
        top, right = 54 + longest * _SLANT, max(16.0, longest * _SLANT - cell / 2 + 16)
    return _Frame(cell, left, top, size, max(left + size + right, 420), top + size + 60, is_slanted)


def _grid(frame: _Frame, n: int) -> str:
    lines = []
    for offset in (frame.cell * number for number in range(n + 1)):
        x, y, end_x, end_y = frame.left + offset, frame.top + offset, frame.left + frame.size, frame.top + frame.size
        lines.append(line("grid", x, x, frame.top, end_y))
        lines.append(line("grid", frame.left, end_x, y, y))
    return "".join(lines)


def _labels(frame: _Frame, names: list[str]) -> str:
    parts = []
    for number, name in enumerate(names):
        middle = frame.cell * (number + 0.5)
        x, y = frame.left + middle, frame.top - 8
        rotation = f'transform="rotate(-45 {x:.1f} {y:.1f})"' if frame.is_slanted else 'text-anchor="middle"'
        parts.append(
            f'<text x="{frame.left - 8:.1f}" y="{frame.top + middle + 4:.1f}" font-size="{_FONT}" text-anchor="end">'
            f'{escape(name)}</text><text x="{x:.1f}" y="{y:.1f}" font-size="{_FONT}" {rotation}>{escape(name)}</text>'
        )
    return "".join(parts)


def _cells(frame: _Frame, confusion: Confusion, shown: Sequence[int]) -> str:
    return "".join(
        _cell(frame, confusion, (row, shown[row]), (column, shown[column]))
        for row in range(len(shown))
        for column in range(len(shown))
        if confusion.counts[shown[row]][shown[column]]
    )


def _cell(frame: _Frame, confusion: Confusion, row: tuple[int, int], column: tuple[int, int]) -> str:
    """Return one cell; row and column are pairs of the drawn index and the index in the matrix."""
    count = confusion.counts[row[1]][column[1]]
    share = count / sum(confusion.counts[row[1]])
    # Square root: otherwise a confusion of 2 % would be invisible.
    opacity = max(0.1, sqrt(share))
    x, y, cell = frame.left + column[0] * frame.cell, frame.top + row[0] * frame.cell, frame.cell
    label = f"{count:,}" if count < 1000 or cell > 40 else f"{count / 1000:.{count < 10_000}f}k"
    size = min(14.0, 0.9 * cell / max(1.8, 0.6 * len(label)), 0.5 * cell)
    title = f"{confusion.labels[row[1]]} → {confusion.labels[column[1]]}: {count:,} ({100 * share:.1f} %)"
    return (
        f'<g><title>{escape(title)}</title><rect class="{"right" if row == column else "wrong"}" x="{x + 0.5:.1f}" '
        f'y="{y + 0.5:.1f}" width="{cell - 1:.1f}" height="{cell - 1:.1f}" fill-opacity="{opacity:.2f}"/>'
        f'<text class="{"light" if opacity > _DARK else "count"}" x="{x + cell / 2:.1f}" '
        f'y="{y + cell / 2 + 0.36 * size:.1f}" font-size="{size:.1f}" text-anchor="middle">{label}</text></g>'
    )


def _titles(frame: _Frame, *, is_bilingual: bool) -> str:
    x, y = 18, frame.top + frame.size / 2
    style = 'font-size="14" font-weight="600" text-anchor="middle"'
    columns = Message("predicted label")
    rows = Message("correct label")
    return _caption(
        f'x="{frame.left + frame.size / 2:.1f}" y="22" {style}', columns, is_bilingual=is_bilingual
    ) + _caption(f'x="{x}" y="{y:.1f}" {style} transform="rotate(-90 {x} {y:.1f})"', rows, is_bilingual=is_bilingual)


def _legend(frame: _Frame, names: list[str], n_labels: int, *, is_bilingual: bool) -> str:
    y = frame.top + frame.size + 26
    notes = [Message("shade: share of the row")]
    if NO_LABEL in names:
        notes.append(Message("{sign} none", sign=NO_LABEL))
    if n_labels > len(names):
        notes.append(
            Message("{n_shown} of {n_labels} labels, the most confused", n_shown=len(names), n_labels=n_labels)
        )
    note = reduce(lambda first, second: Message("{first}; {second}", first=first, second=second), notes)
    captions = (
        (f'x="32" y="{y:.1f}" font-size="{_FONT}"', Message("correct")),
        (f'x="134" y="{y:.1f}" font-size="{_FONT}"', Message("wrong")),
        (f'x="16" y="{y + 20:.1f}" font-size="{_FONT}"', note),
    )
    return (
        f'<rect class="right" x="16" y="{y - 10:.1f}" width="11" height="11"/>'
        f'<rect class="wrong" x="118" y="{y - 10:.1f}" width="11" height="11"/>'
        f'<g class="soft">{"".join(_caption(*caption, is_bilingual=is_bilingual) for caption in captions)}</g>'
    )


def _ems(name: str) -> float:
    """Return the approximate width of a label in em; Chinese characters are twice as wide as letters."""
    return label_width(name, narrow=0.56, wide=1.0)


def _shortened(label: str) -> str:
    if _ems(label) <= _MAX_LABEL_WIDTH:
        return label
    while _ems(label) > _MAX_LABEL_WIDTH - 1:
        label = label[:-1]
    return label + "…"
