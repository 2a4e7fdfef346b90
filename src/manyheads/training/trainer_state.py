"""`TrainerState`: weights, their EMA, the state of the optimizer and the position in the data: what checkpoints save.

Several processes share the state of rank 0 when they start. If the model is sharded, each has a part of every tensor,
and rank 0 gathers whole tensors to validate and to save.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.errors import CheckpointError
from manyheads.messages import _
from manyheads.model import Transformer
from manyheads.model.embedding import Embedding
from manyheads.model.weights import load_weights, weights_of
from manyheads.training.gradients import Gradients
from manyheads.training.process_group import ProcessGroup
from manyheads.training.settings import TrainSettings, peak_learning_rate
from manyheads.training.sharding import gather, is_sharded, own_part, shard_like

_OPTIMIZER_STATE = {"step", "exp_avg", "exp_avg_sq"}  # of AdamW, for each parameter that is trained


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
        own, others = ([own_part(values[name]) for name in floats] for values in (self.weights, weights))
        torch._foreach_lerp_(own, others, 1.0 - decay)
        for name in self.weights.keys() - set(floats):  # integers, such as the counters of some norms
            self.weights[name].copy_(weights[name])

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the average."""
        for name, value in self.weights.items():
            value.copy_(weights[name])


def make_optimizer(model: nn.Module, settings: TrainSettings, width: int) -> torch.optim.AdamW:
    """Return AdamW with the betas and ε of 2017; the learning rate of each group is that of the step times "factor"."""
    groups: dict[float, list[nn.Parameter]] = {}
    for parameter, factor in rate_factors(model, settings, width):
        groups.setdefault(factor, []).append(parameter)
    return torch.optim.AdamW(
        [{"params": parameters, "factor": factor} for factor, parameters in groups.items()],
        betas=(0.9, 0.98),
        eps=1e-9,
        weight_decay=settings.weight_decay,
        fused=True,
    )


def rate_factors(model: nn.Module, settings: TrainSettings, width: int) -> list[tuple[nn.Parameter, float]]:
    """Return every parameter with what its learning rate is multiplied by, which depends on its depth.

    A matrix that is both embedding and output layer counts as an embedding.
    """
    head = settings.head_learning_rate
    factors = dict.fromkeys(model.parameters(), 1.0 if head is None else head / peak_learning_rate(settings, width))
    for module in model.modules():
        if isinstance(module, Transformer):
            factors |= dict.fromkeys(module.parameters(), 1.0)
    stacks = [stack for stack in model.modules() if isinstance(stack, nn.ModuleList)]
    for stack in stacks:
        for number, layer in enumerate(stack):
            factors |= dict.fromkeys(layer.parameters(), settings.layer_decay ** (len(stack) - 1 - number))
    deepest = max(map(len, stacks), default=0)
    for module in model.modules():
        if isinstance(module, Embedding):
            factors |= dict.fromkeys(module.parameters(), settings.layer_decay**deepest)
    return list(factors.items())


class TrainerState:
    """The state of a trainer, which sets these attributes."""

    model: nn.Module
    whole_model: nn.Module
    settings: TrainSettings
    width: int
    group: ProcessGroup
    optimizer: torch.optim.AdamW
    gradients: Gradients
    ema: EMA | None
    step: int
    epoch: int
    position: int
    notes: dict[str, float]

    def progress(self) -> dict[str, Any]:
        """The step, the position in the data, and the notes of the caller."""
        return {"step": self.step, "epoch": self.epoch, "position": self.position, "notes": self.notes}

    def weights(self) -> dict[str, Tensor]:
        """The current weights of the model."""
        return self.gathered("weights")

    def ema_weights(self) -> dict[str, Tensor]:
        """The EMA of the weights; empty if there is none."""
        return self.gathered("ema")

    def optimizer_state(self) -> dict[str, Tensor]:
        """The state of the optimizer, keyed by kind and parameter name."""
        return self.gathered("optimizer")

    def gathered(self, kind: str) -> dict[str, Tensor]:
        """Whole tensors: "weights", "ema" or "optimizer"; if sharded, rank 0 asks the others to take part."""
        own = self._tensors(kind)
        if any(map(is_sharded, own.values())) and self.group.is_first:
            self.group.command(kind)
        with self.group.naming_lost():
            return gather(own)

    def _tensors(self, kind: str) -> dict[str, Tensor]:
        """The tensors of this process, which are parts if the model is sharded."""
        if kind == "weights":
            return weights_of(self.model)
        if kind == "ema":
            return {} if self.ema is None else self.ema.weights
        return {
            f"{name}/{parameter_name}": value
            for parameter_name, parameter in self.model.named_parameters()
            for name, value in self.optimizer.state[parameter].items()
        }

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
                _("The optimizer state of the checkpoint is not that of AdamW: {name}.", name=incomplete[0])
            )
        load_weights(self.model, weights, "the checkpoint")
        self._go_to(progress)
        self._load_optimizer(optimizer_state)
        if self.ema is not None and ema is not None:
            self.ema.load(ema)

    def share(self) -> None:
        """Give every process the state of rank 0, and divide the work among them; nothing if this one is alone."""
        if self.group.is_alone:
            return
        self._broadcast()
        state, ema = self.optimizer_state(), self.ema_weights()
        self.gradients.distribute(is_sharded=self.settings.shard)
        if self.settings.shard:  # the model has new parameters, of which each process has a part
            self.optimizer = make_optimizer(self.model, self.settings, self.width)
            self._load_optimizer(state)
            weights = weights_of(self.model)
            if self.ema is not None:
                self.ema.weights = {name: shard_like(value, weights[name]) for name, value in ema.items()}

    def _broadcast(self) -> None:
        """Copy weights, EMA, optimizer state and progress from rank 0 to the other processes."""
        optimizer = self.optimizer_state()
        shared = self.group.share(
            {"progress": self.progress(), "optimizer": sorted(optimizer), "bfloat16": self.gradients.uses_bfloat16}
        )
        # "auto" depends on the device, which may differ between machines.
        self.gradients.uses_bfloat16 = shared["bfloat16"]
        if not self.group.is_first:
            self._go_to(shared["progress"])
            optimizer = self._empty_optimizer_state(shared["optimizer"])
        for tensors in (weights_of(self.model), {} if self.ema is None else self.ema.weights, optimizer):
            for _name, tensor in sorted(tensors.items()):
                self.group.broadcast(tensor)
        self._load_optimizer(optimizer)

    def _empty_optimizer_state(self, keys: list[str]) -> dict[str, Tensor]:
        parameters = dict(self.model.named_parameters())
        names = {key: key.partition("/")[2] for key in keys}
        scalar = torch.zeros((), device=self.gradients.device)
        return {
            key: scalar.clone() if key.startswith("step/") else torch.zeros_like(parameters[name])
            for key, name in names.items()
        }

    def _load_optimizer(self, state: Mapping[str, Tensor]) -> None:
        parameters = dict(self.model.named_parameters())
        for key, value in state.items():
            kind, _slash, name = key.partition("/")
            self.optimizer.state[parameters[name]][kind] = shard_like(value, parameters[name])

    def _go_to(self, progress: Mapping[str, Any]) -> None:
        self.step, self.epoch, self.position = progress["step"], progress["epoch"], progress["position"]
        self.notes = dict(progress.get("notes", {}))
