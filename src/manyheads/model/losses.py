"""Losses: label-smoothed cross-entropy, as the 2017 code had it."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def smoothed_cross_entropy(
    logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"], smoothing: float
) -> Float[Tensor, ""]:
    """Mean over N real tokens; the right class is worth 1 − ε, every other ε / (V − 1).

    PyTorch spreads its ε over all V classes, the right one included; ε V / (V − 1) makes the two the same.
    """
    n_classes = logits.size(-1)
    return F.cross_entropy(logits, targets, label_smoothing=smoothing * n_classes / (n_classes - 1))
