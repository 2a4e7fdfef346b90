"""`evaluating`: run a module without dropout and without recording gradients."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put the module in eval mode and disable gradients; restore the training mode of every submodule at the end.

    Tensors created in the block are inference tensors: autograd cannot use them later.
    """
    modes = {submodule: submodule.training for submodule in module.modules()}
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for submodule, mode in modes.items():
            submodule.training = mode
