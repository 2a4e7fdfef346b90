"""When a training run ends: a stopping rule on the validation set, so that a slow arm is not taken for an unable one.

A run is validated every few steps. It ends when it has nothing left to learn, or when it has stopped improving; the
weights of its best validation are kept. A run that is still improving when its budget is used up did not converge.
The rule also counts the steps, and the seconds, after which the run first reached a level: its speed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

_SMALLEST_GAIN = 0.005  # of accuracy; of the loss, twice this share
_N_SOLVED = 2  # validations in succession


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """The stopping rule of a question's runs; the budget is `Setup.steps`."""

    level: float  # the validation accuracy that `steps` and `seconds` are counted to
    patience: int  # steps without an improvement after which a run has converged
    every: int = 25  # steps between validations
    solved: float = 0.995  # a run whose accuracy is this high twice in succession has nothing left to learn


@dataclass(frozen=True)
class Progress:
    """How a run went on the validation set."""

    steps: int  # to the level; the budget plus 1 if it was not reached
    seconds: float  # of processor time to the level; of the whole run if it was not reached
    n_steps: int  # that were trained
    has_converged: bool


class Watch:
    """Follows the validations of a run."""

    def __init__(self, rule: Convergence, budget: int) -> None:
        self.rule, self.budget = rule, budget
        self.best_weights: Mapping[str, Tensor] | None = None
        self._best = (-1.0, 0.0)  # accuracy, minus the loss
        self._accuracy, self._loss = -1.0, float("inf")  # at the last improvement
        self._improved = self._last = 0  # steps
        self._n_solved = 0
        self._reached: tuple[int, float] | None = None  # step and seconds

    def see(self, step: int, seconds: float, scores: Mapping[str, float], weights: Mapping[str, Tensor]) -> bool:
        """Take note of a validation; whether the run has converged."""
        accuracy, loss = scores["accuracy"], scores["loss"]
        self._last = step
        if (accuracy, -loss) > self._best:
            self._best = accuracy, -loss
            self.best_weights = {name: value.detach().clone() for name, value in weights.items()}
        if accuracy > self._accuracy + _SMALLEST_GAIN or loss < self._loss * (1 - 2 * _SMALLEST_GAIN):
            self._accuracy, self._loss = max(accuracy, self._accuracy), min(loss, self._loss)
            self._improved = step
        if accuracy >= self.rule.level and self._reached is None:
            self._reached = step, seconds
        self._n_solved = self._n_solved + 1 if accuracy >= self.rule.solved else 0
        return self.has_converged

    @property
    def has_converged(self) -> bool:
        """Whether nothing is left to learn, or nothing was learned for long."""
        return self._n_solved >= _N_SOLVED or self._last - self._improved >= self.rule.patience

    def progress(self, n_steps: int, seconds: float, has_diverged: bool = False) -> Progress:
        """The outcome of a run that has ended; one that diverged did not converge."""
        steps, to_level = self._reached or (self.budget + 1, seconds)
        return Progress(steps, to_level, n_steps, self.has_converged and not has_diverged)
