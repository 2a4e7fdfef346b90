"""Masks, each named for what True means, and `View`: what queries may see and where everything stands."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class View:
    """What each query may look at, and the places of queries and keys in their sequences."""

    visible: Bool[Tensor, "#B 1 #Q K"]
    query_places: Int[Tensor, "#B Q"]
    key_places: Int[Tensor, "#B K"]

    @classmethod
    def everywhere(cls, is_real: Bool[Tensor, "B K"]) -> "View":
        """Every real place, before and after: the encoder's view."""
        places = count_places(is_real)
        return cls(is_real[:, None, None, :], places, places)

    @classmethod
    def backward(cls, is_real: Bool[Tensor, "B K"], key_places: Int[Tensor, "#B K"], n_queries: int) -> "View":
        """The place itself and the real ones before it, for the last `n_queries` places: the decoder's view."""
        n_keys = is_real.size(1)
        earlier = torch.ones(n_queries, n_keys, dtype=torch.bool, device=is_real.device).tril(n_keys - n_queries)
        return cls(earlier & is_real[:, None, None, :], key_places[:, n_keys - n_queries :], key_places)

    @classmethod
    def across(cls, query_places: Int[Tensor, "#B Q"], memory_is_real: Bool[Tensor, "B K"]) -> "View":
        """Every real place of the encoder's output: the view of cross-attention."""
        return cls(memory_is_real[:, None, None, :], query_places, count_places(memory_is_real))


def count_places(is_real: Bool[Tensor, "B K"]) -> Int[Tensor, "B K"]:
    """0, 1, 2 … over the real places: padding takes none, so it may stand before, between or after them."""
    return (is_real.cumsum(dim=1) - 1).clamp(min=0)
