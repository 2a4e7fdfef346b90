"""The training loop: `Trainer.run` yields one `Step` event per update.

Everything random in a step (dropout, subword sampling) is seeded by (seed, step, number of the micro-batch). A run that
is interrupted and resumed therefore computes the same weights, bit for bit, as one that never stopped. Several
processes can share the micro-batches of each step (docs/decisions/0039).
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from manyheads.errors import CheckpointError, TrainingError
from manyheads.messages import _
from manyheads.model.weights import load_weights, weights_of
from manyheads.training.ema import EMA
from manyheads.training.gradient_tree import add_up_gradients
from manyheads.training.micro_batches import split_plan
from manyheads.training.precision import uses_bfloat16
from manyheads.training.process_group import ProcessGroup
from manyheads.training.schedule import learning_rate
from manyheads.training.settings import TrainSettings
from manyheads.training.sharding import clip_gradients, gather, is_sharded, layers_of, shard_like

if TYPE_CHECKING:
    from manyheads.training.parallel_loss import ParallelLoss

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


class Trainer(Generic[B]):
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
        self.optimizer = self._make_optimizer()
        self.uses_bfloat16 = uses_bfloat16(settings.precision, self._device)
        self.ema = None if settings.ema_decay is None else EMA(weights_of(model), settings.ema_decay)
        self.adds_in_tree = self._device.type == "cpu"  # otherwise torch adds gradients up while it computes others
        self._parallel_loss: ParallelLoss | None = None
        self._planned: tuple[int, Sequence[Any]] | None = None  # an epoch and its plan
        if settings.compile:
            for layer in layers_of(model):
                layer.compile(dynamic=True)

    def _make_optimizer(self) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            self.model.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=self.settings.weight_decay, fused=True
        )

    def share(self) -> None:
        """Give every process the state of rank 0, and divide the work among them; nothing if this one is alone."""
        if self.group.is_alone:
            return
        from manyheads.training.parallel_loss import ParallelLoss

        self._share_state()
        state, ema = self.optimizer_state(), None if self.ema is None else self.ema.weights
        if self.settings.shard or not self.adds_in_tree:
            self._parallel_loss = ParallelLoss(
                self.model, self.training_task, self.group, is_sharded=self.settings.shard
            )
        if self.settings.shard:  # the model has new parameters, of which each process has a part
            self.optimizer = self._make_optimizer()
            self._load_optimizer(state)
            if self.ema is not None and ema is not None:
                weights = weights_of(self.model)
                self.ema.weights = {name: shard_like(value, weights[name]) for name, value in ema.items()}

    def _share_state(self) -> None:
        """Copy weights, EMA, optimizer state and progress from rank 0 to the other processes."""
        optimizer = self.optimizer_state()
        shared = self.group.share(
            {"progress": self.progress(), "optimizer": sorted(optimizer), "bfloat16": self.uses_bfloat16}
        )
        self.uses_bfloat16 = shared["bfloat16"]  # "auto" depends on the device, which may differ between machines
        parameters = dict(self.model.named_parameters())
        if not self.group.is_first:
            self._go_to(shared["progress"])
            names = {key: key.partition("/")[2] for key in shared["optimizer"]}
            scalar = torch.zeros((), device=self._device)
            optimizer = {
                key: scalar.clone() if key.startswith("step/") else torch.zeros_like(parameters[name])
                for key, name in names.items()
            }
        for tensors in (weights_of(self.model), {} if self.ema is None else self.ema.weights, optimizer):
            for _name, tensor in sorted(tensors.items()):
                self.group.broadcast(tensor)
        self._load_optimizer(optimizer)

    def run(self) -> Iterator[Step]:
        """Train to the last step, one event per update; stop iterating to stop training."""
        plan = self._plan()
        if not plan:
            raise TrainingError(_("The training data contains no batch."))
        if self.position > len(plan):
            raise CheckpointError(
                _(
                    "The checkpoint of step {step} is at batch {position:,} of an epoch of {n_plan:,}: it belongs "
                    "to other data. Train into another folder with -o.",
                    step=self.step,
                    position=self.position,
                    n_plan=len(plan),
                )
            )
        while self.step < self.settings.steps:
            self.group.command("step")
            yield self._take_step()

    def follow(self) -> None:
        """Compute what rank 0 asks for until it stops."""
        while (command := self.group.receive_command()) != "stop":
            if command == "step":
                self._take_step()
            else:
                self._gather(command)

    def _plan(self) -> Sequence[Any]:
        """The plan of the current epoch."""
        if self._planned is None or self._planned[0] != self.epoch:
            self._planned = self.epoch, self.training_task.plan(self.epoch)
        return self._planned[1]

    def _take_step(self) -> Step:
        """Make this process's micro-batches of the next update, and update."""
        started = time.perf_counter()
        plans: list[Any | None] = []  # of all micro-batches, for all processes; None for those without rows
        for _part in range(self.settings.accumulation_steps):
            if self.position == len(self._plan()):
                self.epoch, self.position = self.epoch + 1, 0
            plan = self._plan()[self.position]
            plans += split_plan(self.training_task, plan, self.settings.micro_batches or 1)
            self.position += 1
        # A process takes part in every collective of torch, so one without rows computes another part, with weight 0.
        spare = None if self._parallel_loss is None else next(plan for plan in plans if plan is not None)
        own = [(number, plans[number]) for number in range(self.group.rank, len(plans), self.group.size)]
        batches = [
            None
            if (plan is None and spare is None)
            else self.training_task.make(spare if plan is None else plan, self._seed_of(number, len(plans)))
            for number, plan in own
        ]
        return self._update(plans, batches, started)

    def _seed_of(self, number: int, n_parts: int) -> int:
        """The seed of everything random in a micro-batch of the next update."""
        return (self.seed * 1_000_003 + self.step) * n_parts + number

    def _update(self, plans: Sequence[Any | None], batches: Sequence[B | None], started: float) -> Step:
        """Update the weights by this process's batches, which are every `group.size`-th of the plans."""
        self.model.train()
        own = range(self.group.rank, len(plans), self.group.size)
        counts = [
            0 if batch is None or plans[number] is None else batch.n_tokens
            for number, batch in zip(own, batches, strict=True)
        ]
        n_tokens, n_stops = map(int, self.group.sum([float(sum(counts)), float(self.group.is_stop_requested)]))
        self.group.is_stop_requested = n_stops > 0
        losses = [0.0] * len(plans)

        def backward(index: int) -> None:
            batch, number = batches[index], own[index]
            if batch is not None:
                # Dropout draws from the global generator; torch offers no other.
                torch.manual_seed(self._seed_of(number, len(plans)) % 2**63)
                is_last = index + 1 == len(batches)
                losses[number] = self._backward(batch, counts[index] / n_tokens, is_last=is_last)

        self.optimizer.zero_grad()
        if self._parallel_loss is None and len(plans) > 1:
            add_up_gradients(list(self.model.parameters()), len(batches), backward, self.group)
        else:
            for index in range(len(batches)):
                backward(index)
        losses = self.group.sum(losses)
        loss = sum(losses)
        norm = clip_gradients(list(self.model.parameters()), self.settings.clip_norm)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            # If only the gradient is not finite, any of the batches may be the cause.
            suspects = [plan for plan, part in zip(plans, losses, strict=True) if not math.isfinite(part)] or plans
            raise self._divergence(loss, norm, [plan for plan in suspects if plan is not None])
        rate = learning_rate(self.step + 1, self.settings, self.width)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
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

    def _backward(self, batch: B, weight: float, *, is_last: bool) -> float:
        """Accumulate the gradient of a batch's share in the mean loss over all tokens; return that share."""
        parallel = self._parallel_loss
        loss_of = parallel or self.training_task.loss
        with self.group.naming_lost(), parallel.computing(is_last=is_last) if parallel else nullcontext():
            with torch.autocast(self._device.type, torch.bfloat16, enabled=self.uses_bfloat16):
                loss = loss_of(batch, self.step + 1) * weight
            loss.backward()
        return loss.item() / (self.group.size if parallel else 1)

    def _divergence(self, loss: float, norm: float, suspects: Sequence[Any]) -> TrainingError:
        return TrainingError(
            _(
                "Step {step} (epoch {epoch}, batch {position}): the loss is {loss} and the gradient norm is "
                "{norm}. The weights were not updated. The batch: {suspects}. If its text is correct, train into a "
                "new folder (-o) with a lower train.learning_rate or a longer train.warmup.",
                step=self.step + 1,
                epoch=self.epoch + 1,
                position=self.position,
                loss=loss,
                norm=norm,
                suspects="; ".join(map(self.training_task.describe, suspects)),
            )
        )

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def progress(self) -> dict[str, Any]:
        """The step, the position in the data, and the notes of the caller."""
        return {"step": self.step, "epoch": self.epoch, "position": self.position, "notes": self.notes}

    def optimizer_state(self) -> dict[str, Tensor]:
        """The state of the optimizer, keyed by kind and parameter name."""
        return self._gather("optimizer")

    def _gather(self, kind: str) -> dict[str, Tensor]:
        """Whole tensors; if they are sharded, rank 0 asks the other processes to take part."""
        if kind == "weights":
            own = weights_of(self.model)
        elif kind == "ema":
            own = {} if self.ema is None else self.ema.weights
        else:
            own = {
                f"{name}/{parameter_name}": value
                for parameter_name, parameter in self.model.named_parameters()
                for name, value in self.optimizer.state[parameter].items()
            }
        if any(map(is_sharded, own.values())) and self.group.is_first:
            self.group.command(kind)
        with self.group.naming_lost():
            return gather(own)

    def _load_optimizer(self, state: Mapping[str, Tensor]) -> None:
        parameters = dict(self.model.named_parameters())
        for key, value in state.items():
            kind, _slash, name = key.partition("/")
            self.optimizer.state[parameters[name]][kind] = shard_like(value, parameters[name])

    def _go_to(self, progress: Mapping[str, Any]) -> None:
        self.step, self.epoch, self.position = progress["step"], progress["epoch"], progress["position"]
        self.notes = dict(progress.get("notes", {}))

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
            kind, _slash, name = key.partition("/")
            kinds.setdefault(name, set()).add(kind)
            if name not in parameters or (value.dim() and value.shape != parameters[name].shape):
                raise CheckpointError(
                    _("The optimizer state of the checkpoint does not fit this model: {key}.", key=key)
                )
        if incomplete := [name for name, found in kinds.items() if found != _OPTIMIZER_STATE]:
            raise CheckpointError(
                _("The optimizer state of the checkpoint is not that of AdamW: {incomplete}.", incomplete=incomplete[0])
            )
        load_weights(self.model, weights, "the checkpoint")
        self._go_to(progress)
        self._load_optimizer(optimizer_state)
        if self.ema is not None and ema is not None:
            self.ema.load(ema)

    def weights(self) -> dict[str, Tensor]:
        """The current weights of the model."""
        return self._gather("weights")

    def ema_weights(self) -> dict[str, Tensor]:
        """The EMA of the weights; empty if there is none."""
        return self._gather("ema")

    def eval_weights(self) -> dict[str, Tensor]:
        """The weights to validate and ship: the EMA if there is one, otherwise the current weights."""
        return self.weights() if self.ema is None else self.ema_weights()

    @contextmanager
    def using_eval_weights(self) -> Iterator[None]:
        """Load `eval_weights` into the model, and restore its training weights at the end."""
        if self.whole_model is not self.model:
            load_weights(self.whole_model, self.eval_weights(), "the training weights")
            yield
            return
        if self.ema is None:
            yield
            return
        training_weights = {name: value.clone() for name, value in self.weights().items()}
        load_weights(self.model, self.ema.weights, "the EMA")
        try:
            yield
        finally:
            load_weights(self.model, training_weights, "the training weights")
