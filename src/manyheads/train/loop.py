"""The loop: batches in, one `Step` event out for every update.

Everything random in a step (dropout, subword sampling) is seeded by (seed, step), so that a run that stops and
goes on meets the same numbers as one that never stopped.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from manyheads.errors import TrainingError
from manyheads.model.weights import load_weights, weights_of
from manyheads.train.ema import EMA
from manyheads.train.schedule import learning_rate
from manyheads.train.settings import TrainSettings


@runtime_checkable
class Batch(Protocol):
    """What the loop knows of a batch."""

    @property
    def n_tokens(self) -> int:
        """How many real tokens the loss is averaged over."""


B = TypeVar("B", bound=Batch)


@runtime_checkable
class TrainingTask(Protocol[B]):
    """What the loop knows of a task."""

    def plan(self, epoch: int) -> Sequence[Any]:
        """The batches of an epoch, not yet made; a pure function of the epoch."""

    def make(self, plan: Any, seed: int) -> B:
        """One of them, made; a pure function of its arguments."""

    def loss(self, batch: B, step: int) -> Tensor:
        """The loss of a batch, per real token, for update number `step` (1, 2, 3 …)."""

    def describe(self, plan: Any) -> str:
        """A batch in a few words by which a person finds it in the data."""


@dataclass(frozen=True)
class Step:
    """One update was made."""

    step: int
    epoch: int
    loss: float  # per real token
    learning_rate: float
    gradient_norm: float  # before clipping
    n_tokens: int
    seconds: float


class Trainer(Generic[B]):
    """A model in training: its optimizer, and where in the data it stands."""

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
        self.position = 0  # batches of this epoch already used
        self.notes: dict[str, float] = {}  # what the caller has to remember; saved with all the rest
        self.optimizer = torch.optim.AdamW(
            model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=settings.weight_decay, fused=True
        )
        self.is_bfloat16 = _uses_bfloat16(settings, self._device)
        self.ema = EMA(weights_of(model), settings.ema_decay) if settings.ema_decay else None

    def run(self) -> Iterator[Step]:
        """Train to the last step, one event an update; stop iterating to stop training."""
        plan = self.training_task.plan(self.epoch)
        if not plan:
            raise TrainingError("There is nothing to train on.")
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
        losses: list[float] = []
        self.optimizer.zero_grad()
        for batch in batches:
            with torch.autocast(self._device.type, torch.bfloat16, enabled=self.is_bfloat16):
                loss = self.training_task.loss(batch, self.step + 1) * (batch.n_tokens / n_tokens)
            loss.backward()
            losses.append(loss.item())
        total = sum(losses)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm or math.inf).item()
        if not (math.isfinite(total) and math.isfinite(norm)):
            # Where only the gradient is at fault, any of the batches may be the one.
            guilty = [plan for plan, loss in zip(plans, losses, strict=True) if not math.isfinite(loss)] or plans
            raise TrainingError(
                f"Step {self.step + 1} (epoch {self.epoch + 1}, batch {self.position}): the loss is {total}, the "
                f"gradient's norm {norm}. The weights were left as they were before it. "
                f"The batch: {'; '.join(map(self.training_task.describe, guilty))}. If its text is as it should be, "
                "train into a new folder (-o) with a lower train.learning_rate or a longer train.warmup."
            )
        rate = learning_rate(self.step + 1, self.settings, self.width)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.step += 1
        if self.ema is not None:
            self.ema.add(self.weights(), self.step)
        return Step(
            step=self.step,
            epoch=self.epoch,
            loss=total,
            learning_rate=rate,
            gradient_norm=norm,
            n_tokens=n_tokens,
            seconds=time.perf_counter() - started,
        )

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def progress(self) -> dict[str, Any]:
        """Where the run stands: whole numbers, and the caller's notes."""
        return {"step": self.step, "epoch": self.epoch, "position": self.position, "notes": self.notes}

    def optimizer_state(self) -> dict[str, Tensor]:
        """The optimizer's running means, by the parameter's name."""
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
        """Go on from where another run stood."""
        load_weights(self.model, weights, "the checkpoint")  # refuses those of another model, touching nothing
        self.step, self.epoch, self.position = progress["step"], progress["epoch"], progress["position"]
        self.notes = dict(progress.get("notes", {}))
        parameters = dict(self.model.named_parameters())
        for key, value in optimizer_state.items():
            kind, _, name = key.partition("/")
            self.optimizer.state[parameters[name]][kind] = value.to(parameters[name].device)
        if self.ema is not None and ema is not None:
            self.ema.set(ema)

    def weights(self) -> dict[str, Tensor]:
        """The model's weights as they are now."""
        return weights_of(self.model)

    def eval_weights(self) -> dict[str, Tensor]:
        """What the run has to show by now: the EMA where there is one."""
        return self.weights() if self.ema is None else self.ema.weights

    @contextmanager
    def using_eval_weights(self) -> Iterator[None]:
        """For a while the model has its best weights; then it is again as it was."""
        if self.ema is None:
            yield
            return
        before = {name: value.clone() for name, value in self.weights().items()}
        load_weights(self.model, self.ema.weights, "the EMA")
        try:
            yield
        finally:
            load_weights(self.model, before, "the weights in training")


def _uses_bfloat16(settings: TrainSettings, device: torch.device) -> bool:
    """Whether to multiply 16-bit numbers; on a CPU it was no faster, even on one with instructions for it."""
    if settings.precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return settings.precision == "bfloat16"
