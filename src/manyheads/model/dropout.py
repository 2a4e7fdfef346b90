"""Dropout from cheap random bytes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_SIDES = 256  # of the die: one random byte a number


class Dropout(nn.Module):
    """While training, each number becomes 0 with probability `rate`; the others grow so that the mean stays.

    On a CPU torch draws a random double for every number, which took an eighth of a small model's training time.
    A byte is enough: `rate` becomes the nearest of 1/256 … 255/256, and the growth goes with that. Other devices draw
    in parallel, and use torch's own.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.n_dropped = min(max(1, round(rate * _SIDES)), _SIDES - 1) if rate else 0

    def forward(self, x: Tensor) -> Tensor:
        """The survivors."""
        if not self.training or not self.n_dropped:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        size = x.numel()
        words = torch.empty((size + 7) // 8, dtype=torch.int64).random_(-(2**63), None)  # 8 bytes at once
        # Compared straight into 0.0 and 1.0, without a table of True and False in between.
        survives = torch.ge(words.view(torch.uint8)[:size].view(x.shape), self.n_dropped, out=torch.empty_like(x))
        return x * survives.mul_(_SIDES / (_SIDES - self.n_dropped))

    def drop_slices(self, x: Tensor, n_axes: int) -> Tensor:
        """The survivors among parts of x: all that share their positions on the first axes stand or fall together."""
        if not self.training or not self.n_dropped:
            return x
        return x * self(x.new_ones(x.shape[:n_axes])).reshape(*x.shape[:n_axes], *[1] * (x.dim() - n_axes))

    def extra_repr(self) -> str:
        """What is printed of it."""
        return f"rate={self.rate}"
