"""Remove heads from a model: rows of W^Q, W^K and W^V and columns of W^O, which leaves an ordinary smaller model.

With grouped queries, a key head is removed with the last head that reads it. A pruned model can be pruned again:
`kept_heads` always holds the original numbers of the heads.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from manyheads.bundle import Bundle
from manyheads.errors import LensError
from manyheads.lens.heads import Head, find_heads, heads_of
from manyheads.messages import _
from manyheads.model import ModelSettings, MultiHeadAttention, Transformer
from manyheads.model.weights import load_weights, weights_of
from manyheads.settings import to_table
from manyheads.tasks import LabelingTask, Task


def remove_heads(task: Task, heads: Iterable[Head | str]) -> Task:
    """Return the task with a model that lacks these heads; the given task is not changed."""
    removed = find_heads(task.model, heads)
    _check_removable(task.model, removed)
    kept = {attention.name: _kept_numbers(attention, removed) for attention in task.model.attentions()}
    model = Transformer(_settings_with(task.model.settings, kept))
    smaller = type(task).restore(model, task.tokenizer, task.settings, task.metadata())
    prefix = next(f"{name}." if name else "" for name, module in task.module.named_modules() if module is task.model)
    weights = weights_of(task.module)
    for name, attention in task.model.named_modules():
        if isinstance(attention, MultiHeadAttention) and len(kept[attention.name]) < attention.heads.n_heads:
            _keep_weights(weights, f"{prefix}{name}.", attention, kept[attention.name])
    load_weights(smaller.module, weights, "the pruned model")
    if isinstance(task, LabelingTask) and isinstance(smaller, LabelingTask) and (own := task.baseline_tensors()):
        smaller = smaller.with_baseline(own)
    smaller.module.to(task.model.device).train(task.module.training)
    return smaller


def pruned_bundle(bundle: Bundle, task: Task, scores: Mapping[str, Any] | None = None) -> Bundle:
    """Return the bundle with a pruned task. Its recipe builds the pruned model; scores of the original are dropped."""
    recipe = {**bundle.recipe, "model": to_table(task.model.settings)}
    # The cost of a shortlist was measured with the original model.
    return replace(bundle, task=task, recipe=recipe, scores=scores or {}, shortlist=None, shortlist_cost=None)


def _check_removable(model: Transformer, heads: list[Head]) -> None:
    if model.settings.projections == "none":
        raise LensError(
            _('This model has no projections (model.projections = "none"), so its heads have no weights to remove.')
        )
    if len(heads) >= len(heads_of(model)):
        raise LensError(
            _(
                "All {n_heads} heads would be removed. Keep at least one: remove at most {n_removable}.",
                n_heads=len(heads),
                n_removable=len(heads) - 1,
            )
        )


def _kept_numbers(attention: MultiHeadAttention, removed: list[Head]) -> list[int]:
    removed_numbers = {head.number for head in removed if head.attention == attention.name}
    return [number for number in range(attention.heads.n_heads) if number not in removed_numbers]


def _settings_with(settings: ModelSettings, kept: Mapping[str, list[int]]) -> ModelSettings:
    """Return the settings of a model with only these of its current heads."""
    kept_heads = dict(settings.kept_heads)
    for name, numbers in kept.items():
        original = settings.kept_heads.get(name, tuple(range(settings.n_heads)))
        if len(numbers) < len(original):
            kept_heads[name] = tuple(original[number] for number in numbers)
    return replace(settings, kept_heads=kept_heads)


def _keep_weights(weights: dict[str, Tensor], prefix: str, attention: MultiHeadAttention, kept: list[int]) -> None:
    """Reduce an attention's weights, in place, to those of the kept heads."""
    key_head_of = torch.arange(attention.heads.n_key_heads).repeat_interleave(attention.groups.cpu()).tolist()
    key_heads = sorted({key_head_of[number] for number in kept})
    for name in [name for name in weights if name.startswith(prefix)]:
        match name.removeprefix(prefix).split("."):
            case ["output", "bias"] if not kept:
                weights[f"{prefix}bias"] = weights.pop(name)
            case _ if not kept:
                del weights[name]
            case ["output", "weight"]:
                weights[name] = _head_rows(weights[name].mT, kept, attention.heads.n_heads).mT
            case ["output", "bias"] | ["project", "query_norm" | "key_norm", _]:
                pass
            case ["project", "key" | "value", _]:
                weights[name] = _head_rows(weights[name], key_heads, attention.heads.n_key_heads)
            case ["project", "query" | "query_key" | "shared", _] | ["scores" | "positions", _]:
                weights[name] = _head_rows(weights[name], kept, attention.heads.n_heads)
            case _:
                raise LensError(_("Heads cannot be removed from {name}: its layout is unknown.", name=name))


def _head_rows(weight: Tensor, heads: list[int], n_heads: int) -> Tensor:
    """Return the rows of these heads from a weight with the rows of `n_heads` heads in order."""
    return weight.unflatten(0, (n_heads, -1))[heads].flatten(0, 1)
