"""The weights of a module as a dict: read, load, save, average and quantize them."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from manyheads.errors import BundleError

_SCALE = ".scale"  # suffix of the scales of a quantized matrix


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """Every parameter and persistent buffer by name; a tied matrix appears once, under its first name."""
    parameters = dict(module.named_parameters())
    parameter_names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    buffers = {name: value for name, value in module.state_dict().items() if name not in parameter_names}
    return {name: value.detach() for name, value in (parameters | buffers).items()}


@torch.no_grad()
def load_weights(module: nn.Module, weights: Mapping[str, Tensor], origin: str) -> None:
    """Copy weights into the module; an error lists every mismatch and names their `origin`."""
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
    """Write tensors as safetensors; a full disk raises OSError, as for any other file."""
    try:
        save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise OSError(f"{path}: {error}") from None
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from None


def average(snapshots: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, computed in double precision."""
    return {
        name: torch.stack([snapshot[name].double() for snapshot in snapshots]).mean(0).to(value.dtype)
        for name, value in snapshots[0].items()
    }


def quantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every matrix as int8 values from −127 to 127 and one scale per row; other tensors are unchanged."""
    quantized: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.dim() != 2 or not value.is_floating_point():
            quantized[name] = value
            continue
        scale = value.abs().amax(dim=1).clamp_min(torch.finfo(value.dtype).tiny) / 127
        quantized[name] = (value / scale[:, None]).round().to(torch.int8)
        quantized[name + _SCALE] = scale
    return quantized


def dequantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `quantize_weights`, up to rounding."""
    return {
        name: value
        if value.dtype != torch.int8
        else value.to(weights[name + _SCALE].dtype) * weights[name + _SCALE][:, None]
        for name, value in weights.items()
        if not (name.endswith(_SCALE) and name.removesuffix(_SCALE) in weights)
    }
