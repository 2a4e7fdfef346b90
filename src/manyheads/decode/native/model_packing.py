"""Packing: a `Transformer` as the tensors that the native engine reads, in the order in which model.c reads them."""

import ctypes
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from manyheads.errors import EngineError
from manyheads.messages import _
from manyheads.model import ModelSettings, Transformer
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.blocks import NoHeads
from manyheads.model.embedding import Embedding
from manyheads.model.norms import BatchNorm, NoNorm
from manyheads.model.positions import AlibiPositions
from manyheads.model.score_forms import DotForm

Floats = NDArray[np.float32]

_ACTIVATIONS = {"relu": 0, "gelu": 1, "swiglu": 2, "silu": 3}
_NORMS = {"layer": 0, "rms": 1, "batch": 2, "batch-with-padding": 2}
_POSITIONS = {"sinusoidal": 0, "learned": 0, "rotary": 1, "alibi": 2, "none": 3}
_NOTHING: Floats = np.zeros(0, dtype=np.float32)


class PackedSettings(ctypes.Structure):
    """`Settings` of engine.h."""

    _fields_ = [
        (name, ctypes.c_int32)
        for name in (
            *("vocab_size", "width", "feed_forward_width", "n_encoder_layers", "n_decoder_layers", "head_width"),
            *("value_width", "activation", "norm", "norm_first", "positions", "max_length", "bos", "eos", "is_int8"),
        )
    ] + [("epsilon", ctypes.c_float)]


def refuse(settings: ModelSettings) -> None:
    """Raise an error that names the setting that the native engine does not support."""
    known: dict[str, tuple[str, ...]] = {
        "shape": ("encoder-decoder",),
        "scores": ("scaled-dot", "dot"),
        "projections": ("separate", "tied", "shared"),
        "norm": tuple(_NORMS),
        "activation": tuple(_ACTIVATIONS),
    }
    for name, values in known.items():
        if (value := getattr(settings, name)) not in values:
            raise EngineError(_('The native engine does not support model.{name} = "{value}".', name=name, value=value))
    if others := [each for each in settings.extensions if not each.startswith("model.output_bias")]:
        raise EngineError(_("The native engine does not support {setting}.", setting=others[0]))


def pack_settings(settings: ModelSettings, *, bos: int, eos: int, is_int8: bool) -> PackedSettings:
    """The settings as engine.h declares them."""
    refuse(settings)
    heads = settings.heads
    return PackedSettings(
        vocab_size=settings.vocab_size,
        width=settings.width,
        feed_forward_width=settings.feed_forward_width,
        n_encoder_layers=settings.n_encoder_layers,
        n_decoder_layers=settings.n_decoder_layers,
        head_width=heads.head_width,
        value_width=heads.value_width,
        activation=_ACTIVATIONS[settings.activation],
        norm=_NORMS[settings.norm],
        norm_first=settings.norm_placement == "pre",
        positions=_POSITIONS[settings.positions],
        max_length=settings.max_length,
        bos=bos,
        eos=eos,
        is_int8=is_int8,
        epsilon=settings.norm_epsilon,
    )


def pack_groups(settings: ModelSettings) -> NDArray[np.int32]:
    """For each attention, the number of key heads and how many heads read each of them."""
    groups = [settings.groups_of(name) for name in settings.attention_names()]
    return np.array([number for group in groups for number in (len(group), *group)], dtype=np.int32)


def pack_tensors(model: Transformer) -> list[Floats]:
    """Every tensor, flat, in the order in which model.c reads them; an empty array means that there is none."""
    with torch.no_grad():
        return [
            _NOTHING if tensor is None else np.ascontiguousarray(tensor.detach().float().cpu().numpy()).reshape(-1)
            for tensor in _tensors(model)
        ]


