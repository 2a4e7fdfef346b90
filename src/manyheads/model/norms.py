"""Norms: `NORMS` maps each value of `model.norm` to its class.

`LayerNorm` is the norm of the paper: per token, over its features. The batch and sample norms exist for experiments
that show why. To add a norm, subclass `Norm` and register the class: `NORMS["my-norm"] = MyNorm`.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Norm(nn.Module):
    """Base class of all norms: constructed as `Norm(width, epsilon)` and called as `norm(x, is_real)`."""

    # Whether a token's output at inference depends on other positions. Such a model cannot reuse a key–value cache
    # and cannot train on several texts packed in one row.
    mixes_positions: ClassVar[bool] = False
    n_vectors: ClassVar[int] = 1  # parameters, each of the width: a weight, and a bias if there is one

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Normalize x; `is_real` is False at padding."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward.")


class LayerNorm(Norm):
    """γ (x − μ) / √(σ² + ε) + β, with μ and σ² over the features of one token."""

    n_vectors = 2

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__(width, epsilon)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Normalize each token independently."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class RMSNorm(Norm):
    """γ x / √(mean x² + ε): layer norm without centering (Zhang 2019)."""

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Scale each token independently."""
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


class BatchNorm(LayerNorm):
    """Per feature, over all real tokens of the batch; at inference, by running statistics."""

    counts_padding: ClassVar[bool] = False
    momentum: ClassVar[float] = 0.1
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__(width, epsilon)
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Normalize each feature over the batch; padded positions are normalized too, whether or not they count."""
        counted = x.flatten(0, 1) if self.counts_padding else x[is_real]
        # A single token has no variance, so it is normalized by the running statistics.
        if not self.training or len(counted) < 2:
            return F.batch_norm(x.mT, self.running_mean, self.running_var, self.weight, self.bias, eps=self.epsilon).mT
        mean, variance = counted.mean(0), counted.var(0, correction=0)
        with torch.no_grad():
            unbiased = variance * len(counted) / (len(counted) - 1)
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(unbiased, self.momentum)
        return (x - mean) / (variance + self.epsilon).sqrt() * self.weight + self.bias


class PaddedBatchNorm(BatchNorm):
    """Naive batch norm: padding counts, so the statistics depend on how sentences were batched."""

    counts_padding = True


class SampleNorm(LayerNorm):
    """Over all positions and features of a sample. Not used in practice: it depends on padding and leaks the future."""

    mixes_positions = True

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Normalize each sample as one block of numbers."""
        return F.layer_norm(x, x.shape[1:], eps=self.epsilon) * self.weight + self.bias


class NoNorm(nn.Module):
    """The identity: the final norm of a post-norm stack, whose last block has already normalized."""

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Return x."""
        return x


NORMS: dict[str, type[Norm]] = {
    "layer": LayerNorm,
    "rms": RMSNorm,
    "batch": BatchNorm,
    "batch-with-padding": PaddedBatchNorm,
    "sample": SampleNorm,
}
