"""The training loop: `Trainer.run` yields one `Step` event per update.

Everything random in a step (dropout, subword sampling) is seeded by (seed, step). A run that is interrupted and resumed
therefore computes the same weights, bit for bit, as one that never stopped.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from manyheads.errors import CheckpointError, TrainingError
from manyheads.model.weights import load_weights, weights_of
from manyheads.train.precision import uses_bfloat16
from manyheads.train.schedule import learning_rate
from manyheads.train.settings import TrainSettings

_OPTIMIZER_STATE = {"step", "exp_avg", "exp_avg_sq"}  # of AdamW, for each parameter that is trained


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


class EMA:
    """The exponential moving average of weights: ema ← decay · ema + (1 − decay) · weights after every step.

    The decay is at most (1 + step) / (10 + step), so that the average soon forgets the random initialization.
    """

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.weights = {name: value.clone() for name, value in weights.items()}

    @torch.no_grad()
    def update(self, weights: Mapping[str, Tensor], step: int) -> None:
        """Add the weights after a step to the average."""
        decay = min(self.decay, (1 + step) / (10 + step))
        floats = [name for name, value in self.weights.items() if value.is_floating_point()]
        torch._foreach_lerp_([self.weights[name] for name in floats], [weights[name] for name in floats], 1.0 - decay)
        for name in self.weights.keys() - set(floats):  # integers, such as the counters of some norms
            self.weights[name].copy_(weights[name])

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the average."""
        for name, value in self.weights.items():
            value.copy_(weights[name])


