"""The order in which gradients are added up."""

import pytest
import torch
from torch import nn

from manyheads.training import ProcessGroup
from manyheads.training.gradients import Tree, add_up_gradients, plan_sum


@pytest.mark.parametrize(
    ("n_parts", "tree"),
    [(1, 0), (2, (0, 1)), (3, ((0, 1), 2)), (4, ((0, 2), (1, 3))), (6, (((0, 3), (1, 4)), (2, 5)))],
)
def test_plan(n_parts: int, tree: Tree) -> None:
    assert plan_sum(n_parts) == tree


def test_own_sums_come_first() -> None:
    """Of 8 parts, rank 1 of 2 has 1, 3, 5 and 7: its own tree, numbered 0 to 3, is a branch of the whole tree."""

    def renamed(tree: Tree) -> Tree:
        return 2 * tree + 1 if isinstance(tree, int) else (renamed(tree[0]), renamed(tree[1]))

    whole = plan_sum(8)
    assert isinstance(whole, tuple)
    assert renamed(plan_sum(4)) == whole[1]


def test_gradients_of_parts_are_added_and_unused_parameters_keep_none() -> None:
    used, sometimes, never, frozen = (nn.Parameter(torch.ones(2, number + 1)) for number in range(4))
    frozen.requires_grad_(False)

    def backward(part: int) -> None:
        loss = (used * (part + 1)).sum() + (sometimes.sum() if part == 2 else 0.0)
        loss.backward()

    add_up_gradients([used, sometimes, never, frozen], 3, backward, ProcessGroup())
    assert used.grad is not None and sometimes.grad is not None
    assert used.grad.equal(torch.full((2, 1), 6.0))
    assert sometimes.grad.equal(torch.ones(2, 2))
    assert never.grad is None and frozen.grad is None
