"""Sharding: every process keeps a part of each weight, of its gradient and of its optimizer state (FSDP2).

A layer's weights are gathered when it computes and released afterwards. Outside this file a sharded tensor is a tensor
like any other, except that `gather` needs all processes.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule


def layers_of(module: nn.Module) -> list[nn.Module]:
    """Return the layers of every stack of a model."""
    return [layer for stack in module.modules() if isinstance(stack, nn.ModuleList) for layer in stack]


def shard(module: nn.Module) -> "FSDPModule":
    """Shard the weights of a module in place: those of each layer of a stack together, all others with the module."""
    from torch.distributed.fsdp import fully_shard

    for layer in layers_of(module):
        fully_shard(layer)
    return fully_shard(module)


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


def own_part(tensor: Tensor) -> Tensor:
    """Return this process's part of a tensor, which shares its memory."""
    return tensor.to_local() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]
