"""Which device to compute on."""

import torch

from manyheads.errors import RecipeError


def pick_device(name: str) -> torch.device:
    """The named device, or with "auto" the best there is; one that is not there is refused, never replaced."""
    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = "cuda" if found["cuda"] else "mps" if found["mps"] else "cpu"
    kind = name.partition(":")[0]
    if not found.get(kind, False):
        there = ", ".join(kind for kind, is_there in found.items() if is_there)
        raise RecipeError(f'device = "{name}" is not on this machine. There is: {there}. "auto" takes the best.')
    try:
        return torch.device(name)
    except RuntimeError:
        raise RecipeError(f'device = "{name}" is not the name of a device. Write "{kind}" or "{kind}:0".') from None
