"""Numbers in a terminal: single, in sums, vectors, matrices and heat maps, whole or shortened."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from manyheads.messages import _
from manyheads.walks.attention_walk import Floats

Line = Text
WHOLE = 8  # vectors up to this length are shown whole; of longer ones, the ends
SHORT = 3  # the same for two vectors on one line
MAX_NAME = 12  # columns of a name
_DECIMALS = 3
_TINY = 5e-4  # smaller numbers would be 0.000
_CHINESE = "\u2e80-\uffef"
_UNBROKEN = re.compile(rf" ?（?(?:[^\s{_CHINESE}]+|[{_CHINESE}])[，。；：、？）,.:;]*")
_SHADES = (" ·", "░░", "▒▒", "▓▓", "██")
_SHADE_LIMITS = (0.05, 0.2, 0.4, 0.7)
_PALE, _DEEP = (247, 251, 255), (8, 48, 107)


def number(value: float, decimals: int = _DECIMALS) -> str:
    """Format a number with three decimals, or fewer; a number other than 0 is never shown as 0."""
    if np.isneginf(value):
        return "-∞"
    if value == 0:
        return "0"  # not -0
    if decimals == _DECIMALS and abs(value) < _TINY:
        return f"{value:.1e}"
    return f"{value:.{decimals}f}" if abs(value) < 100 or decimals < _DECIMALS else f"{value:.2f}"


def decimals_of(values: Floats) -> int:
    """Return how many decimals show all finite values exactly; at most three."""
    finite = values[np.isfinite(values)]
    return next((n for n in range(_DECIMALS) if np.abs(finite - np.round(finite, n)).max(initial=0) < 1e-12), _DECIMALS)


def numbers(values: Floats) -> list[str]:
    """Format the numbers of a vector with as many decimals as they need; at most three."""
    decimals = decimals_of(values)
    return [number(value, decimals) for value in values.tolist()]


def factor(text: str) -> str:
    """Put a negative number in parentheses, to be used as a factor or a term."""
    return f"({text})" if text.startswith("-") else text


def ends(length: int, at_front: int, at_back: int, *, is_long: bool = False) -> tuple[list[int], list[int]]:
    """Return the indices shown before and after the gap of a long row; of a short one, all and none."""
    if length <= at_front + at_back + 1 or (length <= WHOLE and not is_long):
        return list(range(length)), []
    return list(range(at_front)), list(range(length - at_back, length))


def vector(values: Floats, at_front: int = 3, at_back: int = 2) -> str:
    """Format a vector: [ 0.120  -0.331  … 28 more …  0.508 ], or whole if it is short."""
    return bracketed(numbers(values), at_front, at_back)


def bracketed(shown: Sequence[str], at_front: int = 3, at_back: int = 2, *, is_long: bool = False) -> str:
    """Put the printed numbers of a vector in brackets, those between the ends of a long one as their count."""
    front, back = ends(len(shown), at_front, at_back, is_long=is_long)
    gap = [f"… {n_more(len(shown) - len(front) - len(back))} …"] if back else []
    return f"[ {'  '.join([*(shown[i] for i in front), *gap, *(shown[i] for i in back)])} ]"


def n_more(count: int) -> str:
    """Return "28 more"."""
    return _("{count} more", count=count)


def folded(label: str, text: str, width: int) -> list[Line]:
    """Put a sum on one line, or break it before + and =, with further lines aligned below the first."""
    rows = [""]
    for part in re.split(r" (?=[+=] )", text):
        joined = f"{rows[-1]} {part}" if rows[-1] else part
        if rows[-1] and cell_len(label) + cell_len(joined) > width:
            rows.append(part)
        else:
            rows[-1] = joined
    return [Text(label + rows[0]), *(Text(" " * cell_len(label) + row) for row in rows[1:])]


def wrapped(text: str, width: int) -> list[str]:
    """Wrap prose to a width in columns: English between words, Chinese between characters.

    No line begins with closing punctuation.
    """
    lines = [""]
    for part in _UNBROKEN.findall(text):
        if cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] = lines[-1] + part if lines[-1] else part.lstrip()
    return lines


def centered(text: str, width: int) -> str:
    """Center a text in a number of columns."""
    space = max(0, width - cell_len(text))
    return " " * (space // 2) + text + " " * (space - space // 2)


def labels(names: Sequence[str], longest: int = MAX_NAME) -> list[str]:
    """Return numbered names, padded to one width: 0 I, 1 love, 2 cats."""
    digits = len(str(len(names) - 1))
    shown = [f"{position:>{digits}} {shortened(name, longest)}" for position, name in enumerate(names)]
    width = max(cell_len(label) for label in shown)
    return [set_cell_size(label, width) for label in shown]


def shortened(name: str, longest: int = MAX_NAME) -> str:
    """Shorten a name that is too wide for a table; line breaks become ⏎."""
    name = name.replace("\n", "⏎").replace("\t", "⇥")
    return name if cell_len(name) <= longest else f"{set_cell_size(name, longest - 1).rstrip()}…"


def matrix(title: str, rows: Floats, names: Sequence[str] = (), chosen: int | None = None) -> list[Line]:
    """Format a small matrix with a name before each row; the chosen row is highlighted."""
    decimals = decimals_of(rows)
    cells = [[number(value, decimals) for value in row] for row in rows.tolist()]
    width = max((len(cell) for row in cells for cell in row), default=1)
    before = [f"{label}  " for label in names] or [""] * len(cells)
    body = [
        Text(before[index]).append("  ".join(f"{cell:>{width}}" for cell in row), style=_row_style(index, chosen))
        for index, row in enumerate(cells)
    ]
    indent = " " * (cell_len(before[0]) if before else 0)
    return [Text(indent + title, style="bold"), *body]


def _row_style(index: int, chosen: int | None) -> str:
    return "bold cyan" if index == chosen else ""


def beside(blocks: Iterable[Sequence[Line]], width: int, gap: int = 4) -> list[Line]:
    """Place blocks of lines side by side, as many in a row as fit."""
    rows: list[list[Line]] = []
    used = 0
    for block in blocks:
        block_width = max(line.cell_len for line in block)
        if rows and used + gap + block_width <= width:
            old = rows.pop()
            height = max(len(old), len(block))
            left = [*old, *(Text() for _ in range(height - len(old)))]
            right = [*block, *(Text() for _ in range(height - len(block)))]
            for line in left:
                line.pad_right(used + gap - line.cell_len)
            rows.append([a + b for a, b in zip(left, right, strict=True)])
            used += gap + block_width
        else:
            rows.append([line.copy() for line in block])
            used = block_width
    return [line for index, row in enumerate(rows) for line in ([Text(), *row] if index else row)]


def heat_style(weight: float) -> str:
    """Return a style from pale to deep blue, with readable text on it."""
    red, green, blue = (round(a + (b - a) * weight) for a, b in zip(_PALE, _DEEP, strict=True))
    return f"{'#ffffff' if weight > 0.45 else '#000000'} on rgb({red},{green},{blue})"


def heat_map(
    weights: Floats, visible: NDArray[np.bool_], rows: Sequence[str], columns: Sequence[str], width: int
) -> list[Line]:
    """Draw attention weights as numbers if they fit, otherwise as shades; masked cells are empty."""
    before = cell_len(rows[0]) + 2
    names = [shortened(name) for name in columns]
    cell = max(5, *(cell_len(name) + 1 for name in names))
    if before + cell * len(names) <= width:
        head = Text(" " * before + "".join(" " * (cell - cell_len(name)) + name for name in names), style="bold")
        lines = [Text(f"{row}  ") for row in rows]
        for line, values, row_visible in zip(lines, weights.tolist(), visible.tolist(), strict=True):
            for value, is_visible in zip(values, row_visible, strict=True):
                text = f"{value:>{cell - 1}.2f}" if is_visible else " " * (cell - 1)
                line.append(" ").append(text, style=heat_style(value) if is_visible else "")
        return [head, *lines]
    return _shaded_map(weights, visible, rows, width)


def _shaded_map(weights: Floats, visible: NDArray[np.bool_], rows: Sequence[str], width: int) -> list[Line]:
    """Draw two columns per key, or one if there are many; if not all fit, the first ones."""
    before, n_keys = cell_len(rows[0]) + 2, weights.shape[1]
    cell = 2 if before + 2 * n_keys <= width else 1
    n_shown = min(n_keys, (width - before) // cell)
    tens = "".join(f"{key // 10 or '':>{cell}}"[-cell:] if key % 10 == 0 else " " * cell for key in range(n_shown))
    digits = "".join(f"{key % 10:>{cell}}" for key in range(n_shown))
    above = [Text(" " * before + head, style="bold") for head in (tens, digits) if head.strip()]
    lines = [Text(f"{row}  ") for row in rows]
    shown = zip(lines, weights[:, :n_shown].tolist(), visible[:, :n_shown].tolist(), strict=True)
    for line, values, row_visible in shown:
        for value, is_visible in zip(values, row_visible, strict=True):
            shade = _SHADES[sum(value >= step for step in _SHADE_LIMITS)][-cell:]
            line.append(shade if is_visible else " " * cell, style=f"rgb({_blue(value)})" if is_visible else "")
    legend = "· < 0.05 ≤ ░ < 0.2 ≤ ▒ < 0.4 ≤ ▓ < 0.7 ≤ █"
    keys = _("   (keys 0–{last} of {n_keys})", last=n_shown - 1, n_keys=n_keys)
    return [*above, *lines, Text(legend + (keys if n_shown < n_keys else ""), style="dim")]


def _blue(weight: float) -> str:
    return ",".join(str(round(a + (b - a) * weight)) for a, b in zip((120, 140, 170), (40, 130, 255), strict=True))
