"""Really removing heads: rows of W^Q, W^K and W^V and columns of W^O go, and an ordinary, smaller model is left.

Heads that share keys (grouped queries) share them still: a key head goes with the last head that reads it. A bundle
that was pruned already can be pruned again: `kept_heads` always holds the numbers that heads had at first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from manyheads.bundle import Bundle
from manyheads.errors import LensError
from manyheads.lens.heads import Head, find_heads, heads_of
from manyheads.model import ModelSettings, MultiHeadAttention, Transformer
from manyheads.model.weights import load_weights, weights_of
from manyheads.settings import to_table
from manyheads.tasks import Task


def remove_heads(task: Task, heads: Iterable[Head | str]) -> Task:
    """The same task on a model without these heads; what it was given stays as it is."""
    found = find_heads(task.model, heads)
    _check_removable(task.model, found)
    kept = {attention.name: _left(attention, found) for attention in task.model.attentions()}
    model = Transformer(_settings_with(task.model.settings, kept))
    smaller = type(task).restore(model, task.tokenizer, task.settings, task.metadata())
    prefix = next(f"{name}." if name else "" for name, one in task.module.named_modules() if one is task.model)
    weights = weights_of(task.module)
    for name, attention in task.model.named_modules():
        if isinstance(attention, MultiHeadAttention) and len(kept[attention.name]) < attention.heads.n_heads:
            _cut(weights, f"{prefix}{name}.", attention, kept[attention.name])
    load_weights(smaller.module, weights, "the pruned model")
    smaller.module.to(task.model.device).train(task.module.training)
    return smaller


def pruned_bundle(bundle: Bundle, task: Task, scores: Mapping[str, Any] | None = None) -> Bundle:
    """The bundle with a pruned task in it: its recipe builds the same model, and old scores are not claimed."""
    recipe = {**bundle.recipe, "model": to_table(task.model.settings)}
    # What a shortlist costs was measured with the heads that are gone.
    return replace(bundle, task=task, recipe=recipe, scores=scores or {}, shortlist=None, shortlist_cost=None)


def _check_removable(model: Transformer, heads: list[Head]) -> None:
    if model.settings.projections == "none":
        raise LensError(
            'This model has no projections (model.projections = "none"), so its heads have no weights to remove.'
        )
    if len(heads) >= len(heads_of(model)):
        raise LensError(f"All {len(heads)} heads would go. At least one head must be left: remove {len(heads) - 1}.")


def _left(attention: MultiHeadAttention, removed: list[Head]) -> list[int]:
    gone = {head.number for head in removed if head.attention == attention.name}
    return [number for number in range(attention.heads.n_heads) if number not in gone]


def _settings_with(settings: ModelSettings, kept: Mapping[str, list[int]]) -> ModelSettings:
    """The settings of a model that has only these heads of what is now there."""
    everywhere = dict(settings.kept_heads)
    for name, numbers in kept.items():
        first = settings.kept_heads.get(name, tuple(range(settings.n_heads)))
        if len(numbers) < len(first):
            everywhere[name] = tuple(first[number] for number in numbers)
    return replace(settings, kept_heads=everywhere)


def _cut(weights: dict[str, Tensor], prefix: str, attention: MultiHeadAttention, kept: list[int]) -> None:
    """Leave only what these heads need of an attention's weights."""
    reads = torch.arange(attention.heads.n_key_heads).repeat_interleave(attention.groups.cpu()).tolist()
    key_heads = sorted({reads[number] for number in kept})
    for name in [name for name in weights if name.startswith(prefix)]:
        match name.removeprefix(prefix).split("."):
            case ["output", "bias"] if not kept:
                weights[f"{prefix}bias"] = weights.pop(name)
            case _ if not kept:
                del weights[name]
            case ["output", "weight"]:
                weights[name] = _of_heads(weights[name].mT, kept, attention.heads.n_heads).mT
            case ["output", "bias"]:
                pass
            case ["project", "key" | "value", _]:
                weights[name] = _of_heads(weights[name], key_heads, attention.heads.n_key_heads)
            case ["project", "query" | "query_key" | "shared", _] | ["scores", _]:
                weights[name] = _of_heads(weights[name], kept, attention.heads.n_heads)
            case _:
                raise LensError(f"{name} is of a kind whose heads cannot be removed.")


def _of_heads(weight: Tensor, kept: list[int], n_heads: int) -> Tensor:
    """The rows of some heads, which stand one head after the other."""
    return weight.unflatten(0, (n_heads, -1))[kept].flatten(0, 1)
