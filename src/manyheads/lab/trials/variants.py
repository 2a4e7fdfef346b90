"""Changes of a model that `ModelSettings` does not offer, because only experiments need them.

Each function takes a model and returns it changed; `functools.partial` fixes the other arguments. Weights are
initialized after the change.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.model import MultiHeadAttention, Transformer
from manyheads.model.blocks import PostNorm, PreNorm, Sublayer
from manyheads.model.norms import BatchNorm, NoNorm
from manyheads.model.projections import SeparateProjections
from manyheads.model.score_forms import DotForm, HeadShape

M = TypeVar("M", bound=nn.Module)


class PoweredDot(DotForm):
    """q · k · d_k^−power: 0 does not scale, ½ is the paper's form, 1 divides by d_k."""

    def __init__(self, heads: HeadShape, power: float) -> None:
        super().__init__(heads, 0)
        self.power = power

    def scale(self, head_width: int) -> float:
        """d_k^−power."""
        return head_width**-self.power


def with_score_scale(model: nn.Module, power: float) -> nn.Module:
    """Divide the scores of every attention by d_k^power."""
    for attention in _attentions(model):
        attention.scores = PoweredDot(attention.heads, power)
    return model


@torch.no_grad()
def with_unit_queries(model: nn.Module, power: float = 0.0) -> None:
    """Start with queries and keys whose entries have variance 1, so that q · k has variance d_k; × d_k^(−power/2).

    With a power of ½, unscaled scores start as large as scaled ones; with −½, scaled scores as large as unscaled ones.
    """
    for attention in _attentions(model):
        width = attention.heads.head_width
        projections = attention.project
        assert isinstance(projections, SeparateProjections)
        for projection in (projections.query, projections.key):
            assert projection is not None
            glorot = (2 / (projection.in_features + projection.out_features)) ** 0.5
            projection.weight *= projection.in_features**-0.5 / glorot * width ** (-power / 2)


class BlockLinear(nn.Module):
    """A linear map that treats each of `n_blocks` parts of a vector by a matrix of its own: no part sees another."""

    def __init__(self, width: int, n_blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Linear(width // n_blocks, width // n_blocks, bias=False) for _ in range(n_blocks)
        )

    def forward(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B Q W"]:
        """Transform each part."""
        parts = x.chunk(len(self.blocks), dim=-1)
        return torch.cat([block(part) for block, part in zip(self.blocks, parts, strict=True)], dim=-1)


def with_output_projection(model: nn.Module, kind: str) -> nn.Module:
    """Replace W^O by the identity ("identity"), or by one matrix per head that mixes no heads ("block")."""
    for attention in _attentions(model):
        width = attention.heads.n_heads * attention.heads.value_width
        attention.output = nn.Identity() if kind == "identity" else BlockLinear(width, attention.heads.n_heads)
    return model


class NoResidual(nn.Module):
    """norm(dropout(f(x))): the sublayer replaces its input. Norm and dropout are those of a residual connection."""

    def __init__(self, replaced: PostNorm) -> None:
        super().__init__()
        self.norm, self.dropout = replaced.norm, replaced.dropout

    def forward(
        self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"], sublayer: Sublayer
    ) -> Float[Tensor, "B Q W"]:
        """Apply one sublayer."""
        return self.norm(self.dropout(sublayer(x)), is_real)


class NoResidualPreNorm(NoResidual):
    """dropout(f(norm(x))): the sublayer replaces its input."""

    def forward(
        self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"], sublayer: Sublayer
    ) -> Float[Tensor, "B Q W"]:
        """Apply one sublayer."""
        return self.dropout(sublayer(self.norm(x, is_real)))


def without_residual(model: nn.Module) -> nn.Module:
    """Remove every residual connection; norms stay where they are."""
    replace_modules(model, PreNorm, NoResidualPreNorm)
    return replace_modules(model, PostNorm, NoResidual)


def without_norm(model: nn.Module) -> nn.Module:
    """Replace every norm by the identity."""
    for module in list(model.modules()):
        for name in ("norm", "encoder_norm", "decoder_norm"):
            if isinstance(getattr(module, name, None), nn.Module):
                setattr(module, name, NoNorm())
    return model


class _NoFeedForward(nn.Module):
    """A feed-forward network that adds nothing."""

    def forward(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B Q W"]:
        """Zeros."""
        return torch.zeros_like(x)


def without_feed_forward(model: nn.Module) -> nn.Module:
    """Remove every feed-forward network: attention only."""
    for module in model.modules():
        if hasattr(module, "feed_forward"):
            module.feed_forward = _NoFeedForward()
    return model


class BatchStatisticsNorm(BatchNorm):
    """Batch norm that uses the statistics of the batch at inference, too: a text's output depends on its neighbors."""

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Normalize each feature over the real tokens of the batch."""
        counted = x[is_real]
        mean, variance = counted.mean(0), counted.var(0, correction=0)
        return (x - mean) / (variance + self.epsilon).sqrt() * self.weight + self.bias


def with_batch_statistics(model: nn.Module) -> nn.Module:
    """Let every batch norm use the statistics of the batch at inference."""
    return replace_modules(model, BatchNorm, lambda norm: BatchStatisticsNorm(norm.weight.numel(), norm.epsilon))


def replace_modules(model: nn.Module, kind: type[M], make: Callable[[M], nn.Module]) -> nn.Module:
    """Replace every module of a class by what `make` builds from it, under the same name."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, kind):
                setattr(parent, name, make(child))
    return model


def _attentions(model: nn.Module) -> list[MultiHeadAttention]:
    assert isinstance(model, Transformer)
    return model.attentions()
