"""The curve of pruning as a picture: an SVG that needs nothing else, in light and in dark surroundings."""

from collections.abc import Callable, Sequence
from html import escape

from manyheads.compress.pruning_curve import CurvePoint
from manyheads.metrics import format_score

_WIDTH, _HEIGHT = 640.0, 360.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 60.0, 44.0, 60.0
_N_MARKS = 5

_STYLE = """
.pruning { --paper: #fff; --ink: #1b1d21; --soft: #5d636e; --line: #e3e5e9; --main: #0b62a4; --accent: #b8500a; }
@media (prefers-color-scheme: dark) {
  .pruning { --paper: #14161a; --ink: #e7e9ed; --soft: #9ba2ae; --line: #2c3038; --main: #6cb6f0; --accent: #f0a35e; }
}
.pruning text { font: 12px system-ui, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans SC", sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; }
.pruning .paper { fill: var(--paper); }
.pruning .grid { stroke: var(--line); shape-rendering: crispEdges; }
.pruning .score { stroke: var(--main); fill: none; stroke-width: 2; }
.pruning .dot { fill: var(--main); }
.pruning .speed { stroke: var(--accent); fill: none; stroke-width: 2; stroke-dasharray: 5 4; }
.pruning text.score-name { fill: var(--main); stroke: none; font-weight: 600; }
.pruning text.speed-name { fill: var(--accent); stroke: none; font-weight: 600; }
"""


def curve_svg(points: Sequence[CurvePoint]) -> str:
    """Score with its interval (left scale) and speed against the whole model (right scale), by heads kept."""
    points = sorted(points, key=lambda point: -point.n_heads)
    name = points[0].score.name
    lows, highs = [point.score.low for point in points], [point.score.high for point in points]
    ratios = [(point.n_heads, point.speed.ratio if point.speed else 1.0) for point in points]
    has_speed = any(point.speed for point in points)
    across = _scale(points[0].n_heads, min(point.n_heads for point in points), _LEFT, _WIDTH - _RIGHT)
    up = _scale(min(lows), max(highs), _HEIGHT - _BOTTOM, _TOP)
    speed_up = _scale(0.0, max(1.25, *(ratio for _, ratio in ratios)), _HEIGHT - _BOTTOM, _TOP)
    told = escape(f"{name} and speed against heads kept · 得分与速度随保留头数的变化")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pruning" role="img" aria-label="{told}" width="{_WIDTH:.0f}" '
        f'height="{_HEIGHT:.0f}" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" style="max-width:100%;height:auto">',
        f'<style>{_STYLE}</style><rect class="paper" width="100%" height="100%"/>',
        *_score_axis(name, min(lows), max(highs), up),
        *(_speed_axis(speed_up, max(1.25, *(ratio for _, ratio in ratios))) if has_speed else ()),
        *(_count(across(point.n_heads), str(point.n_heads)) for point in points),
        f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 14:.0f}" text-anchor="middle">heads kept · 保留的头数</text>',
        *(_bar(point, across(point.n_heads), up) for point in points),
        _line("score", [(across(point.n_heads), up(point.score.value)) for point in points]),
        _line("speed", [(across(heads), speed_up(ratio)) for heads, ratio in ratios]) if has_speed else "",
        "</svg>",
    ]
    return "".join(parts)


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high != low else 0.5)


def _marks(low: float, high: float) -> list[float]:
    return [low + (high - low) * step / (_N_MARKS - 1) for step in range(_N_MARKS)]


def _score_axis(name: str, low: float, high: float, up: Callable[[float], float]) -> list[str]:
    parts = [f'<text class="score-name" x="{_LEFT:.0f}" y="24">{escape(name)} · 得分</text>']
    for value in _marks(low, high):
        y = up(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format_score(name, value)}</text>')
    return parts


def _speed_axis(up: Callable[[float], float], most: float) -> list[str]:
    x = _WIDTH - _RIGHT
    parts = [f'<text class="speed-name" x="{x:.0f}" y="24" text-anchor="end">speed, × whole · 速度倍数</text>']
    return parts + [f'<text x="{x + 8}" y="{up(value) + 4:.1f}">{value:.2f}</text>' for value in _marks(0.0, most)]


def _count(x: float, told: str) -> str:
    return f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 20:.1f}" text-anchor="middle">{told}</text>'


def _bar(point: CurvePoint, x: float, up: Callable[[float], float]) -> str:
    """A point with its interval, which says its numbers when it is pointed at."""
    score = point.score
    told = f"{point.n_heads} heads: {score.name} {score.value:.2f} [{score.low:.2f}, {score.high:.2f}]"
    return (
        f"<g><title>{escape(told)}</title>"
        f'<line class="score" x1="{x:.1f}" x2="{x:.1f}" y1="{up(score.low):.1f}" y2="{up(score.high):.1f}"/>'
        f'<circle class="dot" cx="{x:.1f}" cy="{up(score.value):.1f}" r="4"/></g>'
    )


def _line(kind: str, coordinates: Sequence[tuple[float, float]]) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in coordinates)}"/>'
