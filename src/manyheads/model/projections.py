"""Projections: how an attention makes queries, keys and values out of vectors.

The paper gives each of the three a matrix of its own. Fewer matrices (queries tied to keys, one for all, none) are
for experiments, behind the same interface.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.model.settings import HeadShape, ModelSettings


def split_heads(x: Float[Tensor, "B Q HD"], n_heads: int) -> Float[Tensor, "B H Q D"]:
    """One wide vector a position into n_heads narrow ones."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


class Projections(nn.Module):
    """The interface."""

    def __init__(self, heads: HeadShape) -> None:
        super().__init__()
        self.heads = heads

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """What each position asks for."""
        raise TypeError(f"{type(self).__name__} does not project by itself.")

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """What each position offers to be found by, and what it gives."""
        raise TypeError(f"{type(self).__name__} does not project by itself.")


class SeparateProjections(Projections):
    """W^Q, W^K and W^V, as in the paper. A score form that reads no queries or no keys gets empty ones."""

    def __init__(
        self, width: int, heads: HeadShape, *, bias: bool, has_queries: bool = True, has_keys: bool = True
    ) -> None:
        super().__init__(heads)
        self.query = nn.Linear(width, heads.n_heads * heads.head_width, bias) if has_queries else None
        self.key = nn.Linear(width, heads.n_key_heads * heads.head_width, bias) if has_keys else None
        self.value = nn.Linear(width, heads.n_key_heads * heads.value_width, bias)

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """x W^Q, head by head."""
        if self.query is None:
            return _empty_heads(x, self.heads.n_heads)
        return split_heads(self.query(x), self.heads.n_heads)

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """x W^K and x W^V, head by head."""
        n_key_heads = self.heads.n_key_heads
        k = _empty_heads(x, n_key_heads) if self.key is None else split_heads(self.key(x), n_key_heads)
        return k, split_heads(self.value(x), n_key_heads)


class TiedProjections(Projections):
    """W^Q = W^K: the score of a pair is then the same both ways."""

    def __init__(self, width: int, heads: HeadShape, *, bias: bool) -> None:
        super().__init__(heads)
        self.query_key = nn.Linear(width, heads.n_heads * heads.head_width, bias)
        self.value = nn.Linear(width, heads.n_heads * heads.value_width, bias)

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """x W^Q."""
        return split_heads(self.query_key(x), self.heads.n_heads)

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """x W^Q again, and x W^V."""
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
        """x W, twice."""
        k = self.queries(x)
        return k, k


class NoProjections(Projections):
    """No matrix at all, W^O neither: softmax(xxᵀ/√d) x, each head on its own slice of x."""

    def queries(self, x: Float[Tensor, "B Q W"]) -> Float[Tensor, "B H Q D"]:
        """The x's own slices."""
        return split_heads(x, self.heads.n_heads)

    def keys_values(self, x: Float[Tensor, "B K W"]) -> tuple[Float[Tensor, "B G K D"], Float[Tensor, "B G K E"]]:
        """The same slices."""
        k = self.queries(x)
        return k, k


def make_projections(
    settings: ModelSettings, heads: HeadShape, *, has_queries: bool = True, has_keys: bool = True
) -> Projections:
    """The projections the settings name."""
    width, bias = settings.width, settings.attention_bias
    match settings.projections:
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
