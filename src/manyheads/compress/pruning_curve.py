"""The pruning curve: score and speed against the number of heads kept, as points and as an SVG picture."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from manyheads.compress.head_removal import remove_heads
from manyheads.lens.heads import Head, heads_of
from manyheads.lens.scored_rows import Sample
from manyheads.messages import _, _n
from manyheads.metrics import Change, Score, Tally, compare_tallies, format_score
from manyheads.tasks import Task

_WIDTH, _HEIGHT = 640.0, 360.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 60.0, 44.0, 60.0
_N_TICKS = 5
_MIN_SPEED_AXIS = 1.25  # the speed axis reaches at least this ratio

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

_Scale = Callable[[float], float]


@dataclass(frozen=True)
class Speed:
    """Rows per second of a pruned model and of the whole one, measured in alternation; medians."""

    per_second: float
    whole_per_second: float
    ratio: float  # the median over repeats of their ratios, so that other load on the machine affects both alike
    n_rows: int
    n_repeats: int


@dataclass(frozen=True)
class CurvePoint:
    """The measurements of a model with some heads removed."""

    n_heads: int
    removed: tuple[str, ...]
    n_parameters: int
    loss: float  # of the sample, per token
    score: Score
    change: Change  # from the whole model, on the same rows
    speed: Speed | None = None
    fine_tune_steps: int = 0


def measure_point(
    task: Task,
    whole: Task,
    removed: Sequence[Head],
    sample: Sample,
    before: Tally,
    *,
    n_repeats: int = 0,
    fine_tune_steps: int = 0,
) -> CurvePoint:
    """Measure a pruned task; `before` is the tally of the whole one. With 0 repeats the speed is not measured."""
    tally = sample.tally(task)
    return CurvePoint(
        n_heads=len(heads_of(task.model)),
        removed=tuple(map(str, removed)),
        n_parameters=sum(parameter.numel() for parameter in task.module.parameters()),
        loss=sample.loss(task),
        score=tally.score(),
        change=compare_tallies(tally, before),
        speed=measure_speed(task, whole, sample, n_repeats) if n_repeats else None,
        fine_tune_steps=fine_tune_steps,
    )


def measure_curve(
    whole: Task,
    order: Sequence[Head],
    sample: Sample,
    counts: Sequence[int],
    *,
    n_repeats: int = 0,
    progress: Callable[[CurvePoint], None] = lambda point: None,
) -> list[CurvePoint]:
    """Measure the task with the first `count` heads of `order` removed, for each count."""
    before, points = sample.tally(whole), []
    for count in counts:
        task = remove_heads(whole, order[:count]) if count else whole
        points.append(measure_point(task, whole, order[:count], sample, before, n_repeats=n_repeats if count else 0))
        progress(points[-1])
    return points


def measure_speed(
    task: Task, whole: Task, sample: Sample, n_repeats: int, clock: Callable[[], float] = time.perf_counter
) -> Speed:
    """Score the same rows with both tasks in alternation and compare the times."""
    seconds: list[tuple[float, float]] = []
    for repeat in range(n_repeats + 1):
        elapsed = []
        for timed in (task, whole) if repeat % 2 else (whole, task):  # neither is always first
            started = clock()
            sample.tally(timed)
            elapsed.append(clock() - started)
        seconds.append((elapsed[0], elapsed[1]) if repeat % 2 else (elapsed[1], elapsed[0]))
    counted = seconds[1:]  # the first is a warm-up
    return Speed(
        per_second=len(sample.rows) / statistics.median(pruned for pruned, _ in counted),
        whole_per_second=len(sample.rows) / statistics.median(original for _, original in counted),
        ratio=statistics.median(original / pruned for pruned, original in counted),
        n_rows=len(sample.rows),
        n_repeats=n_repeats,
    )


def curve_svg(points: Sequence[CurvePoint]) -> str:
    """Draw the score with its interval (left axis) and the speed relative to the whole model (right axis)."""
    points = sorted(points, key=lambda point: -point.n_heads)
    name = points[0].score.name
    lowest, highest = min(point.score.low for point in points), max(point.score.high for point in points)
    ratios = [(point.n_heads, point.speed.ratio if point.speed else 1.0) for point in points]
    has_speed = any(point.speed for point in points)
    top_speed = max(_MIN_SPEED_AXIS, *(ratio for _n_heads, ratio in ratios))
    x = _scale(points[0].n_heads, min(point.n_heads for point in points), _LEFT, _WIDTH - _RIGHT)
    score_y = _scale(lowest, highest, _HEIGHT - _BOTTOM, _TOP)
    speed_y = _scale(0.0, top_speed, _HEIGHT - _BOTTOM, _TOP)
    title = escape(_("{name} and speed by heads kept", name=name))
    x_title = _("heads kept")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pruning" role="img" aria-label="{title}" width="{_WIDTH:.0f}" '
        f'height="{_HEIGHT:.0f}" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" style="max-width:100%;height:auto">',
        f'<style>{_STYLE}</style><rect class="paper" width="100%" height="100%"/>',
        *_score_axis(name, lowest, highest, score_y),
        *(_speed_axis(speed_y, top_speed) if has_speed else ()),
        *(_tick_label(x(point.n_heads), str(point.n_heads)) for point in points),
        f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 14:.0f}" text-anchor="middle">{x_title}</text>',
        *(_error_bar(point, x(point.n_heads), score_y) for point in points),
        _line("score", [(x(point.n_heads), score_y(point.score.value)) for point in points]),
        _line("speed", [(x(heads), speed_y(ratio)) for heads, ratio in ratios]) if has_speed else "",
        "</svg>",
    ]
    return "".join(parts)


def _scale(low: float, high: float, start: float, end: float) -> _Scale:
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high != low else 0.5)


def _ticks(low: float, high: float) -> list[float]:
    return [low + (high - low) * step / (_N_TICKS - 1) for step in range(_N_TICKS)]


def _score_axis(name: str, low: float, high: float, score_y: _Scale) -> list[str]:
    parts = [f'<text class="score-name" x="{_LEFT:.0f}" y="24">{escape(name)}</text>']
    for value in _ticks(low, high):
        y = score_y(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format_score(name, value)}</text>')
    return parts


def _speed_axis(speed_y: _Scale, top: float) -> list[str]:
    x, title = _WIDTH - _RIGHT, _("speed, × whole model")
    parts = [f'<text class="speed-name" x="{x:.0f}" y="24" text-anchor="end">{title}</text>']
    return parts + [f'<text x="{x + 8}" y="{speed_y(value) + 4:.1f}">{value:.2f}</text>' for value in _ticks(0.0, top)]


def _tick_label(x: float, label: str) -> str:
    return f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 20:.1f}" text-anchor="middle">{label}</text>'


def _error_bar(point: CurvePoint, x: float, score_y: _Scale) -> str:
    """Draw a point with its interval; the tooltip has the numbers."""
    score = point.score
    heads = _n("1 head", "{n} heads", point.n_heads)
    tooltip = f"{heads}: {score.name} {score.value:.2f} [{score.low:.2f}, {score.high:.2f}]"
    return (
        f"<g><title>{escape(tooltip)}</title>"
        f'<line class="score" x1="{x:.1f}" x2="{x:.1f}" y1="{score_y(score.low):.1f}" y2="{score_y(score.high):.1f}"/>'
        f'<circle class="dot" cx="{x:.1f}" cy="{score_y(score.value):.1f}" r="4"/></g>'
    )


def _line(kind: str, coordinates: Sequence[tuple[float, float]]) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in coordinates)}"/>'
