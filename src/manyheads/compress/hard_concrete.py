"""Learned gates: which heads can go, asked of training itself (Voita 2019; hard-concrete gates, Louizos 2018).

Each head has a gate drawn anew in every step: with some probability exactly 0, with some exactly 1, else between, and
differentiable in its one parameter, log α. A penalty on the expected number of open gates closes those that the loss
can do without, while the model learns to live with it. The papers fix the penalty and see how many heads are left;
here it acts only while more gates are open than are wanted at that step, so that the share asked for comes out.
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
from manyheads.train import peak_learning_rate

_BETA, _GAMMA, _ZETA = 2 / 3, -0.1, 1.1  # temperature and stretch, as Louizos has them
_START = 2.0  # log α at first: all but 3 % of gates are open
_TRAVEL = 16.0  # how far log α could go in all steps if the learning rate stood at its peak: from open to shut and back
_STRENGTH = 0.1  # nats a token that an open gate too many costs
_CLOSING = 2 / 3  # of the steps; in the rest the gates that are left settle


class HardConcreteGates(nn.Module):
    """One gate a head."""

    def __init__(self, model: Transformer, learning_rate: float, n_steps: int) -> None:
        super().__init__()
        self.sizes = {attention.name: attention.heads.n_heads for attention in model.attentions()}
        # The loop has one learning rate for all; a gate has to go further than a weight. Adam minds no gradient's
        # size, but clipping does, so the gradient is as if it were log α's.
        self.scale = _TRAVEL / (learning_rate * n_steps)
        self.scaled = nn.Parameter(torch.full((sum(self.sizes.values()),), _START / self.scale))
        self.scaled.register_hook(lambda gradient: gradient / self.scale)

    @property
    def log_alpha(self) -> Float[Tensor, " H"]:
        """What is learned: far above 0 open, far below shut."""
        return self.scaled * self.scale

    def sample(self) -> dict[str, Tensor]:
        """The gates of one pass."""
        chance = torch.rand_like(self.scaled).clamp(1e-6, 1 - 1e-6)
        soft = torch.sigmoid((chance.logit() + self.log_alpha) / _BETA)
        hard = (soft * (_ZETA - _GAMMA) + _GAMMA).clamp(0.0, 1.0)
        return dict(zip(self.sizes, hard.split(list(self.sizes.values())), strict=True))

    def n_open(self) -> Tensor:
        """How many gates are not 0, on average: the L0 norm that is penalised."""
        return torch.sigmoid(self.log_alpha - _BETA * math.log(-_GAMMA / _ZETA)).sum()


@dataclass(frozen=True)
class GatedTrainingTask:
    """A training task learnt under gates, more and more of which have to close."""

    training_task: Any
    model: Transformer
    gates: HardConcreteGates
    n_left: int
    n_steps: int

    def plan(self, epoch: int) -> Sequence[Any]:
        """As without gates."""
        plans: Sequence[Any] = self.training_task.plan(epoch)
        return plans

    def make(self, plan: Any, seed: int) -> Any:
        """As without gates."""
        return self.training_task.make(plan, seed)

    def describe(self, plan: Any) -> str:
        """As without gates."""
        return str(self.training_task.describe(plan))

    def loss(self, batch: Any, step: int) -> Tensor:
        """The loss under gates drawn for this pass, and the penalty on those that are too many."""
        with gated(self.model, self.gates.sample()):
            loss: Tensor = self.training_task.loss(batch, step)
        done = min(1.0, step / (_CLOSING * self.n_steps))
        n_heads = sum(self.gates.sizes.values())
        wanted = n_heads + (self.n_left - n_heads) * done
        return loss + _STRENGTH * torch.relu(self.gates.n_open() - wanted)


def learn_gates(
    task: Task, fine_tuner: FineTuner, n_removed: int, settings: FineTuneSettings, on_step: OnStep = lambda step: None
) -> list[tuple[Head, float]]:
    """Every head with its log α, the first to go first. The task is fine-tuned on the way."""
    peak = peak_learning_rate(fine_tuner.schedule(settings), task.model.settings.width)
    gates = HardConcreteGates(task.model, peak, settings.steps)
    gates.to(task.model.device)
    heads = heads_of(task.model)
    training_task = GatedTrainingTask(
        task.training_task(fine_tuner.training_data), task.model, gates, len(heads) - n_removed, settings.steps
    )
    fine_tuner.train(nn.ModuleList([task.module, gates]), training_task, settings, on_step)
    found = zip(heads, gates.log_alpha.detach().tolist(), strict=True)
    return sorted(found, key=lambda pair: pair[1])
