"""Masks, named for what True means, and `View`: which keys each query may attend to, and at which positions."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class View:
    """The keys that are visible to each query, and the positions of queries and keys in their sequences."""

    mask: Bool[Tensor, "#B 1 #Q K"] | None  # None: causal without padding, so that no mask has to be stored
    query_positions: Int[Tensor, "#B Q"]
    key_positions: Int[Tensor, "#B K"]

    @property
    def is_purely_causal(self) -> bool:
        """Whether each query sees exactly its own and all earlier positions; the fused kernel then needs no mask."""
        return self.mask is None

    @property
    def visible(self) -> Bool[Tensor, "#B 1 #Q K"]:
        """True where a query may attend; a purely causal mask is built on demand, since it grows quadratically."""
        return _causal_mask(self.key_positions.size(1), self.key_positions.device) if self.mask is None else self.mask

    @classmethod
    def bidirectional(cls, is_real: Bool[Tensor, "B K"]) -> "View":
        """Every real position, before and after the query: self-attention of the encoder."""
        positions = count_positions(is_real)
        return cls(is_real[:, None, None, :], positions, positions)

    @classmethod
    def causal(cls, is_real: Bool[Tensor, "B K"], key_positions: Int[Tensor, "#B K"], n_queries: int) -> "View":
        """Real positions up to the query's own, for the last `n_queries` positions: self-attention of the decoder."""
        n_keys = is_real.size(1)
        if n_queries == n_keys and is_real.all():
            return cls(None, key_positions, key_positions)
        earlier = torch.ones(n_queries, n_keys, dtype=torch.bool, device=is_real.device).tril(n_keys - n_queries)
        return cls(earlier & is_real[:, None, None, :], key_positions[:, n_keys - n_queries :], key_positions)

    @classmethod
    def packed(cls, numbers: Int[Tensor, "B K"]) -> "View":
        """Causal within each of several sequences that share a row.

        `numbers` gives the sequence of each position, counted from 1; 0 is padding, which sees nothing.
        """
        n_positions = numbers.size(1)
        positions = torch.arange(n_positions, device=numbers.device).expand_as(numbers)
        is_first = torch.ones_like(numbers, dtype=torch.bool)
        is_first[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
        starts = positions.masked_fill(~is_first, 0).cummax(dim=1).values
        if (numbers == 1).all():  # one sequence per row: all rows have the same view
            return cls(None, positions[:1], positions[:1])
        same_sequence = (numbers[:, :, None] == numbers[:, None, :]) & (numbers != 0)[:, None, :]
        earlier = _causal_mask(n_positions, numbers.device)
        return cls(earlier & same_sequence[:, None], positions - starts, positions - starts)

    @classmethod
    def cross(cls, query_positions: Int[Tensor, "#B Q"], memory_is_real: Bool[Tensor, "B K"]) -> "View":
        """Every real position of the encoder output: cross-attention."""
        return cls(memory_is_real[:, None, None, :], query_positions, count_positions(memory_is_real))


def count_positions(is_real: Bool[Tensor, "B K"]) -> Int[Tensor, "B K"]:
    """Number the real positions 0, 1, 2, …; padding takes no number, so it may be before, between or after them."""
    return (is_real.cumsum(dim=1) - 1).clamp(min=0)


def _causal_mask(n_positions: int, device: torch.device) -> Bool[Tensor, "1 1 Q Q"]:
    return torch.ones(1, 1, n_positions, n_positions, dtype=torch.bool, device=device).tril()
