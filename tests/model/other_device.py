"""A device that this machine does not have: its tensors compute on the CPU, and refuse to meet tensors of the CPU.

`OtherDevice` is a mode. Within it, tensors of the device named "meta" are `OtherTensor`s, which hold a real tensor of
the CPU and compute with it, so that every path of a program runs, including those that depend on values. An operation
that mixes them with a plain tensor of the CPU raises `WrongDeviceError`, as it would on a GPU. Tensors without
dimensions are allowed, as on a GPU. Indices on the CPU, which a GPU accepts but has to wait for, are not. The device
has no float64, like MPS.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map, tree_map_only

# The only device without a backend for which torch has what it does beside kernels, such as guards: "cuda" would need a
# build with CUDA.
NAME = "meta"


_MIXING = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)  # they take tensors of two devices
_OPTIMIZER = sys.modules[torch.optim.Optimizer.__module__]
_FUSED = "_get_fused_kernels_supported_devices"


class WrongDeviceError(AssertionError):
    """An operation was given tensors of two devices."""


class OtherTensor(Tensor):
    """A tensor that says it is on the other device."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "OtherTensor":
        if inner.dtype == torch.float64:
            raise WrongDeviceError("float64 on the other device, which MPS does not have. Call .cpu() first.")
        wrapper = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=NAME,
            requires_grad=inner.requires_grad,
        )
        wrapper.inner = inner
        return wrapper

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"OtherTensor({self.inner!r})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return run(func, args, dict(kwargs or {}))

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_index(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_index(key), value)

    def tolist(self) -> Any:
        return self.inner.tolist()  # as on a GPU, it copies

    def numpy(self, *, force: bool = False) -> Any:
        raise WrongDeviceError("numpy() of a tensor that is not on the CPU. Call .cpu() first.")


def run(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operation with the tensors inside; its result is on the requested device, or on that of its inputs."""
    flat = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, Tensor)]
    others = [one for one in flat if isinstance(one, OtherTensor)]
    plain = [one for one in flat if not isinstance(one, OtherTensor) and one.dim()]
    device = kwargs.get("device")
    if others and plain and func not in _MIXING:
        shapes = ", ".join(f"{str(one.dtype).removeprefix('torch.')}{list(one.shape)}" for one in plain)
        raise WrongDeviceError(f"{func} mixes tensors of the other device with tensors of the CPU: {shapes}.")
    if device is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
        is_other = torch.device(device).type == NAME
    else:
        is_other = isinstance(args[0], OtherTensor) if func is torch.ops.aten.copy_.default else bool(others)
    result = func(*_unwrapped(args), **_unwrapped(kwargs))
    if not is_other:
        return result
    with torch.inference_mode(False):  # wrappers of inference tensors cannot be views
        wrapped = tree_map_only(Tensor, OtherTensor, result)
    if func in (torch.ops.aten._to_copy.default,):
        return wrapped
    return return_and_correct_aliasing(func, tuple(args), kwargs, wrapped) if others else wrapped


def _index(key: Any) -> Any:
    """The index with its lists as tensors, which torch makes on the device of the tensor, unseen by modes."""
    if isinstance(key, tuple):
        return tuple(map(_index, key))
    return OtherTensor(torch.tensor(key)) if isinstance(key, list) else key


def _unwrapped(tree: Any) -> Any:
    return tree_map(lambda one: one.inner if isinstance(one, OtherTensor) else one, tree)


class OtherDevice(TorchDispatchMode):
    """Makes tensors that are created on the other device `OtherTensor`s."""

    def __enter__(self) -> "OtherDevice":
        # Autocast does not know the name of this device, and neither does fused AdamW. `torch.tensor` copies to its
        # device unseen by modes.
        is_enabled, autocast, tensor, fused = (
            torch.is_autocast_enabled,
            torch.autocast,
            torch.tensor,
            _OPTIMIZER.__dict__,
        )
        self._patches = ExitStack()
        for where, name, replacement in (
            (torch, "is_autocast_enabled", lambda kind="cpu": kind != NAME and is_enabled(kind)),
            (
                torch,
                "autocast",
                lambda kind, *args, **options: nullcontext() if kind == NAME else autocast(kind, *args, **options),
            ),
            (torch, "tensor", lambda data, *, device=None, **options: tensor(data, **options).to(device or "cpu")),
            (_OPTIMIZER, _FUSED, lambda known=fused[_FUSED]: [*known(), NAME]),
        ):
            self._patches.enter_context(patch.object(where, name, replacement))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._patches.close()
        super().__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return run(func, args, dict(kwargs or {}))


def moved(module: torch.nn.Module) -> torch.nn.Module:
    """The module with its parameters and buffers on the other device."""

    def convert(tensor: Tensor) -> Tensor:
        return OtherTensor(tensor.detach().clone())

    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                new = _known(parameter, convert)
                part._parameters[name] = new
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = convert(buffer)
    return module


def _known(parameter: Any, convert: Callable[[Tensor], Tensor]) -> Any:
    """The converted parameter, the same one for each use of a tied weight."""
    if not hasattr(parameter, "moved"):
        parameter.moved = torch.nn.Parameter(convert(parameter), requires_grad=parameter.requires_grad)
    return parameter.moved
