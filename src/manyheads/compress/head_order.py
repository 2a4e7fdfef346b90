"""Which heads can go: by what is lost without them, or by what the gradient says.

Greedy: of all heads that are left, the one goes without which the task's loss on a fixed sample is lowest, and what
the others cost is measured again. The loss takes one pass, a score hundreds, so the loss ranks and the score reports.
(Learned gates are in `gates.py`.)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from manyheads.errors import LensError
from manyheads.lens.heads import Head, ablation_gates, heads_of
from manyheads.lens.importance import gradient_importance
from manyheads.lens.row_sample import Sample
from manyheads.tasks import Task


@dataclass(frozen=True)
class Removal:
    """One head went."""

    head: Head
    loss: float  # of the sample, per token, without it and all that went before
    n_left: int


def count_to_remove(n_heads: int, share: float) -> int:
    """How many heads are at least this share of them; at least one is left."""
    if not 0.0 < share < 1.0:
        raise LensError(
            f"{share:g} is no share of the heads. Give more than 0 and less than 1, like 0.4 for 40 % of them."
        )
    n_removed = math.ceil(share * n_heads - 1e-9)  # 0.1 · 30 is a little more than 3
    if n_removed >= n_heads:
        raise LensError(
            f"{share:g} of {n_heads} heads is all of them. At least one must be left: give at most "
            f"{_floored((n_heads - 1) / n_heads)}."
        )
    return n_removed


def _floored(share: float) -> str:
    return f"{math.floor(share * 1000) / 1000:g}"


def greedy_order(
    task: Task, sample: Sample, n_removed: int, progress: Callable[[Removal], None] = lambda done: None
) -> list[Removal]:
    """The heads in the order in which they go: each time the one that costs least, given all that went before.

    What a head costs is measured anew only when it is next by its last measurement, since the fewer heads are left,
    the more each one costs. That is true of nearly all, and a tenth of the work.
    """
    gone: list[Removal] = []
    heads = heads_of(task.model)
    now = sample.loss(task)
    costs = dict.fromkeys(heads, -math.inf)  # not known yet: all are measured in the first round
    is_fresh = dict.fromkeys(heads, False)
    while len(gone) < n_removed:
        head = min(costs, key=lambda head: costs[head])
        if not is_fresh[head]:
            gates = ablation_gates(task.model, [*(one.head for one in gone), head])
            costs[head], is_fresh[head] = sample.loss(task, gates) - now, True
            continue
        now += costs.pop(head)
        is_fresh = dict.fromkeys(heads, False)
        gone.append(Removal(head, now, len(costs)))
        progress(gone[-1])
    return gone


def gradient_order(task: Task, sample: Sample, n_removed: int) -> list[Removal]:
    """The heads that the gradient thinks least of, least first (Michel 2019): measured once, so it costs little."""
    found = sorted(gradient_importance(task, sample, n_resamples=1), key=lambda one: one.value)
    heads: Sequence[Head] = [one.head for one in found[:n_removed]]
    n_heads = len(found)
    return [
        Removal(head, sample.loss(task, ablation_gates(task.model, heads[: index + 1])), n_heads - index - 1)
        for index, head in enumerate(heads)
    ]
