"""The pruning curve: score and speed against the number of heads kept, as points and as an SVG picture."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from manyheads.charts import Axis, drawing, element, line, polyline, text, title
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
.pruning text { font: 12px system-ui, "Segoe UI", Roboto, "PingFang SC", "Microsoft YaHei", "Noto Sans SC", sans-serif;
  fill: var(--soft); font-variant-numeric: tabular-nums; }
.pruning .grid { stroke: var(--line); shape-rendering: crispEdges; }
.pruning .score { stroke: var(--main); fill: none; stroke-width: 2; }
.pruning .dot { fill: var(--main); }
.pruning .speed { stroke: var(--accent); fill: none; stroke-width: 2; stroke-dasharray: 5 4; }
.pruning text.score-name { fill: var(--main); stroke: none; font-weight: 600; }
.pruning text.speed-name { fill: var(--accent); stroke: none; font-weight: 600; }
"""


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
    x = Axis(min(point.n_heads for point in points), points[0].n_heads, _WIDTH - _RIGHT, _LEFT)
    score_y = Axis(lowest, highest, _HEIGHT - _BOTTOM, _TOP)
    speed_y = Axis(0.0, top_speed, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        *_score_axis(name, score_y),
        *(_speed_axis(speed_y) if has_speed else ()),
        *(_tick_label(x(point.n_heads), point.n_heads) for point in points),
        text(_WIDTH / 2, _HEIGHT - 14, _("heads kept"), text_anchor="middle"),
        *(_error_bar(point, x(point.n_heads), score_y) for point in points),
        polyline("score", [(x(point.n_heads), score_y(point.score.value)) for point in points]),
        polyline("speed", [(x(heads), speed_y(ratio)) for heads, ratio in ratios]) if has_speed else "",
    ]
    label = _("{name} and speed by heads kept", name=name)
    return drawing("pruning", _WIDTH, _HEIGHT, parts, label=label, style=_STYLE)


def _score_axis(name: str, score_y: Axis) -> list[str]:
    parts = [text(_LEFT, 24, name, class_="score-name")]
    for value in score_y.even_ticks(_N_TICKS):
        y = score_y(value)
        parts.append(line("grid", _LEFT, _WIDTH - _RIGHT, y, y))
        parts.append(text(_LEFT - 8, y + 4, format_score(name, value), text_anchor="end"))
    return parts


def _speed_axis(speed_y: Axis) -> list[str]:
    x = _WIDTH - _RIGHT
    heading = text(x, 24, _("speed, × whole model"), class_="speed-name", text_anchor="end")
    return [heading, *(text(x + 8, speed_y(value) + 4, f"{value:.2f}") for value in speed_y.even_ticks(_N_TICKS))]


def _tick_label(x: float, n_heads: int) -> str:
    return text(x, _HEIGHT - _BOTTOM + 20, n_heads, text_anchor="middle")


def _error_bar(point: CurvePoint, x: float, score_y: Axis) -> str:
    """Draw a point with its interval; the tooltip has the numbers."""
    score = point.score
    heads = _n("1 head", "{n} heads", point.n_heads)
    tooltip = f"{heads}: {score.name} {score.value:.2f} [{score.low:.2f}, {score.high:.2f}]"
    bar = line("score", x, x, score_y(score.low), score_y(score.high))
    return element("g", title(tooltip) + bar + element("circle", class_="dot", cx=x, cy=score_y(score.value), r=4))
