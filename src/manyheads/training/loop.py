"""The training loop: `Trainer.run` yields one `Step` event per update.

Everything random in a step (dropout, subword sampling) is seeded by (seed, step, number of the micro-batch). A run that
is interrupted and resumed therefore computes the same weights, bit for bit, as one that never stopped. Several
processes can share the micro-batches of each step (docs/decisions/0039): see `Gradients` and `TrainerState`.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from manyheads.errors import CheckpointError, TrainingError
from manyheads.messages import _
from manyheads.model.weights import weights_of
from manyheads.training.gradients import Gradients
from manyheads.training.micro_batches import split_plan
from manyheads.training.process_group import ProcessGroup
from manyheads.training.settings import TrainSettings, learning_rate, uses_bfloat16
from manyheads.training.sharding import clip_gradients, layers_of
from manyheads.training.trainer_state import EMA, TrainerState, make_optimizer


@runtime_checkable
class Batch(Protocol):
    """The interface of a batch."""

    @property
    def n_tokens(self) -> int:
        """The number of real tokens that the loss is averaged over."""


B = TypeVar("B", bound=Batch)


@runtime_checkable
class TrainingTask(Protocol[B]):
    """The interface of a task in training: its batches and their loss."""

    def plan(self, epoch: int) -> Sequence[Any]:
        """The plans of the batches of an epoch; a pure function of the epoch."""

    def make(self, plan: Any, seed: int) -> B:
        """The batch of a plan; a pure function of its arguments."""

    def loss(self, batch: B, step: int) -> Tensor:
        """The mean loss per real token of a batch in update number `step`, counted from 1."""

    def describe(self, plan: Any) -> str:
        """A short description by which a person finds the batch in the data."""


@dataclass(frozen=True)
class Step:
    """The event of one update."""

    step: int
    epoch: int
    loss: float  # per real token
    learning_rate: float
    gradient_norm: float  # before clipping
    n_tokens: int
    seconds: float


class Trainer(TrainerState, Generic[B]):
    """A model in training: the model, its optimizer, its EMA and its position in the data.

    With a `group` of several processes, all of them call `share` after rank 0 has restored its state; then rank 0
    calls `run` and the others call `follow`. If the model is sharded, rank 0 validates `whole_model`, a second one.
    """

    def __init__(
        self,
        model: nn.Module,
        training_task: TrainingTask[B],
        settings: TrainSettings,
        *,
        width: int,
        seed: int,
        group: ProcessGroup | None = None,
        whole_model: nn.Module | None = None,
    ) -> None:
        self.model = model
        self.training_task = training_task
        self.settings = settings
        self.width = width
        self.seed = seed
        self.group = group or ProcessGroup()
        self.whole_model = whole_model or model
        self.step = 0
        self.epoch = 0
        self.position = 0  # number of batches of this epoch already used
        self.notes: dict[str, float] = {}  # values of the caller, saved in checkpoints
        self.optimizer = make_optimizer(model, settings, width)
        is_bfloat16 = uses_bfloat16(settings.precision, next(model.parameters()).device)
        self.gradients = Gradients(model, training_task, self.group, uses_bfloat16=is_bfloat16)
        self.ema = None if settings.ema_decay is None else EMA(weights_of(model), settings.ema_decay)
        self._planned: tuple[int, Sequence[Any]] | None = None  # an epoch and its plan
        if settings.compile:
            for layer in layers_of(model):
                layer.compile(dynamic=True)

    def run(self) -> Iterator[Step]:
        """Train to the last step, one event per update; stop iterating to stop training."""
        self._check_plan()
        while self.step < self.settings.steps:
            self.group.command("step")
            yield self._take_step()

    def follow(self) -> None:
        """Compute what rank 0 asks for until it stops."""
        while (command := self.group.receive_command()) != "stop":
            if command == "step":
                self._take_step()
            else:
                self.gathered(command)

    def _take_step(self) -> Step:
        """Make the batches of the next update, and update."""
        started = time.perf_counter()
        plans = self._next_plans()
        batches = self.gradients.make_batches(plans, self._seeds(len(plans)))
        return self._update(plans, batches, started)

    def _update(self, plans: Sequence[Any | None], batches: Sequence[B | None], started: float) -> Step:
        """Update the weights by the batches that this process made of the plans."""
        self.model.train()
        self.optimizer.zero_grad()
        losses, n_tokens = self.gradients.backward(plans, batches, self._seeds(len(plans)), self.step + 1)
        loss = sum(losses)
        norm = clip_gradients(list(self.model.parameters()), self.settings.clip_norm)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise self._divergence(plans, losses, norm)
        rate = learning_rate(self.step + 1, self.settings, self.width)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        self.optimizer.step()
        self.step += 1
        if self.ema is not None:
            self.ema.update(weights_of(self.model), self.step)
        return Step(
            step=self.step,
            epoch=self.epoch,
            loss=loss,
            learning_rate=rate,
            gradient_norm=norm,
            n_tokens=n_tokens,
            seconds=time.perf_counter() - started,
        )

    def _next_plans(self) -> list[Any | None]:
        """The plans of all micro-batches of the next update, for all processes; None for those without rows."""
        plans: list[Any | None] = []
        for _batch in range(self.settings.accumulation_steps):
            if self.position == len(self._plan()):
                self.epoch, self.position = self.epoch + 1, 0
            plan = self._plan()[self.position]
            plans += split_plan(self.training_task, plan, self.settings.micro_batches or 1)
            self.position += 1
        return plans

    def _plan(self) -> Sequence[Any]:
        """The plan of the current epoch."""
        if self._planned is None or self._planned[0] != self.epoch:
            self._planned = self.epoch, self.training_task.plan(self.epoch)
        return self._planned[1]

    def _seeds(self, n_parts: int) -> list[int]:
        """The seed of everything random in each micro-batch of the next update."""
        return [(self.seed * 1_000_003 + self.step) * n_parts + number for number in range(n_parts)]

    def _check_plan(self) -> None:
        """Raise an error if there is no batch, or if the position is that of other data."""
        plan = self._plan()
        if not plan:
            raise TrainingError(_("The training data contains no batch."))
        if self.position > len(plan):
            raise CheckpointError(
                _(
                    "The checkpoint of step {step} is at batch {position:,} of an epoch of {n_batches:,}: it belongs "
                    "to other data. Train into another folder with -o.",
                    step=self.step,
                    position=self.position,
                    n_batches=len(plan),
                )
            )

    def _divergence(self, plans: Sequence[Any | None], losses: Sequence[float], norm: float) -> TrainingError:
        # If only the gradient is not finite, any of the batches may be the cause.
        suspects = [plan for plan, loss in zip(plans, losses, strict=True) if not math.isfinite(loss)] or plans
        return TrainingError(
            _(
                "Step {step} (epoch {epoch}, batch {position}): the loss is {loss} and the gradient norm is "
                "{norm}. The weights were not updated. The batch: {suspects}. If its text is correct, train into a "
                "new folder (-o) with a lower train.learning_rate or a longer train.warmup.",
                step=self.step + 1,
                epoch=self.epoch + 1,
                position=self.position,
                loss=sum(losses),
                norm=norm,
                suspects="; ".join(self.training_task.describe(plan) for plan in suspects if plan is not None),
            )
        )
