"""`Mixture`: the Transformer and the linear classifier as one answer, weighted on validation rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from manyheads.tasks.calibration import Calibration

# An SVM's decision values have a margin of 1: times this, they are about as far apart as logits.
DECISION_SCALE = 4.0
_SHARES = np.linspace(0.0, 1.0, 21)
_PRIOR = 0.3  # standard deviation of the share around one half: with few rows it stays near


@dataclass(frozen=True)
class Mixture:
    """A weighted sum of the logits of both parts, each divided by its own temperature.

    They are mixed after training: trained together, they were no better than the better part alone.
    """

    share: float = 0.0  # of the linear classifier: 0 is the Transformer alone, 1 the linear classifier alone
    transformer_temperature: float = 1.0
    linear_temperature: float = 1.0

    @classmethod
    def fit(
        cls,
        transformer: Float[Tensor, "N C"],
        linear: Float[Tensor, "N C"],
        targets: Float[Tensor, "N C"],
        *,
        multi_label: bool = False,
    ) -> "Mixture":
        """Choose the share with the highest likelihood of validation rows."""
        temperatures = [
            Calibration.fit(logits, targets, multi_label=multi_label).temperature for logits in (transformer, linear)
        ]
        mixture = cls(0.0, *temperatures)
        if not len(targets):
            return replace(mixture, share=0.5)

        def cost(share: float) -> float:
            logits = replace(mixture, share=share).logits(transformer, linear)
            calibration = Calibration.fit(logits, targets, multi_label=multi_label)
            loss = _negative_log_likelihood(logits.double() / calibration.temperature, targets, multi_label=multi_label)
            return loss + 0.5 * ((share - 0.5) / _PRIOR) ** 2

        return replace(mixture, share=float(min(_SHARES.tolist(), key=cost)))

    @classmethod
    def restore(cls, metadata: Mapping[str, Any]) -> "Mixture":
        """Return the mixture in a bundle's metadata; without one, the Transformer decides alone."""
        stored = metadata.get("mixture")
        if stored is None:
            return cls()
        share, *temperatures = (float(stored[name]) for name in ("share", "transformer", "linear"))
        if not 0 <= share <= 1 or not all(0 < temperature < np.inf for temperature in temperatures):
            raise ValueError("metadata.mixture must have a share from 0 to 1 and temperatures above 0.")
        return cls(share, *temperatures)

    def metadata(self) -> dict[str, float]:
        """What `restore` needs, as JSON values."""
        return {
            "share": self.share,
            "transformer": self.transformer_temperature,
            "linear": self.linear_temperature,
        }

    def parts(
        self, transformer: Float[Tensor, "N C"], linear: Float[Tensor, "N C"]
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"]]:
        """What each part adds to the logits."""
        return (
            (1 - self.share) * transformer / self.transformer_temperature,
            self.share * linear / self.linear_temperature,
        )

    def logits(self, transformer: Float[Tensor, "N C"], linear: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """The logits of the mixture."""
        one, other = self.parts(transformer, linear)
        return one + other


def _negative_log_likelihood(
    logits: Float[Tensor, "N C"], targets: Float[Tensor, "N C"], *, multi_label: bool
) -> float:
    """Of all rows; the labels of one row are hardly independent, so that their mean counts as one decision."""
    if multi_label:
        losses = F.binary_cross_entropy_with_logits(logits, targets.double(), reduction="none").mean(-1)
        return float(losses.sum())
    return float(F.cross_entropy(logits, targets.argmax(-1), reduction="sum"))
