"""Masks, each named for what True means, and `View`: what queries may see and where everything stands."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class View:
    """What each query may look at, and the positions of queries and keys in their sequences."""

    mask: Bool[Tensor, "#B 1 #Q K"] | None  # None: every position up to the query's own, which need not be drawn
    query_positions: Int[Tensor, "#B Q"]
    key_positions: Int[Tensor, "#B K"]

    @property
    def is_purely_causal(self) -> bool:
        """Whether each query sees its own position and all before it: then torch's kernel reads no mask."""
        return self.mask is None

    @property
    def visible(self) -> Bool[Tensor, "#B 1 #Q K"]:
        """True where a query may look; a triangle is drawn when it is asked for, for it grows with the square."""
        return _causal_mask(self.key_positions.size(1), self.key_positions.device) if self.mask is None else self.mask

    @classmethod
    def bidirectional(cls, is_real: Bool[Tensor, "B K"]) -> "View":
        """Every real position, before and after: the encoder's view."""
        positions = count_positions(is_real)
        return cls(is_real[:, None, None, :], positions, positions)

    @classmethod
    def causal(cls, is_real: Bool[Tensor, "B K"], key_positions: Int[Tensor, "#B K"], n_queries: int) -> "View":
        """The position itself and the real ones before it, for the last `n_queries` positions: the decoder's view."""
        n_keys = is_real.size(1)
        if n_queries == n_keys and is_real.all():
            return cls(None, key_positions, key_positions)
        earlier = torch.ones(n_queries, n_keys, dtype=torch.bool, device=is_real.device).tril(n_keys - n_queries)
        return cls(earlier & is_real[:, None, None, :], key_positions[:, n_keys - n_queries :], key_positions)

    @classmethod
    def packed(cls, numbers: Int[Tensor, "B K"]) -> "View":
        """The position itself and those before it in the same sequence, where a row holds several one after another.

        `numbers` says which one each position belongs to: 1, 2, 3 …, and 0 is padding, which sees nothing.
        """
        n_positions = numbers.size(1)
        positions = torch.arange(n_positions, device=numbers.device).expand_as(numbers)
        is_first = torch.ones_like(numbers, dtype=torch.bool)
        is_first[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
        starts = positions.masked_fill(~is_first, 0).cummax(dim=1).values
        if (numbers == 1).all():  # one sequence a row: all rows look alike
            return cls(None, positions[:1], positions[:1])
        together = (numbers[:, :, None] == numbers[:, None, :]) & (numbers != 0)[:, None, :]
        earlier = _causal_mask(n_positions, numbers.device)
        return cls(earlier & together[:, None], positions - starts, positions - starts)

    @classmethod
    def cross(cls, query_positions: Int[Tensor, "#B Q"], memory_is_real: Bool[Tensor, "B K"]) -> "View":
        """Every real position of the encoder's output: the view of cross-attention."""
        return cls(memory_is_real[:, None, None, :], query_positions, count_positions(memory_is_real))


def count_positions(is_real: Bool[Tensor, "B K"]) -> Int[Tensor, "B K"]:
    """0, 1, 2 … over the real positions: padding takes none, so it may stand before, between or after them."""
    return (is_real.cumsum(dim=1) - 1).clamp(min=0)


def _causal_mask(n_positions: int, device: torch.device) -> Bool[Tensor, "1 1 Q Q"]:
    return torch.ones(1, 1, n_positions, n_positions, dtype=torch.bool, device=device).tril()
