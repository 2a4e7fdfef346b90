"""The running mean of weights in training (EMA): less noise than the newest weights, no later than an average."""

from collections.abc import Mapping

import torch
from torch import Tensor


class EMA:
    """mean ← decay · mean + (1 − decay) · weights, after every step.

    Early on it forgets faster, by (1 + step) / (10 + step), or it would long remember the random beginning.
    """

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.weights = {name: value.clone() for name, value in weights.items()}

    @torch.no_grad()
    def add(self, weights: Mapping[str, Tensor], step: int) -> None:
        """Take the weights after a step into the mean."""
        decay = min(self.decay, (1 + step) / (10 + step))
        floats = [name for name, value in self.weights.items() if value.is_floating_point()]
        torch._foreach_lerp_([self.weights[name] for name in floats], [weights[name] for name in floats], 1.0 - decay)
        for name in self.weights.keys() - set(floats):  # counters, such as a batch norm's
            self.weights[name].copy_(weights[name])

    @torch.no_grad()
    def set(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from another mean."""
        for name, value in self.weights.items():
            value.copy_(weights[name])
