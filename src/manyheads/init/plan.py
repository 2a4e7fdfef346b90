"""A recipe that fits the time available: the task's proposal, measured on this machine, with its number of steps.

`propose` depends on the machine only through `measure`: the same survey and estimate give the same plan.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from manyheads.data import CleanSettings
from manyheads.errors import RecipeError
from manyheads.init.cost_estimate import CostEstimate
from manyheads.run.recipe import DataSettings, Recipe
from manyheads.tasks import TASKS
from manyheads.tasks.proposal import Choice, Proposal, Survey

_COLUMN_REASONS = {
    "source": "the column to translate from, or to answer",
    "target": "the column to translate into, or of the answers",
    "text": "the column of texts",
    "tags": "the column of the tags of their words",
    "label": "the column of labels",
}


@dataclass(frozen=True)
class Plan:
    """A proposal that fits the time available, with its estimated cost."""

    proposal: Proposal
    estimate: CostEstimate
    n_epochs: float
    n_epochs_ideal: float  # without a limit on the time

    @property
    def recipe(self) -> Recipe:
        """The proposal as a checked recipe."""
        return Recipe.from_table(self.proposal.table())

    @property
    def seconds(self) -> float:
        """How long the whole run takes at the machine's present load."""
        return self.estimate.seconds(self.recipe)

    @property
    def idle_seconds(self) -> float:
        """How long the whole run takes on an idle machine."""
        return self.estimate.idle_seconds(self.recipe)

    @property
    def is_cut(self) -> bool:
        """Whether the time available ends training notably early."""
        return self.n_epochs < 0.95 * self.n_epochs_ideal


def propose(
    data: DataSettings, survey: Survey, budget: float | None, measure: Callable[[Recipe, Survey], CostEstimate]
) -> Plan:
    """Plan a run within a budget of seconds, or within the default for this amount of text.

    A budget is measured at the machine's present load. The default budget is measured on an idle machine, so that the
    recipe does not depend on the load. If the model is too slow for one epoch, a smaller one is proposed.
    """
    preset = ""
    while True:
        proposal = TASKS[survey.settings.kind].init.propose(survey, preset)
        proposal = replace(proposal, choices=(*_data_choices(data, survey), *proposal.choices))
        estimate = measure(Recipe.from_table(proposal.table()), survey)
        plan = _fit(proposal, estimate, proposal.budget * estimate.slowdown if budget is None else budget)
        is_late = budget is not None and plan.seconds > budget
        if (plan.n_epochs >= 1 and not is_late) or not proposal.smaller_preset:
            break
        preset = proposal.smaller_preset
    if is_late:
        steps = plan.proposal.get("train.steps", 0)
        raise RecipeError(
            f"The budget is too short: even {steps} steps, with preparation and scoring, take about "
            f"{plan.seconds:,.0f} s here. Give --budget {math.ceil(plan.seconds / 60)}m or more."
        )
    return plan


def _data_choices(data: DataSettings, survey: Survey) -> Iterable[Choice]:
    """Files, columns and cleaning."""
    yield Choice("data.train", list(data.train), "training data")
    if data.valid:
        yield Choice("data.valid", list(data.valid), "for validation during training")
    if data.test:
        yield Choice("data.test", list(data.test), "scored once, at the end")
    for field, column in data.columns().items():
        yield Choice(f"data.{field}_column", column, _COLUMN_REASONS.get(field, ""))
    if survey.clean.max_ratio != CleanSettings().max_ratio:
        yield Choice("clean.max_ratio", survey.clean.max_ratio, "no limit on how much longer one side may be")


def _fit(proposal: Proposal, estimate: CostEstimate, budget: float) -> Plan:
    """The proposal with the number of steps that the budget allows."""
    per_epoch = estimate.batches_per_epoch / proposal.get("train.accumulation_steps", 1)
    ideal_steps = max(proposal.min_steps, _two_digits(proposal.n_epochs * per_epoch))
    full = Plan(_with_steps(proposal, ideal_steps, per_epoch), estimate, 0.0, 0.0)
    fixed = (estimate.prepare_seconds + estimate.finish_seconds) * estimate.slowdown
    affordable = _two_digits(ideal_steps * max(0.0, budget - fixed) / (full.seconds - fixed))
    min_steps = proposal.min_steps // 10
    steps = max(min_steps, min(ideal_steps, affordable))
    while True:
        plan = Plan(_with_steps(proposal, steps, per_epoch), estimate, steps / per_epoch, ideal_steps / per_epoch)
        if steps <= min_steps or plan.seconds <= budget:
            return plan
        steps = max(min_steps, _two_digits(0.98 * steps))  # shorter runs validate and save more often


def _with_steps(proposal: Proposal, steps: int, per_epoch: float) -> Proposal:
    """The proposal with this many steps, and with the settings that depend on them."""
    often = _round_down(steps / 25)
    values = {
        "train.steps": steps,
        "train.warmup": max(1, min(proposal.max_warmup, steps // 8)),
        "train.validate_every": often,
        "train.save_every": often,
    }
    reasons = {"train.steps": f"about {round_epochs(steps / per_epoch)} epochs"}
    return replace(
        proposal,
        choices=tuple(
            replace(one, value=values.get(one.name, one.value), reason=reasons.get(one.name, one.reason))
            for one in proposal.choices
        ),
    )


def round_epochs(number: float) -> str:
    """A number of epochs to show: 0.83, 5.7, 45."""
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def _round_down(number: float) -> int:
    """Down to one of 1, 2, 5, 10, 20, 50, …"""
    if number < 1:
        return 1
    scale = 10 ** int(math.log10(number))
    return int(next(part for part in (5, 2, 1) if part * scale <= number) * scale)


def _two_digits(number: float) -> int:
    """A number of steps with two significant digits: 11,316 → 11,000."""
    scale = 10 ** max(0, int(math.log10(max(1.0, number))) - 1)
    return int(number // scale * scale)
