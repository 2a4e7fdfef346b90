"""A question of the lab: arms that differ in exactly the thing asked, measures, and what theory predicts.

`lab_files` reads questions. An experiment is a grid of cells, one for each arm and condition. Every cell is run with
the same seeds, and arms are compared in pairs: same seed, same data, same initial weights where shapes allow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from manyheads.lab.lab_texts import NO_TEXT, LabText, Shown
from manyheads.lab.setup import Setup
from manyheads.messages import Message

Changes = Mapping[str, Any]  # keys of `Setup`, or "model.…" for a field of ModelSettings
ONLY = "-"  # the name of the condition of a question that has only one
N_SEEDS = 6
Better = Literal["higher", "lower"]
Expectation = Literal["higher", "lower", "same"]
ClaimVerdict = Literal["holds", "wrong", "half"]
PlotKind = Literal["dots", "lines"]
# What an arm can learn if it trains until it stops improving; how soon it learns it; or what a model is like or costs.
Asked = Literal["ability", "speed", "property"]
Edge = Literal["", "↑", "↓"]  # of a grid of learning rates


@dataclass(frozen=True)
class Arm:
    """One of the things compared."""

    name: str
    label: LabText
    changes: Changes = field(default_factory=dict)


@dataclass(frozen=True)
class Condition:
    """Something that is the same for all arms compared, such as a width or a batch size."""

    name: str
    label: LabText
    changes: Changes = field(default_factory=dict)


NO_CONDITION = (Condition(ONLY, NO_TEXT),)


@dataclass(frozen=True)
class Measure:
    """A number that every trial reports. `digits` are decimals; a percentage is stored as a fraction."""

    name: str
    label: Shown
    better: Better | None = None
    is_percentage: bool = False
    digits: int = 3
    is_logarithmic: bool = False  # compare and draw on a logarithmic scale: an effect is then a ratio
    is_censored: bool = False  # a number of steps: more than the trial has means that it was not reached


COMMON_MEASURES = {
    "accuracy": Measure("accuracy", Message("accuracy, %"), "higher", is_percentage=True),
    "loss": Measure("loss", Message("loss, nats"), "lower"),
    "seconds": Measure("seconds", Message("processor seconds to the same level"), "lower", digits=1),
    "trained": Measure("trained", Message("steps trained"), digits=0),
    "converged": Measure("converged", Message("runs that converged, %"), is_percentage=True, digits=2),
}


@dataclass(frozen=True)
class ArmComparison:
    """A paired comparison and its predicted direction: the measure of `arm`, compared with that of `against`.

    "same" is confirmed only if the whole interval of the difference lies within ± `margin`.
    """

    arm: str
    against: str
    measure: str
    expect: Expectation
    because: LabText
    condition: str = ONLY
    against_condition: str | None = None  # default: `condition`
    margin: float = 0.0
    is_key: bool = False  # the answer depends on the key comparisons


@dataclass(frozen=True)
class Source:
    """What a publication reports, with its numbers."""

    citation: str  # "Vaswani et al. 2017, Table 3"
    finding: LabText


@dataclass(frozen=True)
class Claim:
    """What study notes or interview lists claim, and what the experiment says about it; both may quote figures."""

    claim: LabText
    verdict: ClaimVerdict
    evidence: LabText


@dataclass(frozen=True)
class Plot:
    """A picture of one measure: a panel for each condition with a row per arm, or a line per arm over conditions."""

    measure: str
    kind: PlotKind = "dots"
    conditions: tuple[str, ...] = ()  # default: all
    arms: tuple[str, ...] = ()  # default: all


@dataclass(frozen=True)
class Answer:
    """The answer in plain words: `yes` if all key comparisons came out as predicted, otherwise `no`.

    Both may quote figures of the results as {{…}}; see `figures`.
    """

    yes: Shown
    no: Shown


@dataclass(frozen=True, kw_only=True)
class Question:
    """One "why" of the Transformer, as an experiment."""

    id: str
    order: int = 0  # of the list of questions
    asks: Asked = "property"
    title: Shown
    differs: Shown = NO_TEXT  # what else differs between the arms, and what is done about it
    method: Shown  # what is trained on what, in two or three sentences
    arms: tuple[Arm, ...]
    conditions: tuple[Condition, ...] = NO_CONDITION
    measures: tuple[Measure, ...]
    comparisons: tuple[ArmComparison, ...]
    answer: Answer
    plots: tuple[Plot, ...]
    sources: tuple[Source, ...] = ()
    claims: tuple[Claim, ...] = ()
    setup: Setup | None = None  # of an experiment that trains; None: `trial` does all
    # The numbers of one trial. An experiment without `setup` gets a Setup of defaults with the changes applied.
    trial: Callable[[Setup, int], Mapping[str, float]]
    tuned_on: str | None = None  # the measure that chooses the learning rate of each cell; None: no tuning
    learning_rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2)  # the first ones tried; see `tuning`
    max_extension: int = 4  # rates tried beyond either end of the grid
    n_tuning_seeds: int = 2
    n_seeds: int = N_SEEDS
    skipped: tuple[tuple[str, str], ...] = ()  # (arm, condition) cells that make no sense
    full: Changes = field(default_factory=dict)  # changes of `--full`: more steps, larger models
    measures_time: bool = False  # trials run alone, one after the other: their times are results

    def arm(self, name: str) -> Arm:
        """The arm with this name."""
        return next(arm for arm in self.arms if arm.name == name)

    def condition(self, name: str) -> Condition:
        """The condition with this name."""
        return next(condition for condition in self.conditions if condition.name == name)

    def measure(self, name: str) -> Measure:
        """The measure with this name."""
        return next(measure for measure in self.measures if measure.name == name)

    def is_tuned(self, arm: Arm, condition: Condition) -> bool:
        """Whether a cell's learning rate is tuned: not if the arm or the condition itself sets one."""
        return self.tuned_on is not None and "learning_rate" not in {**condition.changes, **arm.changes}

    @property
    def converges(self) -> bool:
        """Whether runs end when they stop improving, not after a fixed number of steps."""
        return self.setup is not None and self.setup.convergence is not None

    def cells(self) -> list[tuple[Arm, Condition]]:
        """Every arm under every condition."""
        return [
            (arm, condition)
            for condition in self.conditions
            for arm in self.arms
            if (arm.name, condition.name) not in self.skipped
        ]

    def cell_setup(self, arm: Arm, condition: Condition, *, is_full: bool = False) -> Setup:
        """The question's setup with the changes of the condition, of `--full` and of the arm, in this order."""
        setup = self.setup or Setup()
        for changes in (condition.changes, self.full if is_full else {}, arm.changes):
            setup = setup.changed(changes)
        return setup


def edge_of(rates: Sequence[float], best: float) -> Edge:
    """An arrow if no rate beyond the best one was tried on one side."""
    return "↑" if best == max(rates) else "↓" if best == min(rates) else ""
