"""`Gradients`: the gradients of an update, of this process's micro-batches and added up over all processes.

Float addition is not associative: a sum in another order differs in its last bits, and training amplifies the
difference a thousandfold within a hundred steps (docs/decisions/0039). Here part i and part i + n/2 of n parts are
added, then the same with the n/2 sums, and so on. Rank r has the parts r, r + W, …, so the first additions are its own
and the last ones are made between processes. With powers of two, the tree is the same for every number of processes.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from manyheads.training.process_group import ProcessGroup
from manyheads.training.sharding import shard

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule  # importing it takes a second


Tree = int | tuple[Any, Any]  # a part, or the sum of two trees


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


class Gradients:
    """Makes this process's batches of an update, and computes their gradients; it is alone or one of several."""

    def __init__(self, model: nn.Module, training_task: Any, group: ProcessGroup, *, uses_bfloat16: bool) -> None:
        self.model = model
        self.training_task = training_task
        self.group = group
        self.uses_bfloat16 = uses_bfloat16
        self.device = next(model.parameters()).device
        self.adds_in_tree = self.device.type == "cpu"  # otherwise torch adds gradients up while it computes others
        self._parallel_loss: ParallelLoss | None = None

    def distribute(self, *, is_sharded: bool) -> None:
        """Let torch add up gradients over the processes, if they are not added in a tree; shard the model if set."""

        if is_sharded or not self.adds_in_tree:
            self._parallel_loss = ParallelLoss(self.model, self.training_task, self.group, is_sharded=is_sharded)

    def make_batches(self, plans: Sequence[Any | None], seeds: Sequence[int]) -> list[Any | None]:
        """Make this process's batches, which are every `group.size`-th of the plans; None for one without rows.

        A process takes part in every collective of torch, so one without rows computes another batch, with weight 0.
        """
        spare = None if self._parallel_loss is None else next(plan for plan in plans if plan is not None)
        own = [(number, spare if plans[number] is None else plans[number]) for number in self._own_parts(len(plans))]
        return [None if plan is None else self.training_task.make(plan, seeds[number]) for number, plan in own]

    def backward(
        self, plans: Sequence[Any | None], batches: Sequence[Any | None], seeds: Sequence[int], step: int
    ) -> tuple[list[float], int]:
        """Leave the gradient of the mean loss per token in the parameters.

        Returns the share of each micro-batch in that loss, and the number of tokens, of all processes.
        """
        own = self._own_parts(len(plans))
        has_rows = [plans[number] is not None for number in own]
        counts = [
            batch.n_tokens if batch is not None and real else 0 for batch, real in zip(batches, has_rows, strict=True)
        ]
        n_tokens, n_stops = map(int, self.group.sum([float(sum(counts)), float(self.group.is_stop_requested)]))
        self.group.is_stop_requested = n_stops > 0
        losses = [0.0] * len(plans)

        def backward(index: int) -> None:
            batch, number = batches[index], own[index]
            if batch is not None:
                torch.manual_seed(seeds[number] % 2**63)  # dropout draws from the global generator; torch has no other
                is_last = index + 1 == len(batches)
                losses[number] = self._backward(batch, counts[index] / n_tokens, step, is_last=is_last)

        if self._parallel_loss is None and len(plans) > 1:
            add_up_gradients(list(self.model.parameters()), len(batches), backward, self.group)
        else:
            for index in range(len(batches)):
                backward(index)
        return self.group.sum(losses), n_tokens

    def _own_parts(self, n_parts: int) -> range:
        return range(self.group.rank, n_parts, self.group.size)

    def _backward(self, batch: Any, weight: float, step: int, *, is_last: bool) -> float:
        """Accumulate the gradient of a batch's share in the mean loss over all tokens; return that share."""
        parallel = self._parallel_loss
        loss_of = parallel or self.training_task.loss
        with self.group.naming_lost(), parallel.computing(is_last=is_last) if parallel else nullcontext():
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.uses_bfloat16):
                loss = loss_of(batch, step) * weight
            loss.backward()
        return loss.item() / (self.group.size if parallel else 1)


def plan_sum(n_parts: int) -> Tree:
    """Return the order in which parts are added up: in halves as long as their number is even, then one by one."""
    nodes: list[Tree] = list(range(n_parts))
    while len(nodes) > 1 and len(nodes) % 2 == 0:
        half = len(nodes) // 2
        nodes = [(nodes[number], nodes[number + half]) for number in range(half)]
    tree = nodes[0]
    for node in nodes[1:]:
        tree = (tree, node)
    return tree


def add_up_gradients(
    parameters: Sequence[nn.Parameter], n_parts: int, backward: Callable[[int], None], group: ProcessGroup
) -> None:
    """Compute the gradients of each of this process's parts, and leave the sum over all processes in the parameters.

    `backward` computes those of a part. A parameter that no part uses keeps no gradient.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    n_uses = [0.0] * len(trained)

    def gradients_of(tree: Tree) -> Tensor:
        if isinstance(tree, tuple):
            left, right = tree
            return gradients_of(left).add_(gradients_of(right))
        for parameter in trained:
            parameter.grad = None
        backward(tree)
        for index, parameter in enumerate(trained):
            n_uses[index] += parameter.grad is not None
        return torch.cat([_flat_gradient(parameter) for parameter in trained])

    total = gradients_of(plan_sum(n_parts))
    group.add_up(total)
    pieces = total.split([parameter.numel() for parameter in trained])
    for parameter, piece, count in zip(trained, pieces, group.sum(n_uses), strict=True):
        parameter.grad = piece.view_as(parameter) if count else None


def _flat_gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter).flatten() if parameter.grad is None else parameter.grad.flatten()