def _tensors(model: Transformer) -> Iterator[Tensor | None]:
    settings = model.settings
    for embedding in (model.source_embedding, model.target_embedding):
        yield embedding.token_embedding.weight * embedding.scale
    for embedding in (model.source_embedding, model.target_embedding):
        yield _position_table(embedding, settings)
    yield model.output.weight
    yield getattr(model.output, "bias", None)
    yield from _rotations(settings)
    for block in model.encoder:
        yield from _layer(block, settings)
    yield from _norm(model.encoder_norm)
    for block in model.decoder:
        yield from _layer(block, settings)
    yield from _norm(model.decoder_norm)


def _position_table(embedding: Embedding, settings: ModelSettings) -> Tensor | None:
    """The vectors that are added to the embeddings, one per position."""
    if _POSITIONS[settings.positions] != 0:
        return None
    indices = torch.arange(settings.max_length, device=embedding.token_embedding.weight.device)
    return embedding.positions(indices[None])[0]


def _rotations(settings: ModelSettings) -> Iterator[Tensor | None]:
    """The sines and cosines of the rotary angles."""
    if settings.positions != "rotary":
        yield from (None, None)
        return
    width = settings.heads.head_width
    indices = torch.arange(settings.max_length)
    angles = indices[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    yield angles.sin()
    yield angles.cos()


def _layer(block: Any, settings: ModelSettings) -> Iterator[Tensor | None]:
    yield from _attention(block.attention, settings, is_cross=False)
    yield from _norm(block.attention_sublayer.norm)
    if hasattr(block, "cross_attention"):
        yield from _attention(block.cross_attention, settings, is_cross=True)
        yield from _norm(block.cross_attention_sublayer.norm)
    feed_forward = block.feed_forward
    first = [feed_forward.gate, feed_forward.inner] if settings.activation == "swiglu" else [feed_forward.inner]
    yield torch.cat([linear.weight for linear in first])
    yield torch.cat([linear.bias for linear in first])
    yield feed_forward.outer.weight
    yield feed_forward.outer.bias
    yield from _norm(block.feed_forward_sublayer.norm)


def _attention(attention: nn.Module, settings: ModelSettings, *, is_cross: bool) -> Iterator[Tensor | None]:
    """ALiBi slopes, projections, W^O. The scale 1/√d_k is multiplied into W^Q."""
    if isinstance(attention, NoHeads):
        none = torch.zeros(0)
        yield from (None, none, None)
        yield from (none, None) if is_cross else ()
        yield from (none, attention.bias)
        return
    assert isinstance(attention, MultiHeadAttention)
    positions = attention.positions
    yield positions.slopes if isinstance(positions, AlibiPositions) else None
    query, key, value = _projections(attention)
    assert isinstance(attention.scores, DotForm)
    scale = attention.scores.scale(attention.heads.head_width)
    query = [None if part is None else part * scale for part in query]
    for parts in ([query], [key, value]) if is_cross else ([query, key, value],):
        yield torch.cat([weight for weight, _ in parts if weight is not None])
        biases = [bias for _, bias in parts if bias is not None]
        yield torch.cat(biases) if biases else None
    assert isinstance(attention.output, nn.Linear)
    yield attention.output.weight
    yield attention.output.bias


def _projections(attention: MultiHeadAttention) -> list[list[Tensor | None]]:
    """Weight and bias of W^Q, W^K and W^V, which may be the same tensor."""
    project: Any = attention.project
    names = {
        "SeparateProjections": ("query", "key", "value"),
        "TiedProjections": ("query_key", "query_key", "value"),
        "SharedProjection": ("shared", "shared", "shared"),
    }[type(project).__name__]
    return [[getattr(project, name).weight, getattr(project, name).bias] for name in names]


def _norm(norm: nn.Module) -> Iterator[Tensor | None]:
    """Weight and bias; the running statistics of a batch norm are folded into them."""
    if isinstance(norm, NoNorm):
        yield from (None, None)
    elif isinstance(norm, BatchNorm):
        weight = norm.weight / (norm.running_var + norm.epsilon).sqrt()
        yield weight
        yield norm.bias - norm.running_mean * weight
    else:
        yield norm.weight  # type: ignore[misc]
        yield getattr(norm, "bias", None)
