"""From what the data looks like to a recipe that fits into the time there is.

`propose` is pure but for what it is given to measure with: the same stats and the same estimate give the same plan.
What is chosen for each kind of task stands in the modules called choosing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from manyheads.errors import RecipeError
from manyheads.init.cost_estimate import CostEstimate
from manyheads.init.document_choices import propose_language, propose_masked
from manyheads.init.label_choices import propose_classify, propose_tag
from manyheads.init.pair_choices import propose_translation
from manyheads.init.proposal import Choice, Proposal, round_off, to_commented_toml, with_steps
from manyheads.init.survey import DatasetStats
from manyheads.run.recipe import Recipe

__all__ = ["Choice", "Plan", "Proposal", "propose", "propose_translation", "round_off", "to_commented_toml"]

_SMALLER = {"base": "small", "small": "tiny"}  # what to fall back to where a machine is too slow
_PROPOSERS: dict[str, Callable[[DatasetStats, str], Proposal]] = {
    "seq2seq": propose_translation,
    "classify": propose_classify,
    "tag": propose_tag,
    "language": propose_language,
    "masked": propose_masked,
}


@dataclass(frozen=True)
class Plan:
    """A proposal that fits into the time there is."""

    proposal: Proposal
    estimate: CostEstimate
    n_epochs: float  # times the text is met
    n_epochs_ideal: float  # and would be, if there were time

    @property
    def seconds(self) -> float:
        """How long the whole run takes if the machine stays as busy as it is now."""
        return self.estimate.seconds(self.proposal.recipe())

    @property
    def idle_seconds(self) -> float:
        """How long it takes when the machine does nothing else."""
        return self.estimate.idle_seconds(self.proposal.recipe())

    @property
    def is_cut(self) -> bool:
        """Whether the budget ends training notably sooner than would be good."""
        return self.n_epochs < 0.95 * self.n_epochs_ideal


def propose(stats: DatasetStats, budget: float | None, measure: Callable[[Recipe, DatasetStats], CostEstimate]) -> Plan:
    """A plan for this text within a budget of seconds, or within one chosen by the size of the text.

    A budget that is given holds for the machine as busy as it is; the other for a free one, lest a moment's load
    spoil a recipe. Where a model is too slow to meet the whole text even once, a smaller one is proposed.
    """
    preset = ""
    while True:
        proposal = _PROPOSERS[stats.task.kind](stats, preset)
        estimate = measure(proposal.recipe(), stats)
        plan = _fit(proposal, estimate, proposal.budget * estimate.slowdown if budget is None else budget)
        is_late = budget is not None and plan.seconds > budget
        if (plan.n_epochs >= 1 and not is_late) or proposal.preset not in _SMALLER:
            break
        preset = _SMALLER[proposal.preset]
    if is_late:
        steps = plan.proposal.get("train.steps", 0)
        raise RecipeError(
            f"The budget is too short: even {steps} steps, with preparing and scoring, take about "
            f"{plan.seconds:,.0f} s here. Give --budget {math.ceil(plan.seconds / 60)}m or more."
        )
    return plan


def _fit(proposal: Proposal, estimate: CostEstimate, budget: float) -> Plan:
    per_update = estimate.batches_per_epoch / proposal.get("train.accumulation_steps", 1)  # updates that an epoch is
    wanted = max(proposal.min_steps, _two_digits(proposal.n_epochs * per_update))
    full = with_steps(proposal, wanted, per_update)
    fixed = (estimate.prepare_seconds + estimate.finish_seconds) * estimate.slowdown
    variable = estimate.seconds(full.recipe()) - fixed
    affordable = _two_digits(wanted * max(0.0, budget - fixed) / variable)
    least = proposal.min_steps // 10
    steps = max(least, min(wanted, affordable))
    fitting = with_steps(proposal, steps, per_update)
    while steps > least and estimate.seconds(fitting.recipe()) > budget:  # shorter runs validate and save more often
        steps = max(least, _two_digits(0.98 * steps))
        fitting = with_steps(proposal, steps, per_update)
    return Plan(fitting, estimate, steps / per_update, wanted / per_update)


def _two_digits(number: float) -> int:
    """A count of steps is an estimate: 11,316 → 11,000."""
    scale = 10 ** max(0, int(math.log10(max(1.0, number))) - 1)
    return int(number // scale * scale)
