"""`prune`: a bundle without a share of its heads, with the measured cost.

Three methods choose the heads. `greedy` removes the head whose removal raises the task's loss on a fixed sample least,
then measures the others again; the loss takes one forward pass, a score hundreds, so the loss ranks and the score
reports. `gradient` ranks once by gradient importance (Michel 2019). `gates` learns them in training (`learned_gates`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from manyheads.bundle import Bundle
from manyheads.compress.fine_tuning import FineTuner, FineTuneSettings, OnStep
from manyheads.compress.head_removal import pruned_bundle, remove_heads
from manyheads.compress.learned_gates import learn_gates
from manyheads.compress.pruning_curve import CurvePoint, measure_curve, measure_point
from manyheads.compress.trade_off import MAX_COST, Compressed, TradeOff, cost_of, require_small_cost
from manyheads.errors import LensError
from manyheads.lens.heads import Head, ablation_gates, heads_of
from manyheads.lens.importance import gradient_importance
from manyheads.lens.scored_rows import Sample
from manyheads.messages import _, _n
from manyheads.tasks import Task

Method = Literal["greedy", "gates", "gradient"]
StageProgress = Callable[[str, int, int], None]  # (stage, done, total)

_N_POINTS = 4  # of the curve, besides the whole model
_N_REPEATS = 3  # of each measurement of speed


@dataclass(frozen=True)
class Removal:
    """The removal of one head."""

    head: Head
    loss: float  # of the sample, per token, without this head and all heads removed before it
    n_left: int


@dataclass(frozen=True)
class PruningReport:
    """The removed heads in the order of removal, and the curve from the whole model to the pruned one."""

    order: Sequence[Head]
    points: Sequence[CurvePoint]

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {"order": [str(head) for head in self.order], "points": [asdict(point) for point in self.points]}


def prune(
    bundle: Bundle,
    choosing: Sample,
    reporting: Sample,
    share: float,
    method: Method = "greedy",
    *,
    fine_tuner: FineTuner | None = None,
    gates: FineTuneSettings | None = None,
    fine_tuning: FineTuneSettings | None = None,
    max_cost: float = MAX_COST,
    progress: StageProgress = lambda stage, done, total: None,
) -> Compressed[PruningReport]:
    """Remove a share of the heads of a bundle and measure the cost; the given bundle is not changed.

    One sample chooses the heads, another measures the cost: on the sample that chose them the cost looks too small.
    A cost of more than `max_cost` is refused. The method "gates" needs a fine-tuner, and so does fine-tuning after
    pruning, which `fine_tuning` requests.
    """
    if fine_tuner is None and (method == "gates" or fine_tuning is not None):
        raise ValueError("Learned gates and fine-tuning need a fine_tuner.")
    whole = bundle.task
    n_removed = count_to_remove(len(heads_of(whole.model)), share)
    if method == "gates":
        assert fine_tuner is not None
        task, order, points = _prune_by_gates(
            whole, reporting, n_removed, fine_tuner, gates or FineTuneSettings(), progress
        )
    else:
        order = _choose_order(whole, choosing, n_removed, method, progress)
        points = _measure_curve(whole, order, reporting, progress)
        task = remove_heads(whole, order)
    if fine_tuning is not None:
        assert fine_tuner is not None
        fine_tuner.fine_tune(task, fine_tuning, _on_step("fine-tuning", fine_tuning, progress))
        points.append(
            measure_point(
                task,
                whole,
                order,
                reporting,
                reporting.tally(whole),
                n_repeats=_N_REPEATS,
                fine_tune_steps=fine_tuning.steps,
            )
        )
    last = points[-1]
    assert last.speed is not None
    trade_off = TradeOff(last.change, last.speed.ratio)
    removal = _n("Removing 1 head", "Removing {n} heads", n_removed)
    require_small_cost(last.change, removal, _cheaper_advice(points, max_cost), max_cost)
    return Compressed(pruned_bundle(bundle, task), trade_off, PruningReport(order, points))


def count_to_remove(n_heads: int, share: float) -> int:
    """Return the smallest number of heads that is at least this share; at least one head must remain."""
    if not 0.0 < share < 1.0:
        raise LensError(
            _(
                "The share {share:g} is not between 0 and 1. Give a share such as 0.4 for 40 % of the heads.",
                share=share,
            )
        )
    n_removed = math.ceil(share * n_heads - 1e-9)  # 0.1 · 30 is slightly more than 3
    if n_removed >= n_heads:
        largest = math.floor((n_heads - 1) / n_heads * 1000) / 1000
        raise LensError(
            _(
                "A share of {share:g} removes all {n_heads} heads. Keep at least one: give at most {largest:g}.",
                share=share,
                n_heads=n_heads,
                largest=largest,
            )
        )
    return n_removed


def greedy_order(
    task: Task, sample: Sample, n_removed: int, progress: Callable[[Removal], None] = lambda removal: None
) -> list[Removal]:
    """Remove heads one at a time, each time the one that costs least without those already removed.

    A head is measured again only when its last measurement puts it first. The fewer heads remain, the more each one
    costs, for nearly all of them, so this gives the same order with a tenth of the work.
    """
    removals: list[Removal] = []
    heads = heads_of(task.model)
    current_loss = sample.loss(task)
    costs = dict.fromkeys(heads, -math.inf)  # unknown, so that all are measured in the first round
    is_current = dict.fromkeys(heads, False)
    while len(removals) < n_removed:
        head = min(costs, key=lambda head: costs[head])
        if not is_current[head]:
            gates = ablation_gates(task.model, [*(removal.head for removal in removals), head])
            costs[head], is_current[head] = sample.loss(task, gates) - current_loss, True
            continue
        current_loss += costs.pop(head)
        is_current = dict.fromkeys(heads, False)
        removals.append(Removal(head, current_loss, len(costs)))
        progress(removals[-1])
    return removals


def gradient_order(task: Task, sample: Sample, n_removed: int) -> list[Removal]:
    """Remove the heads of least gradient importance, measured once (Michel 2019)."""
    ranked = sorted(gradient_importance(task, sample, n_resamples=1), key=lambda importance: importance.value)
    heads = [importance.head for importance in ranked[:n_removed]]
    return [
        Removal(head, sample.loss(task, ablation_gates(task.model, heads[: index + 1])), len(ranked) - index - 1)
        for index, head in enumerate(heads)
    ]


def _choose_order(whole: Task, sample: Sample, n_removed: int, method: Method, progress: StageProgress) -> list[Head]:
    if method == "gradient":
        return [removal.head for removal in gradient_order(whole, sample, n_removed)]
    n_heads = len(heads_of(whole.model))
    removals = greedy_order(
        whole, sample, n_removed, lambda removal: progress("removing heads", n_heads - removal.n_left, n_removed)
    )
    return [removal.head for removal in removals]


def _measure_curve(whole: Task, order: Sequence[Head], sample: Sample, progress: StageProgress) -> list[CurvePoint]:
    n_removed = len(order)
    counts = sorted({0, n_removed, *(round(n_removed * part / _N_POINTS) for part in range(_N_POINTS))})
    return measure_curve(
        whole,
        order,
        sample,
        counts,
        n_repeats=_N_REPEATS,
        progress=lambda point: progress("measuring", len(point.removed), n_removed),
    )


def _prune_by_gates(
    whole: Task,
    sample: Sample,
    n_removed: int,
    fine_tuner: FineTuner,
    settings: FineTuneSettings,
    progress: StageProgress,
) -> tuple[Task, list[Head], list[CurvePoint]]:
    before = sample.tally(whole)
    copy = remove_heads(whole, [])  # the model is trained with its gates
    ranked = learn_gates(copy, fine_tuner, n_removed, settings, _on_step("learning gates", settings, progress))
    order = [head for head, _ in ranked[:n_removed]]
    task = remove_heads(copy, order)
    points = [
        measure_point(whole, whole, [], sample, before),
        measure_point(task, whole, order, sample, before, n_repeats=_N_REPEATS),
    ]
    return task, order, points


def _cheaper_advice(points: Sequence[CurvePoint], max_cost: float) -> str:
    """Return how to prune at a lower cost: the most heads whose measured removal is accepted, and fine-tuning."""
    affordable = [len(point.removed) for point in points if point.removed and cost_of(point.change) <= max_cost]
    advice = _("Remove fewer heads (--share)")
    if affordable:
        share = math.floor(1000 * max(affordable) / points[0].n_heads) / 1000
        advice = _("Remove fewer heads (--share {share:g} costs at most {max_cost:g})", share=share, max_cost=max_cost)
    if points[-1].fine_tune_steps:
        return _("{advice} or fine-tune longer (--fine-tune).", advice=advice)
    return _("{advice} or fine-tune (--fine-tune 1500).", advice=advice)


def _on_step(stage: str, settings: FineTuneSettings, progress: StageProgress) -> OnStep:
    return lambda step: progress(stage, step.step, settings.steps)
