"""The size of a model, computed from its settings without building it.

A model that is too large is refused before anything is allocated, with the setting that makes it large.
"""

import os
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from manyheads.errors import RecipeError
from manyheads.messages import _
from manyheads.model.norms import NORMS
from manyheads.model.score_forms import ScaledDot, ScoreForm

if TYPE_CHECKING:
    from manyheads.model.settings import ModelSettings

MAX_PARAMETERS = 10_000_000_000
_WEIGHT_BYTES = 4  # float32
# Settings that may make a part of the model large, each with a usual value if its default is not set.
_CAUSES = {
    "embeddings": ("vocab_size", "width"),
    "positions": ("max_length", "width"),
    "attention": ("n_heads", "head_width", "value_width", "width", "n_encoder_layers", "n_decoder_layers"),
    "scores": ("max_length", "n_heads", "head_width", "n_encoder_layers", "n_decoder_layers"),
    "feed-forward": ("feed_forward_width", "width", "n_encoder_layers", "n_decoder_layers"),
    "norms": ("width", "n_encoder_layers", "n_decoder_layers"),
    "output": ("vocab_size", "width"),
}
_USUAL = {"vocab_size": 8000, "head_width": 64, "value_width": 64}


def parameters_by_part(settings: "ModelSettings") -> dict[str, int]:
    """The number of parameters of each part of a model; those of score forms and norms of your own are not counted."""
    width, has_encoder, has_decoder = settings.width, settings.has_encoder, settings.has_decoder
    n_layers = settings.n_encoder_layers * has_encoder + settings.n_decoder_layers * has_decoder
    n_stacks = has_encoder + has_decoder
    n_attentions = len(settings.attention_names())
    n_tables = 1 + (has_encoder and has_decoder and not settings.tie_source_target) + (not settings.tie_output)
    n_norms = n_attentions + n_layers + n_stacks * ((settings.norm_placement == "pre") + settings.embedding_norm)
    n_inner, inner = 2 if settings.has_gated_feed_forward else 1, settings.feed_forward_width
    bias = int(settings.feed_forward_bias)
    n_norm_vectors = NORMS[settings.norm].n_vectors
    transform = settings.output_transform * (width + 3) * width
    return {
        "embeddings": n_tables * settings.vocab_size * width,
        "positions": n_stacks * settings.max_length * width * (settings.positions == "learned"),
        "attention": sum(_count_projections(settings, name) for name in settings.attention_names()),
        "scores": sum(_count_scores(settings, name) for name in settings.attention_names()),
        "feed-forward": n_layers * (n_inner * (width + bias) * inner + (inner + bias) * width),
        "norms": n_norms * n_norm_vectors * width,
        "output": transform + settings.output_bias * settings.vocab_size,
    }


def size_faults(settings: "ModelSettings") -> list[str]:
    """A fault if the model has more than `MAX_PARAMETERS` parameters."""
    parts = parameters_by_part(settings)
    n_parameters = sum(parts.values())
    if n_parameters <= MAX_PARAMETERS:
        return []
    return [
        _(
            "{setting} makes a model of {n_parameters:,} parameters; at most {most:,} are supported. Use a smaller "
            "one.",
            setting=_largest(settings, parts),
            n_parameters=n_parameters,
            most=MAX_PARAMETERS,
        )
    ]


def refuse_too_large(settings: "ModelSettings", bytes_per_parameter: int = _WEIGHT_BYTES) -> None:
    """Raise RecipeError if the parameters need more memory than this machine has."""
    parts, memory = parameters_by_part(settings), machine_memory()
    needed = sum(parts.values()) * bytes_per_parameter
    if memory is not None and needed > memory and torch.get_default_device().type == "cpu":
        raise RecipeError(
            _(
                "{setting} makes a model of {n_parameters:,} parameters, which need {needed:,.1f} GB of memory; this "
                "machine has {memory:,.1f} GB. Use a smaller one.",
                setting=_largest(settings, parts),
                n_parameters=sum(parts.values()),
                needed=needed / 1e9,
                memory=memory / 1e9,
            )
        )


def machine_memory() -> int | None:
    """The memory of this machine or container in bytes; None if the system does not tell."""
    memory = None
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(ValueError, OSError):  # not in a container, or without a limit ("max")
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
        memory = limit if memory is None else min(limit, memory)
    return memory


def _largest(settings: "ModelSettings", parts: dict[str, int]) -> str:
    """The setting of the largest part that is the largest multiple of its usual value, as "model.width = 65536"."""
    usual = {field.name: field.default for field in fields(settings)} | _USUAL
    part = max(parts, key=lambda name: parts[name])
    values = {name: value for name in _CAUSES[part] if (value := getattr(settings, name)) is not None}
    name = max(values, key=lambda name: values[name] / usual[name])
    return f"model.{name} = {values[name]}"


def _count_projections(settings: "ModelSettings", attention: str) -> int:
    heads = settings.heads_of(attention)
    bias = int(settings.attention_bias)
    if not heads.n_heads:
        return bias * settings.width
    form = _form_of(settings, attention)
    query = heads.n_heads * heads.head_width
    key, value = heads.n_key_heads * heads.head_width, heads.n_key_heads * heads.value_width
    columns = {
        "separate": query * form.reads_queries + key * form.reads_keys + value,
        "tied": query + heads.n_heads * heads.value_width,
        "shared": query,
        "none": 0,
    }[settings.projections]
    output = 0 if settings.projections == "none" else (heads.n_heads * heads.value_width + bias) * settings.width
    is_normed = settings.query_key_norm and settings.projections == "separate" and form.reads_keys
    buckets = 0 if attention.endswith(".cross") else heads.n_heads * settings.distance_buckets
    return columns * (settings.width + bias) + output + is_normed * 2 * heads.head_width + buckets


def _count_scores(settings: "ModelSettings", attention: str) -> int:
    heads = settings.heads_of(attention)
    return _form_of(settings, attention).n_parameters(heads, settings.max_length) if heads.n_heads else 0


def _form_of(settings: "ModelSettings", attention: str) -> type[ScoreForm]:
    """The score form of one attention; see `make_cross_attention`."""
    is_blind = attention.endswith(".cross") and not settings.score_form.reads_keys
    return ScaledDot if is_blind else settings.score_form
