"""Warm start: initialize a model from the weights of another bundle, and freeze parts of it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from manyheads.errors import BundleError, RecipeError
from manyheads.messages import _
from manyheads.model import Transformer
from manyheads.settings import did_you_mean

_POSITIONS = "_embedding.positions.weight"  # the end of the name of learned positions


@torch.no_grad()
def warm_start(model: Transformer, other: Transformer, origin: str) -> tuple[int, int]:
    """Copy the weights that both models have, by name; return the number of copied weights and of all weights.

    A model that reads shorter texts takes the first of the learned positions. Weights that only one model has, such as
    a decoder, keep their values; so do those a task adds to the model, such as its label head. Other weights of the
    same name but of different shapes are an error: the models differ in size.
    """
    own, others = _weights_by_name(model), _weights_by_name(other)
    for name in own:
        if name in others and name.endswith(_POSITIONS) and 0 < len(own[name]) < len(others[name]):
            others[name] = others[name][: len(own[name])]
    shared = [name for name in own if name in others]
    faults = [
        _(
            "{name} is {other_shape} there, {shape} here",
            name=name,
            other_shape=tuple(others[name].shape),
            shape=tuple(own[name].shape),
        )
        for name in shared
        if others[name].shape != own[name].shape
    ]
    if faults or not shared:
        reason = "; ".join(faults[:3]) or _("they have no weight in common")
        raise BundleError(
            _(
                "{origin} does not fit this model: {reason}. Leave [model] out of the recipe to use the bundle's "
                "sizes.",
                origin=origin,
                reason=reason,
            )
        )
    for name in shared:
        own[name].copy_(others[name])
    return len({own[name].data_ptr() for name in shared}), len({value.data_ptr() for value in own.values()})


def freeze(module: nn.Module, names: Sequence[str], *, may_freeze_all: bool = False) -> None:
    """Exclude parts of a module from training: a name selects all parameters whose names start with it."""
    parameters = {name.removeprefix("model."): value for name, value in module.named_parameters()}
    for prefix in names:
        matching = [value for name, value in parameters.items() if f"{name}.".startswith(f"{prefix}.")]
        if not matching:
            known = {part for name in parameters for part in (name.partition(".")[0], ".".join(name.split(".")[:2]))}
            raise RecipeError(
                _(
                    'freeze = "{prefix}" names no part of the model. {suggestion}',
                    prefix=prefix,
                    suggestion=did_you_mean(prefix, known),
                )
            )
        for value in matching:
            value.requires_grad_(False)
    if not may_freeze_all and not any(value.requires_grad for value in parameters.values()):
        raise RecipeError(_("freeze leaves no parameter to train. Name fewer parts."))


def _weights_by_name(model: Transformer) -> dict[str, Tensor]:
    """Return every weight under all of its names: which name of a tied weight comes first depends on the shape."""
    return {name: value.detach() for name, value in model.named_parameters(remove_duplicate=False)}
