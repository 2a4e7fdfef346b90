"""Projections: how attention computes queries, keys and values from vectors.

The paper uses one matrix for each of the three. Fewer matrices (tied, shared, none) exist for experiments.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.model.score_forms import HeadShape
from manyheads.model.settings import ModelSettings


def split_heads(x: Float[Tensor, "B Q HD"], n_heads: int) -> Float[Tensor, "B H Q D"]:
    """Split the vector of each position into one vector per head."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


class Projections(nn.Module):
    """Base class of all projections."""

    def __init__(self, heads: HeadShape) -> None:
        super().__init__()
        self.heads = heads

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """The query of each position, for every head."""
        raise NotImplementedError(f"{type(self).__name__} does not define queries.")

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """The key and value of each position, for every key head."""
        raise NotImplementedError(f"{type(self).__name__} does not define keys_values.")


class SeparateProjections(Projections):
    """W^Q, W^K and W^V, as in the paper; queries or keys that the score form does not read have width 0."""

    def __init__(
        self, width: int, heads: HeadShape, *, bias: bool, has_queries: bool = True, has_keys: bool = True
    ) -> None:
        super().__init__(heads)
        self.query = nn.Linear(width, heads.n_heads * heads.head_width, bias) if has_queries else None
        self.key = nn.Linear(width, heads.n_key_heads * heads.head_width, bias) if has_keys else None
        self.value = nn.Linear(width, heads.n_key_heads * heads.value_width, bias)

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """x W^Q, split into heads."""
        if self.query is None:
            return _empty_heads(x, self.heads.n_heads)
        return split_heads(self.query(x), self.heads.n_heads)

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """x W^K and x W^V, split into heads."""
        n_key_heads = self.heads.n_key_heads
        k = _empty_heads(x, n_key_heads) if self.key is None else split_heads(self.key(x), n_key_heads)
        return k, split_heads(self.value(x), n_key_heads)


class NormedProjections(SeparateProjections):
    """W^Q, W^K and W^V, with an RMSNorm over the features of each query and key (Qwen 3)."""

    def __init__(self, width: int, heads: HeadShape, *, bias: bool, epsilon: float) -> None:
        super().__init__(width, heads, bias=bias)
        self.query_norm = nn.RMSNorm(heads.head_width, eps=epsilon)
        self.key_norm = nn.RMSNorm(heads.head_width, eps=epsilon)

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """norm(x W^Q), split into heads."""
        return self.query_norm(super().queries(x))

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """norm(x W^K) and x W^V, split into heads."""
        k, v = super().keys_values(x)
        return self.key_norm(k), v


class TiedProjections(Projections):
    """W^Q = W^K, which makes the scores symmetric."""

    def __init__(self, width: int, heads: HeadShape, *, bias: bool) -> None:
        super().__init__(heads)
        self.query_key = nn.Linear(width, heads.n_heads * heads.head_width, bias)
        self.value = nn.Linear(width, heads.n_heads * heads.value_width, bias)

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """x W^Q."""
        return split_heads(self.query_key(x), self.heads.n_heads)

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """x W^Q and x W^V."""
        return self.queries(x), split_heads(self.value(x), self.heads.n_heads)


class SharedProjection(Projections):
    """One matrix for queries, keys and values."""

    def __init__(self, width: int, heads: HeadShape, *, bias: bool) -> None:
        super().__init__(heads)
        self.shared = nn.Linear(width, heads.n_heads * heads.head_width, bias)

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """x W."""
        return split_heads(self.shared(x), self.heads.n_heads)

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """x W for both."""
        k = self.queries(x)
        return k, k


class NoProjections(Projections):
    """No matrices, not even W^O: softmax(x xᵀ / √d) x, where each head uses its own slice of x."""

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """Slices of x."""
        return split_heads(x, self.heads.n_heads)

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """The same slices for both."""
        k = self.queries(x)
        return k, k


def make_projections(
    settings: ModelSettings, heads: HeadShape, *, has_queries: bool = True, has_keys: bool = True
) -> Projections:
    """The projections that the settings name."""
    width, bias = settings.width, settings.attention_bias
    match settings.projections:
        case "separate" if settings.query_key_norm and has_queries and has_keys:
            return NormedProjections(width, heads, bias=bias, epsilon=settings.norm_epsilon)
        case "separate":
            return SeparateProjections(width, heads, bias=bias, has_queries=has_queries, has_keys=has_keys)
        case "tied":
            return TiedProjections(width, heads, bias=bias)
        case "shared":
            return SharedProjection(width, heads, bias=bias)
        case "none":
            return NoProjections(heads)


def _empty_heads(x: Float[Tensor, "B K W"], n_heads: int) -> Float[Tensor, "B H K 0"]:
    return torch.empty(x.size(0), n_heads, x.size(1), 0, dtype=x.dtype, device=x.device)
