"""Learned gates: training decides which heads to remove (Voita 2019, with the hard-concrete gates of Louizos 2018).

Each head has a gate that is sampled at every step: exactly 0 with some probability, exactly 1 with some, otherwise
between, and differentiable in its one parameter, log α. A penalty on the expected number of open gates closes those
that the loss needs least, while the model adapts. The papers fix the penalty and observe how many heads remain. Here it
acts only while more gates are open than the target of the step, so that the requested share is removed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.compress.fine_tuning import FineTuner, FineTuneSettings, OnStep
from manyheads.lens.heads import Head, heads_of
from manyheads.model import Transformer, gated
from manyheads.tasks import Task
from manyheads.training import peak_learning_rate

_BETA, _GAMMA, _ZETA = 2 / 3, -0.1, 1.1  # temperature and stretch, as in Louizos 2018
_INITIAL_LOG_ALPHA = 2.0  # 97 % of gates are open
_TRAVEL = 16.0  # the distance log α can cover in all steps at the peak learning rate: from open to closed and back
_PENALTY = 0.1  # nats per token for each open gate above the target
_CLOSING = 2 / 3  # share of the steps in which gates close; in the rest the remaining ones settle


class HardConcreteGates(nn.Module):
    """One hard-concrete gate per head."""

    def __init__(self, model: Transformer, learning_rate: float, n_steps: int) -> None:
        super().__init__()
        self.sizes = {attention.name: attention.heads.n_heads for attention in model.attentions()}
        # The optimizer has one learning rate, and a gate has to move further than a weight, so the parameter is
        # scaled. Adam is invariant to the scale of a gradient, but clipping is not: the hook keeps that of log α.
        self.scale = _TRAVEL / (learning_rate * n_steps)
        self.scaled = nn.Parameter(torch.full((sum(self.sizes.values()),), _INITIAL_LOG_ALPHA / self.scale))
        self.scaled.register_hook(lambda gradient: gradient / self.scale)

    @property
    def log_alpha(self) -> Float[Tensor, " H"]:
        """The learned parameters: a gate far above 0 is open, far below closed."""
        return self.scaled * self.scale

    def sample(self) -> dict[str, Tensor]:
        """Sample the gates of one pass, by attention."""
        uniform = torch.rand_like(self.scaled).clamp(1e-6, 1 - 1e-6)
        soft = torch.sigmoid((uniform.logit() + self.log_alpha) / _BETA)
        hard = (soft * (_ZETA - _GAMMA) + _GAMMA).clamp(0.0, 1.0)
        return dict(zip(self.sizes, hard.split(list(self.sizes.values())), strict=True))

    def n_open(self) -> Tensor:
        """Return the expected number of gates that are not 0: the penalized L0 norm."""
        return torch.sigmoid(self.log_alpha - _BETA * math.log(-_GAMMA / _ZETA)).sum()


@dataclass(frozen=True)
class GatedTrainingTask:
    """A training task under sampled gates, with a penalty on open gates above a falling target."""

    training_task: Any
    model: Transformer
    gates: HardConcreteGates
    n_kept: int
    n_steps: int

    def plan(self, epoch: int) -> Sequence[Any]:
        """Return the batch plans of the training task."""
        plans: Sequence[Any] = self.training_task.plan(epoch)
        return plans

    def make(self, plan: Any, seed: int) -> Any:
        """Make a batch of the training task."""
        return self.training_task.make(plan, seed)

    def describe(self, plan: Any) -> str:
        """Describe a batch of the training task."""
        return str(self.training_task.describe(plan))

    def loss(self, batch: Any, step: int) -> Tensor:
        """Return the loss under gates sampled for this pass, plus the penalty."""
        with gated(self.model, self.gates.sample()):
            loss: Tensor = self.training_task.loss(batch, step)
        progress = min(1.0, step / (_CLOSING * self.n_steps))
        n_heads = sum(self.gates.sizes.values())
        target = n_heads + (self.n_kept - n_heads) * progress
        return loss + _PENALTY * torch.relu(self.gates.n_open() - target)


def learn_gates(
    task: Task, fine_tuner: FineTuner, n_removed: int, settings: FineTuneSettings, on_step: OnStep = lambda step: None
) -> list[tuple[Head, float]]:
    """Train the task with gates; return every head with its log α, the first to remove first."""
    peak = peak_learning_rate(fine_tuner.schedule(settings), task.model.settings.width)
    gates = HardConcreteGates(task.model, peak, settings.steps)
    gates.to(task.model.device)
    heads = heads_of(task.model)
    training_task = GatedTrainingTask(
        task.training_task(fine_tuner.training_data), task.model, gates, len(heads) - n_removed, settings.steps
    )
    fine_tuner.train(nn.ModuleList([task.module, gates]), training_task, settings, on_step)
    return sorted(zip(heads, gates.log_alpha.detach().tolist(), strict=True), key=lambda pair: pair[1])
