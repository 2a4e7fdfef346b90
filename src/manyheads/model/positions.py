"""Positions: how the model represents the order of its tokens.

Absolute positions are vectors that are added to the embeddings (sinusoidal, learned, none). Relative positions act
inside self-attention: rotary positions rotate queries and keys, ALiBi lowers the scores of distant keys. All classes of
one kind share one interface.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class SinusoidalPositions(nn.Module):
    """PE(p, 2i) = sin(p / 10000^(2i/W)) and PE(p, 2i+1) = cos(p / 10000^(2i/W)), defined for any position p."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, positions: Int[Tensor, "#B Q"], dtype: torch.dtype = torch.float32) -> Float[Tensor, "#B Q W"]:
        """The vectors of these positions, computed in this precision."""
        angles = _angles(positions, self.width, dtype)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class LearnedPositions(nn.Module):
    """One learned vector for each of `max_length` positions."""

    def __init__(self, max_length: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_length, width) * width**-0.5)

    def forward(self, positions: Int[Tensor, "#B Q"], dtype: torch.dtype = torch.float32) -> Float[Tensor, "#B Q W"]:
        """The vectors of these positions, in the precision of the weights."""
        return self.weight[positions]


class NoPositions(nn.Module):
    """No absolute positions: nothing is added to the embeddings."""

    def forward(self, positions: Int[Tensor, "#B Q"], dtype: torch.dtype = torch.float32) -> Float[Tensor, "#B Q 1"]:
        """Zeros."""
        return torch.zeros(*positions.shape, 1, dtype=dtype, device=positions.device)


class NoRelativePositions(nn.Module):
    """No relative positions, as in 2017; base class of the others."""

    def rotate(self, x: Float[Tensor, "B H Q D"], positions: Int[Tensor, "#B Q"]) -> Float[Tensor, "B H Q D"]:
        """Return queries or keys unchanged."""
        return x

    def bias(
        self,
        query_positions: Int[Tensor, "#B Q"],
        key_positions: Int[Tensor, "#B K"],
    ) -> Float[Tensor, "#B H Q K"] | None:
        """The bias to add to the scores: none."""
        return None


class RotaryPositions(NoRelativePositions):
    """Rotates each pair of features of a query or key by an angle proportional to its position (Su 2021).

    The dot product of a query and a key then depends on their distance, not on their absolute positions. `scaling` is
    a factor for the angle of each pair.
    """

    def __init__(self, head_width: int, base: float = 10_000.0, scaling: Sequence[float] = ()) -> None:
        super().__init__()
        self.head_width = head_width
        self.base = base
        self.scaling = tuple(scaling)

    def rotate(self, x: Float[Tensor, "B H Q D"], positions: Int[Tensor, "#B Q"]) -> Float[Tensor, "B H Q D"]:
        """Rotate queries or keys by their positions."""
        # Convert only the sine and cosine: in bfloat16, an angle of 1,000 is off by more than a full rotation.
        angles = _angles(positions, self.head_width, at_least_single(x.dtype), self.base)[:, None]
        if self.scaling:
            angles = angles * angles.new_tensor(self.scaling)
        sin, cos = angles.sin().to(x.dtype), angles.cos().to(x.dtype)
        first, second = x[..., 0::2], x[..., 1::2]
        return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)


class AlibiPositions(NoRelativePositions):
    """Subtracts slope × distance from the scores, with one slope per head (Press 2022), in both directions."""

    slopes: Tensor

    def __init__(self, n_heads: int, kept: Sequence[int] | None = None) -> None:
        super().__init__()
        # Heads keep their slopes when other heads are pruned.
        numbers = range(n_heads) if kept is None else kept
        steps = torch.tensor([number + 1 for number in numbers], dtype=torch.float32)
        self.register_buffer("slopes", 2.0 ** (-8.0 * steps / n_heads), persistent=False)

    def bias(
        self, query_positions: Int[Tensor, "#B Q"], key_positions: Int[Tensor, "#B K"]
    ) -> Float[Tensor, "#B H Q K"] | None:
        """The bias to add to the scores: −slope × distance."""
        distance = (query_positions[:, None, :, None] - key_positions[:, None, None, :]).abs()
        return -self.slopes[:, None, None] * distance


class BucketedPositions(NoRelativePositions):
    """Adds a learned number to each score, by head and by the range that the distance is in (Raffel 2020).

    Half of the ranges are for keys after the query, unless they are hidden. Short distances have a range each; the
    ranges of longer ones grow up to `max_distance`, from which on all share the last.
    """

    def __init__(self, n_heads: int, n_buckets: int, max_distance: int, *, is_causal: bool) -> None:
        super().__init__()
        self.n_buckets, self.max_distance, self.is_causal = n_buckets, max_distance, is_causal
        self.weight = nn.Parameter(torch.zeros(n_heads, n_buckets))

    def bias(
        self, query_positions: Int[Tensor, "#B Q"], key_positions: Int[Tensor, "#B K"]
    ) -> Float[Tensor, "#B H Q K"] | None:
        """The bias to add to the scores."""
        distance = key_positions[:, None, :] - query_positions[:, :, None]
        return self.weight[:, self._bucket(distance)].transpose(0, 1)

    def _bucket(self, distance: Int[Tensor, "#B Q K"]) -> Int[Tensor, "#B Q K"]:
        n_buckets = self.n_buckets if self.is_causal else self.n_buckets // 2
        after = torch.zeros_like(distance) if self.is_causal else (distance > 0) * n_buckets
        size = -distance.clamp(max=0) if self.is_causal else distance.abs()
        n_exact = n_buckets // 2
        growth = torch.log(size.clamp(min=1).float() / n_exact) / math.log(self.max_distance / n_exact)
        far = (n_exact + (growth * (n_buckets - n_exact)).long()).clamp(max=n_buckets - 1)
        return after + torch.where(size < n_exact, size, far)


def at_least_single(dtype: torch.dtype) -> torch.dtype:
    """The precision in which to compute angles for vectors of this type: single, or double for double."""
    return torch.promote_types(dtype, torch.float32)


def _angles(
    positions: Int[Tensor, "#B Q"], width: int, dtype: torch.dtype, base: float = 10_000.0
) -> Float[Tensor, "#B Q P"]:
    """p / base^(2i/W) for each position p and each pair i of features."""
    even = torch.arange(0, width, 2, device=positions.device).to(dtype)
    return positions[..., None] * torch.exp(even * (-math.log(base) / width))
