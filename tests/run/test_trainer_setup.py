"""What every process of a run builds: its device first of all."""

from typing import Any

import pytest
import torch

from manyheads.errors import RecipeError
from manyheads.run import Recipe
from manyheads.run.trainer_setup import check_device, pick_own_device
from manyheads.training import ProcessGroup


def process(rank: int) -> ProcessGroup:
    """One of two processes of a machine."""
    return ProcessGroup(rank, 2, rank)


def recipe(device: str, **train: Any) -> Recipe:
    return Recipe.from_table({"data": {"builtin": "en-zh"}, "device": device, "train": train})


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The GPUs that were made the current one, on a machine that has two."""
    found: list[int] = []
    monkeypatch.setattr("manyheads.run.trainer_setup.pick_device", torch.device)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", found.append)
    return found


def test_each_of_several_processes_has_a_gpu_of_its_own(chosen: list[int]) -> None:
    devices = [pick_own_device(recipe("cuda"), process(rank)) for rank in (0, 1)]
    assert devices == [torch.device("cuda", 0), torch.device("cuda", 1)]
    assert chosen == [0, 1]  # also the current one, which NCCL uses
    with pytest.raises(RecipeError, match=r"Process 2 is number 3 on its machine, which has 2 GPUs"):
        pick_own_device(recipe("cuda"), process(2))
    with pytest.raises(RecipeError, match=r'device = "cuda:1" is not for 2 processes'):
        pick_own_device(recipe("cuda:1"), process(0))
    with pytest.raises(RecipeError, match=r'device = "mps" is not for 2 processes'):
        pick_own_device(recipe("mps"), process(0))


def test_a_cpu_is_shared_and_one_process_has_the_device_of_its_recipe(chosen: list[int]) -> None:
    assert pick_own_device(recipe("cpu"), process(1)) == torch.device("cpu")
    assert pick_own_device(recipe("cuda:1"), ProcessGroup()) == torch.device("cuda:1")
    assert chosen == []


def test_compilation_needs_a_gpu() -> None:
    check_device(recipe("cpu"), torch.device("cpu"))
    check_device(recipe("cuda", compile=True), torch.device("cuda"))
    with pytest.raises(RecipeError, match=r"train.compile = true needs a GPU, but the device is cpu"):
        check_device(recipe("cpu", compile=True), torch.device("cpu"))
