"""Beginning from another bundle: its weights wherever they have a place, and parts that then stay as they are."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from manyheads.errors import BundleError, RecipeError
from manyheads.model import Transformer
from manyheads.settings import did_you_mean


@torch.no_grad()
def warm_start(model: Transformer, other: Transformer, origin: str) -> tuple[int, int]:
    """Copy every weight of another Transformer that this one has too, by name; how many of how many that was.

    What only one of them has, as the decoder of a translator, is left alone; so is what a task adds to the model, as
    its labels. A weight of one name but another shape means that the models differ in size, which is refused.
    """
    own, given = _named(model), _named(other)
    shared = [name for name in own if name in given]
    faults = [
        f"{name} is {tuple(given[name].shape)} there, {tuple(own[name].shape)} here"
        for name in shared
        if given[name].shape != own[name].shape
    ]
    if faults or not shared:
        told = "; ".join(faults[:3]) or "they have no weight in common"
        raise BundleError(
            f"{origin} does not fit this model: {told}. Leave [model] out of the recipe to get its sizes."
        )
    for name in shared:
        own[name].copy_(given[name])
    return len({own[name].data_ptr() for name in shared}), len({value.data_ptr() for value in own.values()})


def freeze(module: nn.Module, names: Sequence[str]) -> None:
    """Keep these parts of a module as they are: a name means all parameters whose names begin with it."""
    parameters = {name.removeprefix("model."): value for name, value in module.named_parameters()}
    for wanted in names:
        matching = [value for name, value in parameters.items() if f"{name}.".startswith(f"{wanted}.")]
        if not matching:
            known = {part for name in parameters for part in (name.partition(".")[0], ".".join(name.split(".")[:2]))}
            raise RecipeError(f'freeze = "{wanted}" names no part of the model. {did_you_mean(wanted, known)}')
        for value in matching:
            value.requires_grad_(False)
    if not any(value.requires_grad for value in parameters.values()):
        raise RecipeError("freeze leaves nothing to learn. Name fewer parts.")


def _named(model: Transformer) -> dict[str, Tensor]:
    """Every weight by all of its names: which of two tied ones comes first depends on the model's shape."""
    return {name: value.detach() for name, value in model.named_parameters(remove_duplicate=False)}
