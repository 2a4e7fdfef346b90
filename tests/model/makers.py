"""Small models, masks and comparisons shared by several test files."""

import dataclasses
import itertools
from contextlib import suppress
from functools import cache
from typing import Any, get_args, get_type_hints

import torch
from torch import Tensor, nn

from manyheads.errors import RecipeError
from manyheads.model import ModelSettings, MultiHeadAttention, Transformer
from manyheads.model.blocks import make_cross_attention, make_self_attention
from manyheads.model.masks import View, count_positions

SMALL: dict[str, Any] = {
    "vocab_size": 13,
    "width": 8,
    "n_heads": 2,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "feed_forward_width": 12,
    "max_length": 24,
    "dropout": 0.0,
}


def small(**changes: Any) -> ModelSettings:
    return ModelSettings(**{**SMALL, **changes})


def choices(field: str) -> tuple[str, ...]:
    """Every allowed value of a setting that names one of several choices."""
    (setting,) = (one for one in dataclasses.fields(ModelSettings) if one.name == field)
    return tuple(setting.metadata.get("choices", ())) or get_args(get_type_hints(ModelSettings)[field])


def product_of(**options: Any) -> list[ModelSettings]:
    """Small settings for every valid combination of these options."""
    allowed = []
    for values in itertools.product(*options.values()):
        with suppress(RecipeError):
            allowed.append(small(**dict(zip(options, values, strict=True))))
    return allowed


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def shaken(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module in eval mode with noise on every weight: a norm weight of 1 and a bias of 0 would hide mistakes."""
    generator = seeded(seed)
    with torch.no_grad():
        for value in module.state_dict().values():
            value.add_(0.6 * torch.rand(value.shape, generator=generator, dtype=value.dtype) - 0.3)
    return module.eval()


@cache
def small_model(settings: ModelSettings) -> Transformer:
    """A shaken model. It is shared between tests: do not change its weights."""
    torch.manual_seed(0)
    return shaken(Transformer(settings))


def attention_of(settings: ModelSettings, use: str = "self") -> MultiHeadAttention:
    torch.manual_seed(0)
    make = make_self_attention if use == "self" else make_cross_attention
    return shaken(make(f"here.{use}", settings))


def random_ids(*shape: int, seed: int = 0, vocab_size: int = SMALL["vocab_size"]) -> Tensor:
    return torch.randint(vocab_size, shape, generator=seeded(seed))


def vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=seeded(seed))


def real(*rows: str) -> Tensor:
    """A mask drawn as text: real("xx.", "...") has two real positions in its first row and none in its second."""
    return torch.tensor([[character == "x" for character in row] for row in rows])


def causal_view(is_real: Tensor) -> View:
    return View.causal(is_real, count_positions(is_real), is_real.size(1))


# Four sentences: without padding, padded at the end, padded at the start (its first query sees nothing), empty.
GAPPED = real("xxxxx", "xxx..", ".xx.x", ".....")
VIEWS = {"bidirectional": View.bidirectional(GAPPED), "causal": causal_view(GAPPED)}


def describe(settings: ModelSettings) -> str:
    heads = settings.heads
    sizes = f"{heads.n_key_heads}of{heads.n_heads}-{heads.head_width}x{heads.value_width}"
    return f"{settings.scores}-{settings.projections}-{settings.positions}-{sizes}"


def passes(settings: ModelSettings) -> list[tuple[MultiHeadAttention, Tensor, Tensor, View]]:
    """Encoder self-attention, causal self-attention and cross-attention, each with some fully hidden rows."""
    x, memory = vectors(4, 5, 8, seed=1), vectors(4, 3, 8, seed=2)
    across = View.cross(VIEWS["causal"].query_positions, GAPPED[:, 2:])
    return [
        (attention_of(settings), x, x, VIEWS["bidirectional"]),
        (attention_of(settings), x, x, VIEWS["causal"]),
        (attention_of(settings, "cross"), x, memory, across),
    ]


def largest_difference(a: Tensor, b: Tensor) -> float:
    assert a.shape == b.shape
    return (a - b).abs().max().item()


def relative_difference(a: Tensor, b: Tensor) -> float:
    """The largest difference relative to the largest value, for outputs that no norm keeps near 1."""
    return largest_difference(a, b) / max(1.0, b.abs().max().item())
