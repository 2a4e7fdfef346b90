"""`ParallelLoss`: the loss of a micro-batch on one of several processes, whose gradients are added up over all of them.

Each process keeps all weights (DistributedDataParallel), or with `train.shard` a part of them (FSDP2).
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from manyheads.training.process_group import ProcessGroup
from manyheads.training.sharding import shard

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule  # importing it takes a second


class ParallelLoss:
    """The loss of a training task; the backward pass of the last micro-batch of an update adds up all gradients."""

    def __init__(self, module: nn.Module, training_task: Any, group: ProcessGroup, *, is_sharded: bool) -> None:
        self._group = group
        loss = _Loss(module, training_task)
        self._module: FSDPModule | DistributedDataParallel  # what runs the loss
        if is_sharded:
            self._module = shard(loss, group)
            return
        # With find_unused_parameters, torch keeps the order in which it adds gradients up: otherwise it rearranges them
        # after the first step, and a resumed run would not compute the same bits (docs/decisions/0039).
        with warnings.catch_warnings():  # torch 2.13 has another name for it, which torch 2.6 does not know
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            self._module = DistributedDataParallel(
                loss, broadcast_buffers=False, init_sync=False, find_unused_parameters=True
            )

    def __call__(self, batch: Any, step: int) -> Tensor:
        """The loss, as a share of this process in the mean that torch computes over all processes."""
        loss: Tensor = self._module(batch, step)  # type: ignore[operator]
        return loss * self._group.size

    @contextmanager
    def computing(self, *, is_last: bool) -> Iterator[None]:
        """Within, forward and backward pass; gradients are added up over the processes if it is the last one."""
        if not isinstance(self._module, DistributedDataParallel):
            self._module.set_requires_gradient_sync(is_last)
            yield
        elif is_last:
            yield
        else:
            with self._module.no_sync():
                yield


class _Loss(nn.Module):
    """A training task's loss as the forward pass of a module, which is what torch can distribute."""

    def __init__(self, module: nn.Module, training_task: Any) -> None:
        super().__init__()
        self.module = module
        self._training_task = training_task

    def forward(self, batch: Any, step: int) -> Tensor:
        loss: Tensor = self._training_task.loss(batch, step)
        return loss
