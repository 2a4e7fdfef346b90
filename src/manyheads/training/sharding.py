"""Sharding: every process keeps a part of each weight, of its gradient and of its optimizer state (FSDP2).

A layer's weights are gathered when it computes and released afterwards. Outside this file a sharded tensor is a tensor
like any other, except that `gather` needs all processes.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from manyheads.training.process_group import ProcessGroup

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule


def layers_of(module: nn.Module) -> list[nn.Module]:
    """Return the layers of every stack of a model."""
    return [layer for stack in module.modules() if isinstance(stack, nn.ModuleList) for layer in stack]


def shard(module: nn.Module, group: ProcessGroup) -> "FSDPModule":
    """Shard the weights of a module in place: those of each layer of a stack together, all others with the module.

    On CPUs the gradients are added up in the order of `gradients`, so that sharding does not change them.
    """
    from torch.distributed.fsdp import fully_shard

    is_on_cpu = next(module.parameters()).device.type == "cpu"
    for part in (*layers_of(module), module):  # a layer before what contains it
        sharded = fully_shard(part)
        if is_on_cpu and hasattr(sharded, "set_custom_reduce_scatter"):  # torch 2.6 has no such method
            sharded.set_custom_reduce_scatter(_TreeReduceScatter(group))  # type: ignore[arg-type]
    return sharded


class _TreeReduceScatter:
    """Adds the gradients of all processes and keeps this one's part; replaces gloo's reduce-scatter in FSDP2."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any) -> None:
        self._group.add_up(input_tensor)
        output_tensor.copy_(input_tensor.chunk(self._group.size)[self._group.rank])
        if op == dist.ReduceOp.AVG:
            output_tensor /= self._group.size


def is_sharded(tensor: Tensor) -> bool:
    """Return whether a process has only a part of the tensor."""
    return hasattr(tensor, "full_tensor")  # importing DTensor to test for it takes half a second


def shard_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor that every process has, sharded as `like` is; on its device if it is not sharded."""
    if not is_sharded(like) or not tensor.dim():  # AdamW counts the steps of a parameter in a scalar
        return tensor.to(like.device)
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def gather(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the whole tensors; if any is sharded, all processes must call this."""
    return {name: whole(tensor) for name, tensor in tensors.items()}


@torch.no_grad()
def whole(tensor: Tensor) -> Tensor:
    """Return the whole of a tensor that may be sharded."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]


def clip_gradients(parameters: Sequence[nn.Parameter], max_norm: float) -> float:
    """Scale the gradients down to a norm of at most `max_norm`; return their norm before.

    On CPUs the norm is computed of whole gradients, one after another: with that, sharding does not change its bits.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if any(is_sharded(gradient) and gradient.device.type == "cpu" for gradient in gradients):
        norm = torch.stack([torch.linalg.vector_norm(whole(gradient)) for gradient in gradients]).norm()
    else:
        norm = nn.utils.get_total_norm(gradients)
    nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
    return whole(norm).item()


def own_part(tensor: Tensor) -> Tensor:
    """Return this process's part of a tensor, which shares its memory."""
    return tensor.to_local() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]
