"""Adding up the gradients of micro-batches in an order that does not depend on the number of processes.

Float addition is not associative: a sum in another order differs in its last bits, and training amplifies the
difference a thousandfold within a hundred steps (docs/decisions/0039). Here part i and part i + n/2 of n parts are
added, then the same with the n/2 sums, and so on. Rank r has the parts r, r + W, …, so the first additions are its own
and the last ones are made between processes. With powers of two, the tree is the same for every number of processes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.training.process_group import ProcessGroup

Tree = int | tuple[Any, Any]  # a part, or the sum of two trees


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
