"""`prune`: a bundle's task without a share of its heads, from the choice of heads to what it cost.

Which heads go is decided by greedy removal, by learned gates or by the gradient; then they are really removed; then
the model may be trained on for a while, so that the heads that are left take over.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from manyheads.compress.fine_tuning import FineTuner, FineTuneSettings
from manyheads.compress.hard_concrete import learn_gates
from manyheads.compress.head_order import count_to_remove, gradient_order, greedy_order
from manyheads.compress.head_removal import remove_heads
from manyheads.compress.pruning_curve import CurvePoint, measure_curve, measure_point
from manyheads.lens.heads import Head, heads_of
from manyheads.lens.row_sample import Sample
from manyheads.tasks import Task
from manyheads.train import Step

By = Literal["greedy", "gates", "gradient"]
Tell = Callable[[str, int, int], None]  # what is being done, how far, of how much

_N_POINTS = 4  # of a curve, besides the whole model
_TURNS = 3


@dataclass(frozen=True)
class PruningResult:
    """What is left, and how it came about."""

    task: Task
    order: Sequence[Head]  # the first to go first
    points: Sequence[CurvePoint]  # from the whole model to this one


def prune(
    whole: Task,
    choosing: Sample,
    reporting: Sample,
    share: float,
    by: By = "greedy",
    *,
    fine_tuner: FineTuner | None = None,
    gates: FineTuneSettings | None = None,
    fine_tuning: FineTuneSettings | None = None,
    tell: Tell = lambda what, done, total: None,
) -> PruningResult:
    """A task without so many of its heads; `whole` stays as it is.

    One sample chooses the heads, another says what that cost: what was chosen by a sample looks too good on it.
    Learned gates need a fine_tuner, and so does training on afterwards, which is done if `fine_tuning` says how.
    """
    n_removed = count_to_remove(len(heads_of(whole.model)), share)
    before = reporting.tally(whole)
    points: list[CurvePoint] = []

    def on_step(what: str, settings: FineTuneSettings) -> Callable[[Step], None]:
        return lambda step: tell(what, step.step, settings.steps)

    if by == "gates":
        if fine_tuner is None:
            raise ValueError("Learned gates need a fine_tuner.")
        gates = gates or FineTuneSettings()
        learning = remove_heads(whole, [])  # a copy: the model learns with its gates
        found = learn_gates(learning, fine_tuner, n_removed, gates, on_step("learning gates", gates))
        order = [head for head, _ in found[:n_removed]]
        points.append(measure_point(whole, whole, [], reporting, before))
        task = remove_heads(learning, order)
        points.append(measure_point(task, whole, order, reporting, before, n_turns=_TURNS))
    else:
        order = _choose(whole, choosing, n_removed, by, tell)
        counts = sorted({0, n_removed, *(round(n_removed * part / _N_POINTS) for part in range(_N_POINTS))})
        points += measure_curve(
            whole,
            order,
            reporting,
            counts,
            n_turns=_TURNS,
            progress=lambda point: tell("measuring", len(point.removed), n_removed),
        )
        task = remove_heads(whole, order)
    if fine_tuning is not None:
        if fine_tuner is None:
            raise ValueError("Fine-tuning needs a fine_tuner.")
        fine_tuner.fine_tune(task, fine_tuning, on_step("fine-tuning", fine_tuning))
        points.append(
            measure_point(task, whole, order, reporting, before, n_turns=_TURNS, fine_tune_steps=fine_tuning.steps)
        )
    return PruningResult(task, order, points)


def _choose(whole: Task, sample: Sample, n_removed: int, by: By, tell: Tell) -> list[Head]:
    if by == "gradient":
        return [one.head for one in gradient_order(whole, sample, n_removed)]
    n_heads = len(heads_of(whole.model))
    found = greedy_order(whole, sample, n_removed, lambda one: tell("removing heads", n_heads - one.n_left, n_removed))
    return [one.head for one in found]


def pruning_to_json(pruned: PruningResult) -> dict[str, Any]:
    """The order in which heads went and the points of the curve, as JSON can hold them."""
    return {"order": [str(head) for head in pruned.order], "points": [asdict(point) for point in pruned.points]}
