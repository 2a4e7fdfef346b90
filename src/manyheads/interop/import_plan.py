"""`Plan`: from which tensors of a checkpoint each of our weights is made; and `Family`, which makes a plan.

A plan is complete before a number is read, so that every missing, extra or misshaped tensor is reported at once.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.errors import BundleError
from manyheads.interop.checkpoint_files import Checkpoint, Config
from manyheads.interop.tokenizer_import import Roles
from manyheads.messages import _
from manyheads.model import ModelSettings
from manyheads.model.weights import weights_of
from manyheads.text.tokens.imported_tokenizer import Numbering

Shape = tuple[int, ...]
Make = Callable[..., Tensor]
_NEVER = -1e4  # a logit whose probability is 0 in single precision; infinity would make a smoothed loss infinite


@dataclass(frozen=True)
class Source:
    """The tensors that one of our weights is made of, their shapes, and how; None: the weight is the tensor itself."""

    names: tuple[str, ...]
    shapes: tuple[Shape, ...] = ()
    make: Make | None = None


class Plan:
    """The sources of our weights by name; `prefix` is that of their base model, `available` all names they have."""

    def __init__(
        self, settings: ModelSettings, numbering: Numbering, prefix: str, available: Container[str] = ()
    ) -> None:
        self.settings, self.numbering, self.prefix, self.available = settings, numbering, prefix, available
        self.sources: dict[str, Source] = {}

    def put(self, ours: str, *theirs: str, shapes: Sequence[Shape] = (), make: Make | None = None) -> None:
        """Make a weight of tensors of the base model."""
        self.put_head(ours, *(self.prefix + name for name in theirs), shapes=shapes, make=make)

    def put_head(self, ours: str, *theirs: str, shapes: Sequence[Shape] = (), make: Make | None = None) -> None:
        """Make a weight of tensors by their full names, as those of a head."""
        self.sources[ours] = Source(theirs, tuple(shapes), make)

    def first(self, *theirs: str) -> str:
        """The first of these names that the checkpoint has: a shared matrix is stored under one of them."""
        return next((name for name in theirs if self.prefix + name in self.available), theirs[0])

    def pair(self, ours: str, theirs: str, *, bias: bool = True, make: Make | None = None) -> None:
        """A linear layer or a norm: its weight and its bias."""
        for part in ("weight", "bias") if bias else ("weight",):
            self.put(f"{ours}.{part}", f"{theirs}.{part}", make=make)

    def zeros(self, ours: str, size: int) -> None:
        """A bias that they do not have."""
        self.sources[ours] = Source((), make=lambda: torch.zeros(size))

    def tokens(self, ours: str, theirs: str, *, is_full_name: bool = False) -> None:
        """The embedding: the rows of their ids in our order."""
        name = theirs if is_full_name else self.prefix + theirs
        shape = (len(self.numbering.ours), self.settings.width)
        self.sources[ours] = Source((name,), (shape,), self.renumber)

    def renumber(self, rows: Tensor) -> Tensor:
        """Rows by their ids in the order of ours."""
        return rows[torch.tensor(self.numbering.theirs)]

    def output_bias(self, bias: Tensor | None = None) -> Tensor:
        """The bias of the output layer: theirs, or none; an id that only stands in for another is never generated."""
        ours = torch.zeros(self.settings.vocab_size) if bias is None else self.renumber(bias.flatten())
        return ours.masked_fill(torch.tensor(self.numbering.is_copy), _NEVER)

    @torch.no_grad()
    def load(self, module: nn.Module, checkpoint: Checkpoint, is_ignored: Callable[[str], bool]) -> None:
        """Copy the weights into a module, one tensor at a time."""
        own = weights_of(module)
        needed: dict[str, Shape | None] = {}
        for ours, source in self.sources.items():
            shapes = source.shapes or (tuple(own[ours].shape) if source.make is None else None,) * len(source.names)
            needed |= dict(zip(source.names, shapes, strict=True))
        checkpoint.check(needed, is_ignored)
        if faults := sorted({*own} ^ {*self.sources}):
            raise AssertionError(f"the plan and the module differ: {faults[:5]}")
        for ours, source in self.sources.items():
            tensors = [checkpoint[name] for name in source.names]
            value = tensors[0] if source.make is None else source.make(*tensors)
            if not value.isfinite().all():
                raise BundleError(
                    _("{folder}: {name} has numbers that are NaN or infinite.", folder=checkpoint.folder, name=ours)
                )
            own[ours].copy_(value)


@dataclass(frozen=True)
class Head:
    """What a class of theirs has after its base model: our task, and the parts that the task needs."""

    kind: str
    model: Mapping[str, Any] = field(default_factory=dict)  # model settings
    settings: Callable[[Config], dict[str, Any]] = lambda config: {}  # of the task
    metadata: Callable[[Config], dict[str, Any]] = lambda config: {}  # of the task
    plan: Callable[[Config, Plan], None] = lambda config, plan: None  # of what the task's module has besides the model


@dataclass(frozen=True)
class Family:
    """Models of one kind: how their config and the names of their tensors become ours."""

    heads: Mapping[str, Head]  # by class, the base class first
    prefix: str  # of the base model in a class with a head
    settings: Callable[[Config], dict[str, Any]]  # of the model, without vocab_size
    plan: Callable[[Config, Plan], None]
    roles: Callable[[Config], Roles]
    ignored: tuple[str, ...] = ()  # regular expressions of tensors that are not needed

    def is_ignored(self, name: str) -> bool:
        """Whether a tensor may be there and is not read."""
        return any(re.search(pattern, name) for pattern in self.ignored)
