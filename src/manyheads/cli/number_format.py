"""Numbers as a terminal shows them: one by one, in sums, in vectors and matrices, whole or in part."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size
from rich.text import Text

Floats = NDArray[np.float64]
Line = Text
WHOLE = 8  # numbers of a vector that is shown whole; of a longer one, its ends
SHORT = 3  # numbers of a vector that is shown whole beside another
_NAME = 12  # columns a name may take
_TINY = 5e-4  # what three decimals would show as zero
_CHINESE = "\u2e80-\uffef"
_UNBROKEN = re.compile(rf" ?（?(?:[^\s{_CHINESE}]+|[{_CHINESE}])[，。；：、？）]*")
_SHADES = (" ·", "░░", "▒▒", "▓▓", "██")
_STEPS = (0.05, 0.2, 0.4, 0.7)  # weights at which the next shade begins
_PALE, _DEEP = (247, 251, 255), (8, 48, 107)


def number(value: float, *, whole: bool = False) -> str:
    """One number in three decimals; `whole` where it stands among integers. Never a zero that is not one."""
    if np.isneginf(value):
        return "-∞"
    if value == 0:
        return "0"  # never -0
    if whole:
        return f"{value:.0f}"
    if abs(value) < _TINY:
        return f"{value:.1e}"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.2f}"


def are_whole(values: Floats) -> bool:
    """Whether all are integers, which need no decimals."""
    finite = values[np.isfinite(values)]
    return bool((finite == np.round(finite)).all() and (np.abs(finite) < 1e9).all())


def numbers(values: Floats) -> list[str]:
    """Each number of a vector, in the manner of all."""
    whole = are_whole(values)
    return [number(value, whole=whole) for value in values.tolist()]


def factor(text: str) -> str:
    """A number that something is multiplied with or added to: a negative one in brackets."""
    return f"({text})" if text.startswith("-") else text


def ends(length: int, at_front: int, at_back: int) -> tuple[list[int], list[int]]:
    """Which places of a long row are shown before and after the gap; all before it, if there is none to make."""
    if length <= max(WHOLE, at_front + at_back):
        return list(range(length)), []
    return list(range(at_front)), list(range(length - at_back, length))


def vector(values: Floats, at_front: int = 3, at_back: int = 2) -> str:
    """[ 0.120  -0.331  … 28 more …  0.508 ]: whole where it is short."""
    shown = numbers(values)
    front, back = ends(len(shown), at_front, at_back)
    gap = [f"… {len(shown) - len(front) - len(back)} more …"] if back else []
    return f"[ {'  '.join([*(shown[i] for i in front), *gap, *(shown[i] for i in back)])} ]"


def short_vector(values: Floats) -> str:
    """[ 0.120 … 0.508 ]: its ends, where two of them stand on a line; whole up to three numbers."""
    shown = numbers(values)
    return f"[ {'  '.join(shown)} ]" if len(shown) <= SHORT else f"[ {shown[0]}  …  {shown[-1]} ]"


def sum_of_products(left: Floats, right: Floats, *, with_products: bool = False) -> str:
    """30×14 + 36×32 + 42×50 = 3672; of many, the ends one by one and what lies between as one sum."""
    shown = [(factor(a), factor(b)) for a, b in zip(numbers(left), numbers(right), strict=True)]
    terms = left * right
    front, back = ends(len(shown), 1, 1)
    parts = [f"{shown[i][0]}×{shown[i][1]}" for i in front]
    if back:
        between = terms[len(front) : back[0]]
        parts.append(f"[{len(between)} more: {number(float(between.sum()), whole=are_whole(terms))}]")
        parts += [f"{shown[i][0]}×{shown[i][1]}" for i in back]
    total = number(float(terms.sum()), whole=are_whole(terms))
    if with_products and not back and len(parts) > 1:
        return f"{' + '.join(parts)} = {' + '.join(map(factor, numbers(terms)))} = {total}"
    return f"{' + '.join(parts)} = {total}"


def sum_of(terms: Floats) -> str:
    """1 + 2 + 3 = 6; of many, the ends one by one and what lies between as one sum."""
    shown, whole = [factor(text) for text in numbers(terms)], are_whole(terms)
    front, back = ends(len(shown), 2, 1)
    parts = [shown[i] for i in front]
    if back:
        between = terms[len(front) : back[0]]
        parts += [f"[{len(between)} more: {number(float(between.sum()), whole=whole)}]", *(shown[i] for i in back)]
    return f"{' + '.join(parts)} = {number(float(terms.sum()), whole=whole)}"


def folded(label: str, text: str, width: int) -> list[Line]:
    """A sum on one line, or broken before its signs, each further line under the first."""
    rows = [""]
    for part in re.split(r" (?=[+=] )", text):
        joined = f"{rows[-1]} {part}" if rows[-1] else part
        if rows[-1] and cell_len(label) + len(joined) > width:
            rows.append(part)
        else:
            rows[-1] = joined
    return [Text(label + rows[0]), *(Text(" " * cell_len(label) + row) for row in rows[1:])]


def wrapped(text: str, width: int) -> list[str]:
    """Prose in lines of at most so many columns: English between words, Chinese between characters.

    No line begins with a mark that closes what stands before it.
    """
    lines = [""]
    for part in _UNBROKEN.findall(text):
        if cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] = lines[-1] + part if lines[-1] else part.lstrip()
    return lines


def centered(text: str, width: int) -> str:
    """In the middle of so many columns."""
    space = max(0, width - cell_len(text))
    return " " * (space // 2) + text + " " * (space - space // 2)


def labels(names: Sequence[str]) -> list[str]:
    """0 I, 1 love, 2 cats: all of one width."""
    digits = len(str(len(names) - 1))
    shown = [f"{place:>{digits}} {shortened(name)}" for place, name in enumerate(names)]
    width = max(cell_len(label) for label in shown)
    return [set_cell_size(label, width) for label in shown]


def shortened(name: str) -> str:
    """A name that is not wider than a table can bear."""
    return name if cell_len(name) <= _NAME else f"{set_cell_size(name, _NAME - 1).rstrip()}…"


def matrix(title: str, rows: Floats, names: Sequence[str] = (), chosen: int | None = None) -> list[Line]:
    """A small matrix as lines, a name before each row; the chosen row stands out."""
    whole = are_whole(rows)
    cells = [[number(value, whole=whole) for value in row] for row in rows.tolist()]
    width = max((len(cell) for row in cells for cell in row), default=1)
    before = [f"{label}  " for label in names] or [""] * len(cells)
    body = [
        Text(before[place]).append("  ".join(f"{cell:>{width}}" for cell in row), style=_row_style(place, chosen))
        for place, row in enumerate(cells)
    ]
    indent = " " * (cell_len(before[0]) if before else 0)
    return [Text(indent + title, style="bold"), *body]


def _row_style(place: int, chosen: int | None) -> str:
    return "bold cyan" if place == chosen else ""


def beside(blocks: Iterable[Sequence[Line]], width: int, gap: int = 4) -> list[Line]:
    """Blocks of lines side by side, as many in a row as fit."""
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
    return [line for place, row in enumerate(rows) for line in ([Text(), *row] if place else row)]


def heat_style(weight: float) -> str:
    """Pale to deep blue, with letters that can be read on it."""
    red, green, blue = (round(a + (b - a) * weight) for a, b in zip(_PALE, _DEEP, strict=True))
    return f"{'#ffffff' if weight > 0.45 else '#000000'} on rgb({red},{green},{blue})"


def heat_map(
    weights: Floats, visible: NDArray[np.bool_], rows: Sequence[str], columns: Sequence[str], width: int
) -> list[Line]:
    """The matrix of weights: in figures where they fit, else in shades; a hidden place is empty."""
    before = cell_len(rows[0]) + 2
    names = [shortened(name) for name in columns]
    cell = max(5, *(cell_len(name) + 1 for name in names))
    if before + cell * len(names) <= width:
        head = Text(" " * before + "".join(" " * (cell - cell_len(name)) + name for name in names), style="bold")
        lines = [Text(f"{row}  ") for row in rows]
        for line, values, seen in zip(lines, weights.tolist(), visible.tolist(), strict=True):
            for value, is_seen in zip(values, seen, strict=True):
                text = f"{value:>{cell - 1}.2f}" if is_seen else " " * (cell - 1)
                line.append(" ").append(text, style=heat_style(value) if is_seen else "")
        return [head, *lines]
    return _shaded_map(weights, visible, rows, width)


def _shaded_map(weights: Floats, visible: NDArray[np.bool_], rows: Sequence[str], width: int) -> list[Line]:
    """Two columns a key, or one where there are many; beyond that, the first that fit."""
    before, n_keys = cell_len(rows[0]) + 2, weights.shape[1]
    cell = 2 if before + 2 * n_keys <= width else 1
    n_shown = min(n_keys, (width - before) // cell)
    tens = "".join(
        f"{place // 10 or '':>{cell}}"[-cell:] if place % 10 == 0 else " " * cell for place in range(n_shown)
    )
    digits = "".join(f"{place % 10:>{cell}}" for place in range(n_shown))
    above = [Text(" " * before + head, style="bold") for head in (tens, digits) if head.strip()]
    lines = [Text(f"{row}  ") for row in rows]
    for line, values, seen in zip(lines, weights[:, :n_shown].tolist(), visible[:, :n_shown].tolist(), strict=True):
        for value, is_seen in zip(values, seen, strict=True):
            shade = _SHADES[sum(value >= step for step in _STEPS)][-cell:]
            line.append(shade if is_seen else " " * cell, style=f"rgb({_blue(value)})" if is_seen else "")
    legend = "· < 0.05 ≤ ░ < 0.2 ≤ ▒ < 0.4 ≤ ▓ < 0.7 ≤ █"
    left_out = f"   (keys 0–{n_shown - 1} of {n_keys})" if n_shown < n_keys else ""
    return [*above, *lines, Text(legend + left_out, style="dim")]


def _blue(weight: float) -> str:
    return ",".join(str(round(a + (b - a) * weight)) for a, b in zip((120, 140, 170), (40, 130, 255), strict=True))
