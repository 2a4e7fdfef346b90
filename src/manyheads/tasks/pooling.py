"""Pooling: one vector for a text from the vectors of its tokens."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

Pooling = Literal["first", "mean", "max", "mean-max", "attention"]


class Pool(nn.Module):
    """One vector per text of any length; padded positions do not count."""

    def __init__(self, kind: Pooling, width: int) -> None:
        super().__init__()
        self.kind = kind
        self.width = 2 * width if kind == "mean-max" else width
        if kind == "attention":
            self.query = nn.Linear(width, 1, bias=False)

    def forward(self, x: Float[Tensor, "B S W"], is_real: Bool[Tensor, "B S"]) -> Float[Tensor, "B P"]:
        """The pooled vectors."""
        match self.kind:
            case "first":
                return x[:, 0]
            case "mean":
                return _mean(x, is_real)
            case "max":
                return _max(x, is_real)
            case "mean-max":
                return torch.cat([_mean(x, is_real), _max(x, is_real)], dim=1)
            case "attention":
                scores = self.query(x)[..., 0].masked_fill(~is_real, -torch.inf)
                return (scores.softmax(1)[..., None] * x).sum(1)


def _mean(x: Float[Tensor, "B S W"], is_real: Bool[Tensor, "B S"]) -> Float[Tensor, "B W"]:
    return (x * is_real[..., None]).sum(1) / is_real.sum(1, keepdim=True)


def _max(x: Float[Tensor, "B S W"], is_real: Bool[Tensor, "B S"]) -> Float[Tensor, "B W"]:
    return x.masked_fill(~is_real[..., None], -torch.inf).amax(1)
