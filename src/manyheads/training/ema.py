"""`EMA`: the exponential moving average of weights."""

from collections.abc import Mapping

import torch
from torch import Tensor

from manyheads.training.sharding import own_part


class EMA:
    """The exponential moving average of weights: ema ← decay · ema + (1 − decay) · weights after every step.

    The decay is at most (1 + step) / (10 + step), so that the average soon forgets the random initialization.
    """

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.weights = {name: value.clone() for name, value in weights.items()}

    @torch.no_grad()
    def update(self, weights: Mapping[str, Tensor], step: int) -> None:
        """Add the weights after a step to the average."""
        decay = min(self.decay, (1 + step) / (10 + step))
        floats = [name for name, value in self.weights.items() if value.is_floating_point()]
        own, others = ([own_part(values[name]) for name in floats] for values in (self.weights, weights))
        torch._foreach_lerp_(own, others, 1.0 - decay)
        for name in self.weights.keys() - set(floats):  # integers, such as the counters of some norms
            self.weights[name].copy_(weights[name])

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the average."""
        for name, value in self.weights.items():
            value.copy_(weights[name])
