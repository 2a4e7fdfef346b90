"""Positions: how a model knows the order of its tokens.

Absolute ones are vectors added to the embeddings (sinusoidal, learned, none). Relative ones act inside
self-attention: rotary rotates queries and keys, ALiBi lowers the score of distant positions. Each of the two kinds is a
strategy of one interface, so the code that uses them never asks which one it has.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class SinusoidalPositions(nn.Module):
    """PE(p, 2i) = sin(p / 10000^(2i/W)), PE(p, 2i+1) = cos of the same: defined for any length."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, positions: Int[Tensor, "#B Q"]) -> Float[Tensor, "#B Q W"]:
        """The position vectors of these positions."""
        even = torch.arange(0, self.width, 2, device=positions.device)
        angles = positions[..., None] * torch.exp(even * (-math.log(10_000.0) / self.width))
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class LearnedPositions(nn.Module):
    """One learned vector per position, for `max_length` positions."""

    def __init__(self, max_length: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_length, width) * width**-0.5)

    def forward(self, positions: Int[Tensor, "#B Q"]) -> Float[Tensor, "#B Q W"]:
        """The position vectors of these positions."""
        return self.weight[positions]


class NoPositions(nn.Module):
    """Nothing is added: order must come from elsewhere, or not at all."""

    def forward(self, positions: Int[Tensor, "#B Q"]) -> Float[Tensor, "#B Q 1"]:
        """Zeros."""
        return torch.zeros(*positions.shape, 1, device=positions.device)


class NoRelativePositions(nn.Module):
    """Attention as in 2017: scores depend on content alone."""

    def rotate(self, x: Float[Tensor, "B H Q D"], positions: Int[Tensor, "#B Q"]) -> Float[Tensor, "B H Q D"]:
        """Queries or keys, as they are."""
        return x

    def bias(
        self,
        query_positions: Int[Tensor, "#B Q"],
        key_positions: Int[Tensor, "#B K"],
    ) -> Float[Tensor, "#B H Q K"] | None:
        """What to add to the scores: nothing."""
        return None


class RotaryPositions(NoRelativePositions):
    """Rotates each pair of a query's or key's numbers by an angle that grows with its position (Su 2021).

    The product of a query and a key then depends on their distance, not on where both stand.
    """

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.head_width = head_width

    def rotate(self, x: Float[Tensor, "B H Q D"], positions: Int[Tensor, "#B Q"]) -> Float[Tensor, "B H Q D"]:
        """Queries or keys, rotated to their positions."""
        even = torch.arange(0, self.head_width, 2, device=x.device)
        angles = positions[:, None, :, None] * torch.exp(even * (-math.log(10_000.0) / self.head_width))
        # Only now to half precision, where it is used: an angle of 1,000 in bfloat16 is wrong by whole turns.
        sin, cos = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
        first, second = x[..., 0::2], x[..., 1::2]
        return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)


class AlibiPositions(NoRelativePositions):
    """Lowers a score by distance times a slope of the head's own (Press 2022), ahead as well as behind."""

    slopes: Tensor

    def __init__(self, n_heads: int, kept: Sequence[int] | None = None) -> None:
        super().__init__()
        # A head that is left after pruning keeps its slope.
        numbers = range(n_heads) if kept is None else kept
        steps = torch.tensor([number + 1 for number in numbers], dtype=torch.float32)
        self.register_buffer("slopes", 2.0 ** (-8.0 * steps / n_heads), persistent=False)

    def bias(
        self, query_positions: Int[Tensor, "#B Q"], key_positions: Int[Tensor, "#B K"]
    ) -> Float[Tensor, "#B H Q K"] | None:
        """What to add to the scores: −slope × distance."""
        distance = (query_positions[:, None, :, None] - key_positions[:, None, None, :]).abs()
        return -self.slopes[:, None, None] * distance
