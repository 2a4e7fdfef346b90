"""The weights of a module as a dict: read, check, load, save, average and quantize them."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from manyheads.errors import BundleError, ManyheadsError
from manyheads.messages import _

_SCALE = ".scale"  # suffix of the scales of a quantized matrix
_FLOATS = ("F64", "F32", "F16", "BF16")  # as safetensors names them
_MAX_HEADER_BYTES = 16_000_000  # enough for 100,000 tensors
_MAX_FAULTS = 10  # listed in one error


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """Every parameter and persistent buffer by name; a tied matrix appears once, under its first name."""
    parameters = dict(module.named_parameters())
    parameter_names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    buffers = {name: value for name, value in module.state_dict().items() if name not in parameter_names}
    return {name: value.detach() for name, value in (parameters | buffers).items()}


def count_parameters(module: nn.Module) -> int:
    """Return the number of trained numbers; shared ones count once."""
    return sum(parameter.numel() for parameter in module.parameters())


@torch.no_grad()
def load_weights(module: nn.Module, weights: Mapping[str, Tensor], origin: str) -> None:
    """Copy weights into the module; an error lists every mismatch and names their `origin`."""
    own = weights_of(module)
    _refuse_misfits(own, {name: tuple(value.shape) for name, value in weights.items()}, origin)
    for name, value in own.items():
        value.copy_(weights[name])


def read_tensors(path: Path, error: type[ManyheadsError]) -> dict[str, Tensor]:
    """Read a safetensors file; raise `error`, naming the file, if it is not one or has a NaN or an infinite number."""
    read_header(path, error)
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError) as reason:
        raise error(_("{path} is not a safetensors file: {reason}.", path=path, reason=reason)) from None
    refuse_infinite(tensors, path, error)
    return tensors


def refuse_infinite(tensors: Mapping[str, Tensor], path: Path, error: type[ManyheadsError]) -> None:
    """Raise `error`, naming the file the tensors are from, if a number is NaN, or infinite in 32 bits."""
    broken = [name for name, value in tensors.items() if not value.float().isfinite().all()]
    if broken:  # one such number spoils every answer, often without a sign
        names = ", ".join(broken[:3]) + (_(" and {n_more:,} more", n_more=len(broken) - 3) if len(broken) > 3 else "")
        raise error(
            _(
                "{path} has numbers that are NaN or infinite: {names}. It is damaged, or its training diverged: train "
                "again with a lower train.learning_rate.",
                path=path,
                names=names,
            )
        )


def read_header(path: Path, error: type[ManyheadsError]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and the shape of each tensor in a safetensors file, without reading its numbers."""
    try:
        with path.open("rb") as stream:
            n_bytes = int.from_bytes(stream.read(8), "little")
        if n_bytes > _MAX_HEADER_BYTES:
            reason = _("its header has {n_bytes:,} bytes", n_bytes=n_bytes)
            raise error(_("{path} is not a safetensors file: {reason}.", path=path, reason=reason))
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is not a dict
            return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
    except (SafetensorError, OSError) as reason:
        raise error(_("{path} is not a safetensors file: {reason}.", path=path, reason=reason)) from None


def check_header(module: nn.Module, header: Mapping[str, tuple[str, tuple[int, ...]]], origin: str) -> None:
    """Raise BundleError unless tensors with this header fit the module, which may be on the device "meta"."""
    shapes = {name: shape for name, (_dtype, shape) in header.items()}
    for name, (dtype, shape) in header.items():
        if dtype == "I8":
            scales = shapes.pop(name + _SCALE, None)
            if len(shape) != 2 or scales != shape[:1]:
                raise BundleError(
                    _("{origin} has int8 weights without their scales: {name}.", origin=origin, name=name)
                )
        elif dtype not in _FLOATS:
            raise BundleError(
                _(
                    "{origin} has weights of type {dtype}: {name}. They must be floats or int8.",
                    origin=origin,
                    dtype=dtype,
                    name=name,
                )
            )
    _refuse_misfits(weights_of(module), shapes, origin)


def _refuse_misfits(own: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], origin: str) -> None:
    """Raise BundleError if these shapes are not those of a module's own weights."""
    faults = [_("{name} is missing", name=name) for name in own if name not in shapes]
    faults += [_("{name} is unknown", name=name) for name in shapes if name not in own]
    faults += [
        _("{name} is {shape}, not {expected}", name=name, shape=shapes[name], expected=tuple(value.shape))
        for name, value in own.items()
        if name in shapes and shapes[name] != tuple(value.shape)
    ]
    if len(faults) > _MAX_FAULTS:
        faults[_MAX_FAULTS:] = [_("and {n_more:,} more", n_more=len(faults) - _MAX_FAULTS)]
    if faults:
        raise BundleError(_("{origin} does not fit this model: {faults}.", origin=origin, faults=_("; ").join(faults)))


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
