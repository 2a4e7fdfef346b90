"""Curves on logarithmic axes as SVG, in panels, and the power law that fits a curve."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
.curves { --paper: #fff; --ink: #1b1d21; --soft: #5d636e; --line: #e3e5e9;
  --one: #0b62a4; --two: #c2410c; --three: #0f766e; --four: #7c3aed; }
@media (prefers-color-scheme: dark) {
  .curves { --paper: #14161a; --ink: #e7e9ed; --soft: #9ba2ae; --line: #2c3038;
    --one: #6cb6f0; --two: #f5a06a; --three: #5ecfc0; --four: #b9a0f5; }
}
.curves text { font: 11px system-ui, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans SC", sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; }
.curves text.title { fill: var(--ink); font-weight: 600; font-size: 12px; }
.curves .paper { fill: var(--paper); }
.curves .grid { stroke: var(--line); shape-rendering: crispEdges; }
.curves polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.curves .limit { stroke: var(--soft); stroke-dasharray: 4 3; }
.curves .s0 { stroke: var(--one); } .curves .f0 { fill: var(--one); }
.curves .s1 { stroke: var(--two); } .curves .f1 { fill: var(--two); }
.curves .s2 { stroke: var(--three); } .curves .f2 { fill: var(--three); }
.curves .s3 { stroke: var(--four); } .curves .f3 { fill: var(--four); }
"""
_WIDTH, _HEIGHT = 330, 270  # of a panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 24, 34, 34
_ROW, _MARGIN = 15, 22  # of the legend


@dataclass(frozen=True)
class Curve:
    """One curve with its label."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """Curves with a common horizontal axis."""

    title: str
    across: str
    curves: Sequence[Curve]
    format_value: Callable[[float], str]
    limit: tuple[float, str] | None = None  # a value not to exceed, and its label


def fit_power(points: Sequence[tuple[float, float]]) -> float:
    """Return the exponent of the power law that fits the points: the least-squares slope on logarithmic axes."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x, mean_y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def curves_svg(title: str, panels: Sequence[Panel], columns: int = 2) -> str:
    """Return all panels as one SVG image, `columns` per row, with a light and a dark color scheme."""
    legend = max(len(panel.curves) + (panel.limit is not None) for panel in panels) * _ROW + 6
    tall, rows = _HEIGHT + legend, -(-len(panels) // columns)
    width, height = columns * _WIDTH, rows * tall + 8
    parts = [
        f'<g transform="translate({number % columns * _WIDTH} {number // columns * tall})">{_draw(panel)}</g>'
        for number, panel in enumerate(panels)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="curves" role="img" aria-label="{escape(title)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" style="max-width:100%;height:auto">'
        f'<style>{_STYLE}</style><rect class="paper" width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    )


def _draw(panel: Panel) -> str:
    every = [point for curve in panel.curves for point in curve.points]
    xs = sorted({x for x, _ in every})
    ys = [y for _, y in every] + ([panel.limit[0]] if panel.limit else [])
    low_x, high_x, low_y, high_y = xs[0], xs[-1], min(ys) / 1.25, max(ys) * 1.25

    def to_pixels(x: float, y: float) -> tuple[float, float]:
        right = math.log(x / low_x) / math.log(high_x / low_x) if high_x > low_x else 0.5
        up = math.log(y / low_y) / math.log(high_y / low_y)
        return _LEFT + right * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<text class="title" x="{_LEFT}" y="20">{escape(panel.title)}</text>']
    for level in _levels(low_y, high_y):
        _, y = to_pixels(low_x, level)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(panel.format_value(level))}</text>'
        )
    taken = -math.inf
    for x in xs:
        across, _ = to_pixels(x, low_y)
        label = _short(x)
        half = 3.2 * len(label) + 3
        if across - half < taken:  # labels must not touch
            continue
        taken = across + half
        parts.append(f'<text x="{across:.1f}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{label}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{_HEIGHT - 5}" text-anchor="middle">{escape(panel.across)}</text>')
    if panel.limit:
        _, y = to_pixels(low_x, panel.limit[0])
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    for number, curve in enumerate(panel.curves):
        at = [to_pixels(*point) for point in curve.points]
        parts.append(f'<polyline class="s{number}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in at)}"/>')
        parts += [f'<circle class="f{number}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>' for x, y in at]
        y = _HEIGHT + 12 + number * _ROW
        parts.append(f'<rect class="f{number}" x="{_MARGIN}" y="{y - 7}" width="14" height="4"/>')
        parts.append(f'<text x="{_MARGIN + 20}" y="{y}">{escape(curve.name)}</text>')
    if panel.limit:
        y = _HEIGHT + 12 + len(panel.curves) * _ROW
        parts.append(f'<line class="limit" x1="{_MARGIN}" x2="{_MARGIN + 14}" y1="{y - 5}" y2="{y - 5}"/>')
        parts.append(f'<text x="{_MARGIN + 20}" y="{y}">{escape(panel.limit[1])}</text>')
    return "".join(parts)


def _levels(low: float, high: float) -> list[float]:
    """Return round numbers in a range: powers of ten, with numbers between them if there are fewer than three."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    tens = [10.0**power for power in range(first, last + 1)]
    for steps in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
        levels = [ten * step for ten in tens for step in steps if low <= ten * step <= high]
        if len(levels) >= 3:
            return levels
    return levels


def _short(number: float) -> str:
    return f"{number / 1000:g}k" if number >= 10_000 and number % 1000 == 0 else f"{number:,.0f}"
