"""Weights in eight bits: each row of a matrix as whole numbers from −127 to 127 and one scale."""

from collections.abc import Mapping

import torch
from torch import Tensor

_SCALE = ".scale"  # what the name of a row's scales ends in


def quantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every matrix as bytes and scales; vectors stay as they are."""
    found: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.dim() != 2 or not value.is_floating_point():
            found[name] = value
            continue
        scale = value.abs().amax(dim=1).clamp_min(torch.finfo(value.dtype).tiny) / 127
        found[name] = (value / scale[:, None]).round().to(torch.int8)
        found[name + _SCALE] = scale
    return found


def dequantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The numbers that the bytes stand for; what is not in bytes stays as it is."""
    return {
        name: value
        if value.dtype != torch.int8
        else value.to(weights[name + _SCALE].dtype) * weights[name + _SCALE][:, None]
        for name, value in weights.items()
        if not (name.endswith(_SCALE) and name.removesuffix(_SCALE) in weights)
    }
