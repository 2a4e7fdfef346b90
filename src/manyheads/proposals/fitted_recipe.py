"""A recipe that fits the time available: the task's proposal with its number of steps.

Without a budget the recipe depends on the data alone: the proposal's default time is compared with a nominal cost, and
what is measured on this machine only says how long the run takes. With a budget the steps follow from the measured
speed of the idle machine, rounded coarsely. The machine's present load never changes a recipe.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from manyheads.data import CleanSettings
from manyheads.errors import RecipeError
from manyheads.messages import _
from manyheads.proposals.cost_estimate import CostEstimate, nominal_seconds
from manyheads.run.recipe import DataSettings, Recipe
from manyheads.settings import to_table
from manyheads.tasks import TASKS
from manyheads.tasks.pretrained import Pretrained
from manyheads.tasks.proposal import Choice, Proposal, Survey

_COARSE = (80, 60, 50, 40, 30, 25, 20, 15, 12, 10)
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
    budget: float | None = None  # seconds, if the user gave a time
    origin: Pretrained | None = None

    @property
    def recipe(self) -> Recipe:
        """The proposal as a checked recipe."""
        return _recipe(self.proposal, self.origin)

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
    data: DataSettings,
    survey: Survey,
    budget: float | None,
    measure: Callable[[Recipe, Survey], CostEstimate],
    origin: Pretrained | None = None,
) -> Plan:
    """Plan a run within a budget of seconds on the idle machine, or within the default for this amount of text.

    If the model is too slow for one epoch, a smaller one is proposed; of a pretrained `origin`, less is trained.
    """
    preset, part = "", TASKS[survey.settings.kind].init
    while True:
        proposal = part.propose(survey, preset) if origin is None else part.propose_from(survey, origin, preset)
        proposal = replace(proposal, choices=(*_data_choices(data, survey), *proposal.choices))
        estimate = measure(_recipe(proposal, origin), survey)
        plan = _fit_default(proposal, estimate, origin) if budget is None else None
        plan = plan or _fit_budget(proposal, estimate, budget or 0.0, origin)
        is_late = budget is not None and plan.idle_seconds > budget
        if (plan.n_epochs >= 1 and not is_late) or not proposal.smaller_preset:
            break
        preset = proposal.smaller_preset
    if is_late:
        steps = plan.proposal.get("train.steps", 0)
        raise RecipeError(
            _(
                "The budget is too short: even {steps} steps, with preparation and scoring, take about "
                "{seconds:,.0f} s here. Give --budget {minutes}m or more.",
                steps=steps,
                seconds=plan.idle_seconds,
                minutes=math.ceil(plan.idle_seconds / 60),
            )
        )
    return plan


def _recipe(proposal: Proposal, origin: Pretrained | None) -> Recipe:
    """The proposal as a recipe, with the sizes of the model it starts from."""
    table = proposal.table()
    if origin is not None:
        sizes = {name: value for name, value in to_table(origin.model).items() if name not in ("shape", "kept_heads")}
        table["model"] = sizes | table.get("model", {})
    return Recipe.from_table(table)


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


def _fit_default(proposal: Proposal, estimate: CostEstimate, origin: Pretrained | None) -> Plan:
    """The proposal with as many of its epochs as take the default time at the nominal speed."""
    ideal = _ideal_steps(proposal, estimate)
    one_step = nominal_seconds(_recipe(proposal, origin), estimate.vocab_size)
    steps = max(proposal.min_steps // 10, min(ideal, _two_digits(proposal.budget / one_step)))
    return _plan(proposal, estimate, steps, ideal, origin)


def _fit_budget(proposal: Proposal, estimate: CostEstimate, budget: float, origin: Pretrained | None) -> Plan:
    """The proposal with the steps that the idle machine does within the budget."""
    ideal, min_steps = _ideal_steps(proposal, estimate), proposal.min_steps // 10
    full = _plan(proposal, estimate, ideal, ideal, origin)
    fixed = estimate.prepare_seconds + estimate.finish_seconds
    affordable = ideal * max(0.0, budget - fixed) / max(1e-9, full.idle_seconds - fixed)
    steps = ideal if full.idle_seconds <= budget else max(min_steps, min(ideal, _coarsely_down(affordable)))
    while True:
        plan = replace(_plan(proposal, estimate, steps, ideal, origin), budget=budget)
        if steps <= min_steps or plan.idle_seconds <= budget:
            return plan
        steps = max(min_steps, _coarsely_down(0.98 * steps))  # shorter runs validate and save more often


def _ideal_steps(proposal: Proposal, estimate: CostEstimate) -> int:
    return max(proposal.min_steps, _two_digits(proposal.n_epochs * _steps_per_epoch(proposal, estimate)))


def _steps_per_epoch(proposal: Proposal, estimate: CostEstimate) -> float:
    return estimate.batches_per_epoch / float(proposal.get("train.accumulation_steps", 1))


def _plan(proposal: Proposal, estimate: CostEstimate, steps: int, ideal_steps: int, origin: Pretrained | None) -> Plan:
    per_epoch = _steps_per_epoch(proposal, estimate)
    planned = _with_steps(proposal, steps, per_epoch) if steps else proposal
    return Plan(planned, estimate, steps / per_epoch, ideal_steps / per_epoch, origin=origin)


def _with_steps(proposal: Proposal, steps: int, per_epoch: float) -> Proposal:
    """The proposal with this many steps, and with the settings that depend on them."""
    often = _round_down(steps / proposal.n_validations)
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
            replace(
                choice,
                value=values.get(choice.name, choice.value),
                reason=reasons.get(choice.name, choice.reason),
            )
            for choice in proposal.choices
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


def _coarsely_down(number: float) -> int:
    """Down to one of 10, 12, 15, 20, 25, 30, …: the noise of a measurement rarely leads to another number of steps."""
    scale = 10 ** (int(math.log10(max(10.0, number))) - 1)
    return int(next((part * scale for part in _COARSE if part * scale <= number), number))
