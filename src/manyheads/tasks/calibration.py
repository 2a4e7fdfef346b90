"""Calibration: probabilities of labels that are right as often as they say, as far as the validation rows can tell."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

_TEMPERATURES = (0.5, 10.0)  # beyond, a fit would extrapolate from rows that are nearly all right, or all wrong
_PRIOR = 0.5  # standard deviation of the logarithm of the temperature around 0: with few rows it stays near 1


@dataclass(frozen=True)
class Calibration:
    """A temperature (Guo 2017) and a floor: no probability is more certain than the rows it was fitted on can show.

    If all of n rows are right, one in n + 1 may still be wrong. That share of the probability goes to all labels alike.
    """

    temperature: float = 1.0
    n_rows: int = 0  # rows the temperature was fitted on; 0: not calibrated, and no floor

    @classmethod
    def fit(
        cls, logits: Float[Tensor, "N C"], targets: Float[Tensor, "N C"], *, multi_label: bool = False
    ) -> "Calibration":
        """Fit the temperature to rows whose targets are 1 for their labels and 0 for others."""
        if not len(logits):
            return cls()
        logits, targets = logits.double(), targets.double()

        def cost(log_temperature: float) -> float:
            """The negative log-likelihood of all rows and of the temperature."""
            found = cls(math.exp(log_temperature), len(logits)).probabilities(logits, multi_label=multi_label)
            if multi_label:  # the labels of one row are hardly independent: their mean counts as one decision
                likelihoods = (targets * found + (1 - targets) * (1 - found)).log().mean(-1)
            else:
                likelihoods = (targets * found).sum(-1).log()
            return float(-likelihoods.sum() + 0.5 * (log_temperature / _PRIOR) ** 2)

        low, high = map(math.log, _TEMPERATURES)
        for _ in range(3):  # finer grids around the best point
            grid = np.linspace(low, high, 21).tolist()
            best = min(grid, key=cost)
            low, high = max(low, best - (grid[1] - grid[0])), min(high, best + (grid[1] - grid[0]))
        return cls(math.exp(best), len(logits))

    @classmethod
    def restore(cls, metadata: Mapping[str, Any]) -> "Calibration":
        """Return the calibration in a bundle's metadata; bundles of older versions have no number of rows."""
        return cls(float(metadata["temperature"]), int(metadata.get("n_calibrated", 0)))

    def metadata(self) -> dict[str, Any]:
        """What `restore` needs, as JSON values."""
        return {"temperature": self.temperature, "n_calibrated": self.n_rows}

    def probabilities(self, logits: Float[Tensor, "N C"], *, multi_label: bool = False) -> Float[Tensor, "N C"]:
        """Probabilities of labels: a softmax, or a sigmoid for each label if multi_label."""
        scaled = logits / self.temperature
        share = 1 / (self.n_rows + 1) if self.n_rows else 0.0
        if multi_label:
            return (1 - share) * scaled.sigmoid() + share / 2
        return (1 - share) * F.softmax(scaled, dim=-1) + share / logits.size(-1)
