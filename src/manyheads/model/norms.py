"""Norms, all behind one interface: `norm(x, is_real)`, of which only batch norm needs to know what is padding.

`LayerNorm` is the paper's: per token, over its features. The batch and sample norms are there for
experiments that show why.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.model.settings import ModelSettings


class LayerNorm(nn.Module):
    """γ (x − μ) / √(σ² + ε) + β, with μ and σ² over the features of one token."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Each token normalized by itself."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class RMSNorm(nn.Module):
    """γ x / √(mean x² + ε): layer norm without the centring (Zhang 2019)."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Each token scaled by itself."""
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


class BatchNorm(nn.Module):
    """Per feature, over all real tokens of the batch; at inference, by running statistics.

    `counts_padding` makes the naive kind, whose statistics depend on how sentences were batched.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int, epsilon: float, *, counts_padding: bool, momentum: float = 0.1) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.momentum = momentum
        self.counts_padding = counts_padding
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Each feature normalized over the batch, padded positions set to β or left to themselves alike."""
        counted = x.flatten(0, 1) if self.counts_padding else x[is_real]
        # One token has no spread to train on: the running statistics must do.
        if not self.training or len(counted) < 2:
            return F.batch_norm(x.mT, self.running_mean, self.running_var, self.weight, self.bias, eps=self.epsilon).mT
        mean, variance = counted.mean(0), counted.var(0, correction=0)
        with torch.no_grad():
            unbiased = variance * len(counted) / (len(counted) - 1)
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(unbiased, self.momentum)
        return (x - mean) / (variance + self.epsilon).sqrt() * self.weight + self.bias


class SampleNorm(LayerNorm):
    """Over all n × d numbers of a sample: shifts with padding and leaks the future, which is why nobody uses it."""

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """Each sample normalized as one block of numbers."""
        return F.layer_norm(x, x.shape[1:], eps=self.epsilon) * self.weight + self.bias


class NoNorm(nn.Module):
    """Nothing: what stands at the end of a post-norm stack, whose last block has normalized already."""

    def forward(self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """The vectors as they are."""
        return x


def make_norm(settings: ModelSettings) -> nn.Module:
    """The norm the settings name."""
    width, epsilon = settings.width, settings.norm_epsilon
    match settings.norm:
        case "layer":
            return LayerNorm(width, epsilon)
        case "rms":
            return RMSNorm(width, epsilon)
        case "batch":
            return BatchNorm(width, epsilon, counts_padding=False)
        case "batch-with-padding":
            return BatchNorm(width, epsilon, counts_padding=True)
        case "sample":
            return SampleNorm(width, epsilon)


def make_final_norm(settings: ModelSettings) -> nn.Module:
    """The norm after the last block: pre-norm leaves the residual stream raw, so it needs one."""
    return make_norm(settings) if settings.norm_placement == "pre" else NoNorm()
