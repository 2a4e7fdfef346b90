"""Masks, each named for what True means, and `View`: what queries may see and where everything stands."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class View:
    """What each query may look at, and the places of queries and keys in their sequences."""

    drawn: Bool[Tensor, "#B 1 #Q K"] | None  # None: every place up to the query's own, which need not be drawn
    query_places: Int[Tensor, "#B Q"]
    key_places: Int[Tensor, "#B K"]

    @property
    def is_triangle(self) -> bool:
        """Whether each query sees its own place and all before it: then torch's kernel reads no mask."""
        return self.drawn is None

    @property
    def visible(self) -> Bool[Tensor, "#B 1 #Q K"]:
        """True where a query may look; a triangle is drawn when it is asked for, for it grows with the square."""
        return _triangle(self.key_places.size(1), self.key_places.device) if self.drawn is None else self.drawn

    @classmethod
    def everywhere(cls, is_real: Bool[Tensor, "B K"]) -> "View":
        """Every real place, before and after: the encoder's view."""
        places = count_places(is_real)
        return cls(is_real[:, None, None, :], places, places)

    @classmethod
    def backward(cls, is_real: Bool[Tensor, "B K"], key_places: Int[Tensor, "#B K"], n_queries: int) -> "View":
        """The place itself and the real ones before it, for the last `n_queries` places: the decoder's view."""
        n_keys = is_real.size(1)
        if n_queries == n_keys and is_real.all():
            return cls(None, key_places, key_places)
        earlier = torch.ones(n_queries, n_keys, dtype=torch.bool, device=is_real.device).tril(n_keys - n_queries)
        return cls(earlier & is_real[:, None, None, :], key_places[:, n_keys - n_queries :], key_places)

    @classmethod
    def packed(cls, numbers: Int[Tensor, "B K"]) -> "View":
        """The place itself and those before it in the same sequence, where a row holds several one after another.

        `numbers` says which one each place belongs to: 1, 2, 3 …, and 0 is padding, which sees nothing.
        """
        n_places = numbers.size(1)
        places = torch.arange(n_places, device=numbers.device).expand_as(numbers)
        is_first = torch.ones_like(numbers, dtype=torch.bool)
        is_first[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
        starts = places.masked_fill(~is_first, 0).cummax(dim=1).values
        if (numbers == 1).all():  # one sequence a row: all rows look alike
            return cls(None, places[:1], places[:1])
        together = (numbers[:, :, None] == numbers[:, None, :]) & (numbers != 0)[:, None, :]
        earlier = _triangle(n_places, numbers.device)
        return cls(earlier & together[:, None], places - starts, places - starts)

    @classmethod
    def across(cls, query_places: Int[Tensor, "#B Q"], memory_is_real: Bool[Tensor, "B K"]) -> "View":
        """Every real place of the encoder's output: the view of cross-attention."""
        return cls(memory_is_real[:, None, None, :], query_places, count_places(memory_is_real))


def count_places(is_real: Bool[Tensor, "B K"]) -> Int[Tensor, "B K"]:
    """0, 1, 2 … over the real places: padding takes none, so it may stand before, between or after them."""
    return (is_real.cumsum(dim=1) - 1).clamp(min=0)


def _triangle(n_places: int, device: torch.device) -> Bool[Tensor, "1 1 Q Q"]:
    return torch.ones(1, 1, n_places, n_places, dtype=torch.bool, device=device).tril()
