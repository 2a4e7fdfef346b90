"""The curve of pruning: score and speed against heads kept. `curve_picture` draws it."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from manyheads.compress.head_removal import remove_heads
from manyheads.lens.heads import Head, heads_of
from manyheads.lens.row_sample import Sample
from manyheads.metrics import Change, Score, Tally, compare_tallies
from manyheads.tasks import Task


@dataclass(frozen=True)
class Speed:
    """How many rows a second two models answer, measured in turn; medians."""

    per_second: float
    whole_per_second: float
    ratio: float  # the median of the turns' own ratios: what slowed the machine in a turn slowed both
    n_rows: int
    n_turns: int


@dataclass(frozen=True)
class CurvePoint:
    """A model with so many heads."""

    n_heads: int
    removed: tuple[str, ...]
    n_parameters: int
    loss: float  # of the sample, per token
    score: Score
    change: Change  # against the whole model, on the same rows
    speed: Speed | None = None
    fine_tune_steps: int = 0  # steps of training since heads went


def measure_point(
    task: Task,
    whole: Task,
    removed: Sequence[Head],
    sample: Sample,
    before: Tally,
    *,
    n_turns: int = 0,
    fine_tune_steps: int = 0,
) -> CurvePoint:
    """Where a model without some heads stands; `before` is what the whole one comes to.

    Its speed is measured in so many turns; in none, not at all.
    """
    tally = sample.tally(task)
    return CurvePoint(
        n_heads=len(heads_of(task.model)),
        removed=tuple(map(str, removed)),
        n_parameters=sum(parameter.numel() for parameter in task.module.parameters()),
        loss=sample.loss(task),
        score=tally.score(),
        change=compare_tallies(tally, before),
        speed=measure_speed(task, whole, sample, n_turns) if n_turns else None,
        fine_tune_steps=fine_tune_steps,
    )


def measure_curve(
    whole: Task,
    order: Sequence[Head],
    sample: Sample,
    counts: Sequence[int],
    *,
    n_turns: int = 0,
    progress: Callable[[CurvePoint], None] = lambda done: None,
) -> list[CurvePoint]:
    """The points at which so many of the heads, the first to go first, are removed."""
    before, points = sample.tally(whole), []
    for count in counts:
        task = remove_heads(whole, order[:count]) if count else whole
        points.append(measure_point(task, whole, order[:count], sample, before, n_turns=n_turns if count else 0))
        progress(points[-1])
    return points


def measure_speed(
    task: Task, whole: Task, sample: Sample, n_turns: int, clock: Callable[[], float] = time.perf_counter
) -> Speed:
    """Answer the same rows with both, in turn, and compare."""
    seconds: list[tuple[float, float]] = []
    for turn in range(n_turns + 1):
        taken = []
        for one in (task, whole) if turn % 2 else (whole, task):  # neither always goes first
            started = clock()
            sample.tally(one)
            taken.append(clock() - started)
        seconds.append((taken[0], taken[1]) if turn % 2 else (taken[1], taken[0]))
    counted = seconds[1:]  # the first turn warms up
    return Speed(
        per_second=len(sample.rows) / statistics.median(mine for mine, _ in counted),
        whole_per_second=len(sample.rows) / statistics.median(other for _, other in counted),
        ratio=statistics.median(other / mine for mine, other in counted),
        n_rows=len(sample.rows),
        n_turns=n_turns,
    )
