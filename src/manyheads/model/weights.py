"""A module's weights by name, tied ones once, and back: everything that is missing or does not fit, told at once."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from manyheads.errors import BundleError


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """Every parameter and lasting buffer; a tied matrix stands under its first name only."""
    parameters = dict(module.named_parameters())
    every_name = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    buffers = {name: value for name, value in module.state_dict().items() if name not in every_name}
    return {name: value.detach() for name, value in (parameters | buffers).items()}


@torch.no_grad()
def load_weights(module: nn.Module, weights: Mapping[str, Tensor], origin: str) -> None:
    """Copy weights into the module; `origin` names where they come from in errors."""
    own = weights_of(module)
    faults = [f"{name} is missing" for name in own if name not in weights]
    faults += [f"{name} is unknown" for name in weights if name not in own]
    faults += [
        f"{name} is {tuple(weights[name].shape)}, not {tuple(value.shape)}"
        for name, value in own.items()
        if name in weights and weights[name].shape != value.shape
    ]
    if faults:
        raise BundleError(f"{origin} does not fit this model: {'; '.join(faults)}.")
    for name, value in own.items():
        value.copy_(weights[name])


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors; a full disk is an OSError, as it is for any other file."""
    try:
        save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise OSError(f"{path}: {error}") from None
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from None


def average(snapshots: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, summed in double precision."""
    return {
        name: torch.stack([snapshot[name].double() for snapshot in snapshots]).mean(0).to(value.dtype)
        for name, value in snapshots[0].items()
    }
