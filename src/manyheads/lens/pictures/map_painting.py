"""Paint one attention map on a `Sheet`: as a matrix with labels and a color scale, or as links between words.

All lengths are in inches, `left` and `top` from the corner of the sheet.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.lens.pictures.sheet import INK, LINE, MAIN, SCALE, SOFT, WASH, Sheet
from manyheads.lens.traces.display_units import Unit
from manyheads.lens.traces.unit_maps import Floats, UnitMap

# isort: split
# After sheet, which keeps matplotlib's first start quiet.
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import Normalize, PowerNorm, to_rgba
from matplotlib.path import Path as Curve

LABEL, SMALL = 8.5, 7.5  # font sizes
MAX_SHAPES = 4096  # of a picture; more cells are painted as an image, or the file would have megabytes
_SPECIAL = 0.76  # the size of BOS and EOS, relative to words
_CELL, _SIDE = 0.27, 6.6  # the largest cell, the largest matrix
_GAP = 0.06  # between labels and what they label
_LINE_WIDTH = 7.4  # of a line of words; longer ones are set upright
_SPACE = 0.16  # between two words of a line
_UPRIGHT = 0.17  # between two words set upright
_MAX_POINTS = 3.0  # the width of a link with the largest value


@dataclass(frozen=True)
class Box:
    """The extent of what was painted."""

    left: float
    top: float
    right: float
    bottom: float


def cell_size(unit_map: UnitMap) -> float:
    """Return the side of a cell of the matrix."""
    return min(_CELL, _SIDE / max(unit_map.values.shape))


def label_step(cell: float, size: float = LABEL) -> int:
    """Return which labels fit beside cells of this side: all (1), every second (2) and so on."""
    return math.ceil(1.14 * size / 72 / cell - 1e-9)


def paint_matrix(sheet: Sheet, unit_map: UnitMap, left: float, top: float, corner: str, scale: str) -> Box:
    """Paint a matrix with its labels and color scale; `corner` names the rows and the columns, `scale` the values."""
    cell = cell_size(unit_map)
    n_rows, n_columns = unit_map.values.shape
    width, height = cell * n_columns, cell * n_rows
    is_image = unit_map.values.size > MAX_SHAPES
    norm = Normalize(0.0, unit_map.largest)
    paint_cells(sheet.axes(left, top, width, height), unit_map, norm, is_image=is_image)
    label_left = label_rows(sheet, unit_map.queries, left, top, cell)
    label_top = label_columns(sheet, unit_map.keys, left, top, cell)
    sheet.text(left - _GAP, top - _GAP, corner, fontsize=SMALL, color=SOFT, ha="right", va="bottom")
    label_left = min(label_left, left - _GAP - sheet.width(corner, SMALL))
    right = paint_scale(sheet, left + width + 0.25, top, min(max(height, 0.9), 1.8), norm, scale)
    return Box(label_left, label_top, right, top + max(height, 0.9))


def root_scale(largest: float) -> Normalize:
    """Return a scale by the square root, on which the small weights of diffuse heads can be seen."""
    return PowerNorm(0.5, 0.0, largest)


def paint_cells(axes: Axes, unit_map: UnitMap, norm: Normalize, *, is_image: bool) -> None:
    """Paint the cells: white for 0, dark for the largest value of the scale, gray where masked."""
    values, masked = unit_map.values, unit_map.masked
    n_rows, n_columns = values.shape
    axes.set_xlim(0, n_columns)
    axes.set_ylim(n_rows, 0)
    if is_image:
        axes.set_facecolor(WASH)
        picture = np.ma.masked_array(values, masked)
        extent = (0, n_columns, n_rows, 0)
        axes.imshow(picture, cmap=SCALE, norm=norm, interpolation="nearest", extent=extent, aspect="auto")
        return
    axes.add_collection(PolyCollection(_squares(masked, 0.0), facecolors=WASH, linewidths=0))
    shown = (np.asarray(norm(values)) > 1 / 500) & ~masked  # smaller values look white
    inset = 0.03 if max(values.shape) <= 40 else 0.0
    cells = PolyCollection(_squares(shown, inset), array=values[shown], cmap=SCALE, norm=norm, linewidths=0)
    axes.add_collection(cells)


def _squares(chosen: NDArray[np.bool_], inset: float) -> list[Floats]:
    rows, columns = np.nonzero(chosen)
    low, high = inset, 1.0 - inset
    corners = np.array([(low, low), (high, low), (high, high), (low, high)])
    return list(np.stack([columns, rows], axis=-1)[:, None, :] + corners)


def label_rows(sheet: Sheet, units: Sequence[Unit], left: float, top: float, cell: float, size: float = LABEL) -> float:
    """Write the labels of the rows; return their left edge."""
    edge = left
    for row in range(0, len(units), label_step(cell, size)):
        _write(sheet, units[row], left - _GAP, top + cell * (row + 0.5), size, ha="right", va="center_baseline")
        edge = min(edge, left - _GAP - _width(sheet, units[row], size))
    return edge


def label_columns(
    sheet: Sheet, units: Sequence[Unit], left: float, top: float, cell: float, size: float = LABEL
) -> float:
    """Write the labels of the columns: horizontal if they fit, else inclined or vertical; return their top edge."""
    step = label_step(cell, size)
    widest = max(_width(sheet, unit, size) for unit in units[::step])
    angle = 0 if widest <= cell * step - 0.01 else 55 if cell * step >= 1.7 * size / 72 else 90
    for column in range(0, len(units), step):
        x = left + cell * (column + 0.5)
        place: dict[str, Any] = {"ha": "center", "va": "baseline"}
        if angle and not _is_character(units[column]):
            x += 0.4 * size / 72 * math.sin(math.radians(angle))  # half of the height of its letters
            place = {"ha": "left", "va": "baseline", "rotation_mode": "anchor", "rotation": angle}
        _write(sheet, units[column], x, top - _GAP, size, **place)
    return top - _GAP - max(1.2 * size / 72, widest * math.sin(math.radians(angle)) + 0.08)


def _write(sheet: Sheet, unit: Unit, x: float, y: float, size: float, **place: Any) -> None:
    is_special = unit.kind == "special"
    sheet.text(x, y, unit.text, fontsize=_size(unit, size), color=SOFT if is_special else INK, **place)


def _width(sheet: Sheet, unit: Unit, size: float) -> float:
    return sheet.width(unit.text, _size(unit, size))


def _is_character(unit: Unit) -> bool:
    """Whether a label is one character, which fits without being turned."""
    return len(unit.text) == 1


def _size(unit: Unit, size: float) -> float:
    return size * _SPECIAL if unit.kind == "special" else size


def paint_scale(sheet: Sheet, left: float, top: float, height: float, norm: Normalize, name: str) -> float:
    """Paint the color scale from 0 to the largest value; return its right edge."""
    axes = sheet.axes(left, top, 0.1, height)
    bar = sheet.figure.colorbar(ScalarMappable(norm, SCALE), cax=axes)
    bar.outline.set_edgecolor(LINE)
    bar.outline.set_linewidth(0.6)
    ticks = [float(norm.inverse(part)) for part in (0.0, 0.5, 1.0)]
    bar.set_ticks(ticks, labels=[f"{value:.3g}" for value in ticks])
    axes.tick_params(labelsize=SMALL, labelcolor=INK, color=LINE, length=2, width=0.6, pad=2)
    sheet.text(left, top - 0.09, name, fontsize=SMALL, color=SOFT, va="baseline")
    return left + max(0.45, sheet.width(name, SMALL))


def paint_links(sheet: Sheet, unit_map: UnitMap, links: NDArray[np.bool_], left: float, top: float, scale: str) -> Box:
    """Paint links: between the keys above and the queries below, or as arcs above one line of words."""
    keys, is_upright = _placed(sheet, unit_map.keys)
    queries = keys
    if not unit_map.is_self:
        queries, is_upright_too = _placed(sheet, unit_map.queries)
        is_upright = is_upright or is_upright_too
    width = max(keys[-1] + keys[0], queries[-1] + queries[0])
    keys, queries = (positions + (width - positions[-1] - positions[0]) / 2 for positions in (keys, queries))
    rows, columns = np.nonzero(links)
    longest = float(np.abs(queries[rows] - keys[columns]).max(initial=0.0))
    height = 0.4 + 0.16 * longest if unit_map.is_self else 1.0 + 0.06 * width
    axes = sheet.axes(left, top, width, height)
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    values = unit_map.values[rows, columns] / unit_map.largest
    _paint_curves(axes, queries[rows], keys[columns], values, height, is_self=unit_map.is_self)
    above = 0.0 if unit_map.is_self else _write_line(sheet, unit_map.keys, keys + left, top, is_upright, sign=-1)
    below = _write_line(sheet, unit_map.queries, queries + left, top + height, is_upright, sign=1)
    right = _paint_samples(sheet, left + width + 0.3, top + height / 2, unit_map.largest, scale)
    return Box(left, top - above, right, top + height + below)


def _placed(sheet: Sheet, units: Sequence[Unit]) -> tuple[Floats, bool]:
    """Return the middle of each word of a line, and whether the words have to be set upright, side by side."""
    steps = np.array([_width(sheet, unit, LABEL) + _SPACE for unit in units])
    is_upright = bool(steps.sum() > _LINE_WIDTH)
    steps = np.full(len(units), _UPRIGHT) if is_upright else steps
    positions: Floats = np.cumsum(steps) - steps / 2
    return positions, is_upright


def _paint_curves(axes: Axes, queries: Floats, keys: Floats, values: Floats, height: float, *, is_self: bool) -> None:
    """Paint a curve from each query to its key; `values` are relative to the scale."""
    order = np.argsort(values, kind="stable")  # strong links on top
    queries, keys, values = queries[order], keys[order], values[order]
    longest = float(np.abs(queries - keys).max(initial=0.0)) or 1.0
    curves = [
        _arc(query, key, height, longest) if is_self else _bend(query, key, height)
        for query, key in zip(queries, keys, strict=True)
    ]
    colors = [_faded(value) for value in values]
    axes.add_collection(
        PathCollection(curves, facecolors="none", edgecolors=colors, linewidths=_points(values), capstyle="round")
    )
    if is_self:
        dots = np.full(len(keys), height - 0.05)
        axes.scatter(keys, dots, s=(_points(values) + 2.5) ** 2, color=MAIN, linewidths=0, zorder=3, clip_on=False)


def _bend(query: float, key: float, height: float) -> Curve:
    """A curve from a key at the top to a query at the bottom."""
    points = [(key, 0.04), (key, height * 0.5), (query, height * 0.5), (query, height - 0.04)]
    return Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * 3])


def _arc(query: float, key: float, height: float, longest: float) -> Curve:
    """An arc above the line; a word that attends to itself has a small loop."""
    base = height - 0.05
    if query == key:
        points = [(query, base), (query - 0.16, base - 0.26), (query + 0.16, base - 0.26), (query, base)]
    else:
        # The top of such a curve is at 3/4 of its control points.
        rise = (0.12 + (height - 0.2) * (abs(query - key) / longest) ** 0.75) / 0.75
        points = [(query, base), (query, base - rise), (key, base - rise), (key, base)]
    return Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * 3])


def _write_line(
    sheet: Sheet, units: Sequence[Unit], positions: Floats, y: float, is_upright: bool, *, sign: int
) -> float:
    """Write the words of a line above (−1) or below (1) this height; return the height of the line."""
    for unit, x in zip(units, positions, strict=True):
        if is_upright and not _is_character(unit):
            vertical = "bottom" if sign < 0 else "top"
            _write(sheet, unit, x, y + 0.03 * sign, LABEL, rotation=90, ha="center", va=vertical)
        else:
            _write(sheet, unit, x, y - 0.04 if sign < 0 else y + 0.15, LABEL, ha="center", va="baseline")
    return max(_width(sheet, unit, LABEL) for unit in units) + 0.06 if is_upright else 0.2


def _paint_samples(sheet: Sheet, left: float, middle: float, largest: float, name: str) -> float:
    """Paint sample links with their values, as a legend; return its right edge."""
    shares = (1.0, 0.5, 0.25)
    axes = sheet.axes(left, middle - 0.25, 0.35, 0.6)
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(1, 0)
    sheet.text(left, middle - 0.33, name, fontsize=SMALL, color=SOFT, va="baseline")
    for number, share in enumerate(shares):
        y = (number + 0.5) / len(shares)
        width = float(_points(np.array(share)))
        axes.plot([0.08, 0.92], [y, y], color=_faded(share), linewidth=width, solid_capstyle="butt")
        label = f"{largest * share:.3g}"
        sheet.text(left + 0.42, middle - 0.25 + 0.6 * y, label, fontsize=SMALL, va="center_baseline")
    return left + 0.8


def _points(values: Floats) -> Floats:
    return 0.5 + (_MAX_POINTS - 0.5) * values


def _faded(value: float) -> tuple[float, float, float, float]:
    return to_rgba(MAIN, 0.15 + 0.85 * float(value))
