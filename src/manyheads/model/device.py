"""The choice of a device."""

import torch

from manyheads.errors import RecipeError
from manyheads.messages import _


def pick_device(name: str) -> torch.device:
    """The named device, or the fastest available one for "auto"; an unavailable device is an error."""
    is_available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = "cuda" if is_available["cuda"] else "mps" if is_available["mps"] else "cpu"
    kind = name.partition(":")[0]
    if not is_available.get(kind, False):
        available = ", ".join(kind for kind, available in is_available.items() if available)
        raise RecipeError(
            _(
                'device = "{name}" is not available on this machine. Available: {available}. "auto" picks the fastest.',
                name=name,
                available=available,
            )
        )
    try:
        return torch.device(name)
    except RuntimeError:
        raise RecipeError(
            _('device = "{name}" is not a valid device name. Write "{kind}" or "{kind}:0".', name=name, kind=kind)
        ) from None