class Trainer(Generic[B]):
    """A model in training: the model, its optimizer, its EMA and its position in the data."""

    def __init__(
        self, model: nn.Module, training_task: TrainingTask[B], settings: TrainSettings, *, width: int, seed: int
    ) -> None:
        self.model = model
        self.training_task = training_task
        self.settings = settings
        self.width = width
        self.seed = seed
        self.step = 0
        self.epoch = 0
        self.position = 0  # number of batches of this epoch already used
        self.notes: dict[str, float] = {}  # values of the caller, saved in checkpoints
        self.optimizer = torch.optim.AdamW(
            model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=settings.weight_decay, fused=True
        )
        self.uses_bfloat16 = uses_bfloat16(settings.precision, self._device)
        self.ema = None if settings.ema_decay is None else EMA(weights_of(model), settings.ema_decay)

    def run(self) -> Iterator[Step]:
        """Train to the last step, one event per update; stop iterating to stop training."""
        plan = self.training_task.plan(self.epoch)
        if not plan:
            raise TrainingError("The training data contains no batch.")
        if self.position > len(plan):
            raise CheckpointError(
                f"The checkpoint of step {self.step} is at batch {self.position:,} of an epoch of {len(plan):,}: it "
                "belongs to other data. Train into another folder with -o."
            )
        while self.step < self.settings.steps:
            started = time.perf_counter()
            plans, batches = [], []
            for part in range(self.settings.accumulation_steps):
                if self.position == len(plan):
                    self.epoch, self.position = self.epoch + 1, 0
                    plan = self.training_task.plan(self.epoch)
                seed = (self.seed * 1_000_003 + self.step) * self.settings.accumulation_steps + part
                plans.append(plan[self.position])
                batches.append(self.training_task.make(plan[self.position], seed))
                self.position += 1
            yield self._update(plans, batches, started)

    def _update(self, plans: Sequence[Any], batches: Sequence[B], started: float) -> Step:
        self.model.train()
        # Dropout draws from the global generator; torch offers no other.
        torch.manual_seed(self.seed * 1_000_003 + self.step)
        n_tokens = sum(batch.n_tokens for batch in batches)
        losses = self._backward(batches, n_tokens)
        loss = sum(losses)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm).item()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            # If only the gradient is not finite, any of the batches may be the cause.
            suspects = [plan for plan, part in zip(plans, losses, strict=True) if not math.isfinite(part)] or plans
            raise self._divergence(loss, norm, suspects)
        rate = learning_rate(self.step + 1, self.settings, self.width)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.step += 1
        if self.ema is not None:
            self.ema.update(self.weights(), self.step)
        return Step(
            step=self.step,
            epoch=self.epoch,
            loss=loss,
            learning_rate=rate,
            gradient_norm=norm,
            n_tokens=n_tokens,
            seconds=time.perf_counter() - started,
        )

    def _backward(self, batches: Sequence[B], n_tokens: int) -> list[float]:
        """Accumulate the gradient of the mean loss over all tokens; return the share of each batch in the loss."""
        losses = []
        self.optimizer.zero_grad()
        for batch in batches:
            with torch.autocast(self._device.type, torch.bfloat16, enabled=self.uses_bfloat16):
                loss = self.training_task.loss(batch, self.step + 1) * (batch.n_tokens / n_tokens)
            loss.backward()
            losses.append(loss.item())
        return losses

    def _divergence(self, loss: float, norm: float, suspects: Sequence[Any]) -> TrainingError:
        return TrainingError(
            f"Step {self.step + 1} (epoch {self.epoch + 1}, batch {self.position}): the loss is {loss} and the "
            f"gradient norm is {norm}. The weights were not updated. "
            f"The batch: {'; '.join(map(self.training_task.describe, suspects))}. If its text is correct, "
            "train into a new folder (-o) with a lower train.learning_rate or a longer train.warmup."
        )

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def progress(self) -> dict[str, Any]:
        """The step, the position in the data, and the notes of the caller."""
        return {"step": self.step, "epoch": self.epoch, "position": self.position, "notes": self.notes}

    def optimizer_state(self) -> dict[str, Tensor]:
        """The state of the optimizer, keyed by kind and parameter name."""
        return {
            f"{kind}/{name}": value
            for name, parameter in self.model.named_parameters()
            for kind, value in self.optimizer.state[parameter].items()
        }

    def restore(
        self,
        progress: Mapping[str, Any],
        weights: dict[str, Tensor],
        optimizer_state: dict[str, Tensor],
        ema: dict[str, Tensor] | None = None,
    ) -> None:
        """Continue from a saved state; weights that do not fit are refused before anything changes."""
        parameters = dict(self.model.named_parameters())
        kinds: dict[str, set[str]] = {}  # of each parameter's state
        for key, value in optimizer_state.items():
            kind, _, name = key.partition("/")
            kinds.setdefault(name, set()).add(kind)
            if name not in parameters or (value.dim() and value.shape != parameters[name].shape):
                raise CheckpointError(f"The optimizer state of the checkpoint does not fit this model: {key}.")
        if incomplete := [name for name, found in kinds.items() if found != _OPTIMIZER_STATE]:
            raise CheckpointError(f"The optimizer state of the checkpoint is not that of AdamW: {incomplete[0]}.")
        load_weights(self.model, weights, "the checkpoint")
        self.step, self.epoch, self.position = progress["step"], progress["epoch"], progress["position"]
        self.notes = dict(progress.get("notes", {}))
        for key, value in optimizer_state.items():
            kind, _, name = key.partition("/")
            self.optimizer.state[parameters[name]][kind] = value.to(parameters[name].device)
        if self.ema is not None and ema is not None:
            self.ema.load(ema)

    def weights(self) -> dict[str, Tensor]:
        """The current weights of the model."""
        return weights_of(self.model)

    def eval_weights(self) -> dict[str, Tensor]:
        """The weights to validate and ship: the EMA if there is one, otherwise the current weights."""
        return self.weights() if self.ema is None else self.ema.weights

    @contextmanager
    def using_eval_weights(self) -> Iterator[None]:
        """Load `eval_weights` into the model, and restore its training weights at the end."""
        if self.ema is None:
            yield
            return
        training_weights = {name: value.clone() for name, value in self.weights().items()}
        load_weights(self.model, self.ema.weights, "the EMA")
        try:
            yield
        finally:
            load_weights(self.model, training_weights, "the training weights")
