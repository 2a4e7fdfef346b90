"""Norms with every number: one norm of a model, and all norms on the same token, with and without padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manyheads.model.norms import NORMS, BatchNorm, LayerNorm, Norm, PaddedBatchNorm, RMSNorm, SampleNorm
from manyheads.walks.attention_walk import Floats, doubles

_COMPARED = ("layer", "batch", "batch-with-padding", "sample")

# Q positions, W width.


@dataclass(frozen=True)
class NormWalk:
    """One norm of a model: normalized = (input − mean) / √(variance + ε), output = normalized × weight + bias.

    Mean and variance broadcast to the input: Q × 1 for a norm per token, 1 × W per feature, 1 × 1 per sample. The mean
    of RMSNorm is 0, and its variance is the mean of squares. They are None for a norm that is not one of ours.
    """

    kind: str  # as in model.norm
    epsilon: float
    input: Floats  # Q × W
    mean: Floats | None
    variance: Floats | None
    normalized: Floats | None  # Q × W
    weight: Floats  # W: γ
    bias: Floats | None  # W: β; RMSNorm has none
    output: Floats  # Q × W


@dataclass(frozen=True)
class NormalizedToken:
    """One token under one norm: normalized = (x − mean) / √(variance + ε), before γ and β."""

    count: int  # how many numbers a mean is of
    mean: Floats  # 1 number, or W of a batch norm
    variance: Floats
    normalized: Floats  # W


@dataclass(frozen=True)
class ComparedNorm:
    """What one norm makes of the same token in a batch without padding and in one with padding."""

    kind: str  # as in model.norm
    without_padding: NormalizedToken
    with_padding: NormalizedToken

    @property
    def shift(self) -> float:
        """The largest change of a number by the padding."""
        return float(np.abs(self.with_padding.normalized - self.without_padding.normalized).max())


@dataclass(frozen=True)
class NormComparison:
    """Norms on the same numbers: a batch of a sentence and of its first tokens, which are padded to its length."""

    sentence: Floats  # Q × W
    shorter: Floats  # its first rows
    n_padding: int  # rows of zeros after `shorter`
    position: int  # of the token, in `shorter`
    epsilon: float
    norms: tuple[ComparedNorm, ...]  # layer, batch (real tokens only), batch-with-padding, sample

    def __getitem__(self, kind: str) -> ComparedNorm:
        return next(norm for norm in self.norms if norm.kind == kind)


def walk_norm(norm: Norm, x: Tensor, output: Tensor) -> NormWalk:
    """Return every number of a norm at inference, for an input Q × W and its output."""
    kind = next((name for name, each in NORMS.items() if each is type(norm)), type(norm).__name__)
    mean, variance = _statistics(norm, x[None], torch.ones(1, len(x), dtype=torch.bool)) or (None, None)
    known = mean is not None and variance is not None
    bias = getattr(norm, "bias", None)
    return NormWalk(
        kind=kind,
        epsilon=norm.epsilon,
        input=doubles(x),
        mean=None if mean is None else doubles(mean[0]),
        variance=None if variance is None else doubles(variance[0]),
        normalized=doubles((x - mean[0]) / (variance[0] + norm.epsilon).sqrt()) if known else None,  # type: ignore[index]
        weight=doubles(norm.weight),
        bias=None if bias is None else doubles(bias),
        output=doubles(output),
    )


def compare_norms(sentence: Floats, position: int, epsilon: float, kinds: Sequence[str] = _COMPARED) -> NormComparison:
    """Return what each norm makes of a token in a batch of this sentence and its first half, plain and padded.

    Padding is rows of zeros, so that the arithmetic can be followed; in a model it is whatever the layers make of PAD.
    """
    long = torch.from_numpy(sentence)
    n_short = (len(long) + 1) // 2
    short = long[:n_short]
    position = min(position, n_short - 1)
    length = max(len(long), n_short + 1)  # at least one row of padding
    padded = torch.stack([torch.nn.functional.pad(each, (0, 0, 0, length - len(each))) for each in (long, short)])
    is_real = torch.arange(length) < torch.tensor([[len(long)], [n_short]])
    compared = []
    for kind in kinds:
        norm = NORMS[kind](long.size(1), epsilon).double().train()
        # Without padding, a batch norm sees the rows of both sentences, and the other norms those of their own.
        plain = torch.cat([long, short])[None] if isinstance(norm, BatchNorm) else short[None]
        row = len(long) + position if isinstance(norm, BatchNorm) else position
        all_real = torch.ones(plain.shape[:2], dtype=torch.bool)
        cases = _normalize(norm, plain, all_real, (0, row)), _normalize(norm, padded, is_real, (1, position))
        compared.append(ComparedNorm(kind, *cases))
    return NormComparison(sentence, doubles(short), length - n_short, position, epsilon, tuple(compared))


def _normalize(norm: Norm, x: Tensor, is_real: Tensor, at: tuple[int, int]) -> NormalizedToken:
    statistics = _statistics(norm, x, is_real)
    assert statistics is not None
    mean, variance = (doubles(each.expand(*x.shape[:2], -1)[at]) for each in statistics)
    return NormalizedToken(_count(norm, x, is_real), mean, variance, doubles(norm(x, is_real)[at]))


def _count(norm: Norm, x: Tensor, is_real: Tensor) -> int:
    """Return how many numbers one mean of a norm is of."""
    if isinstance(norm, BatchNorm):
        return is_real.numel() if norm.counts_padding else int(is_real.sum())
    return x[0].numel() if isinstance(norm, SampleNorm) else x.size(-1)


def _statistics(norm: Norm, x: Tensor, is_real: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the mean and the variance that a norm uses for B × Q × W, to be broadcast; None for an unknown norm."""
    kind = type(norm)
    if kind is LayerNorm:
        return x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    if kind is RMSNorm:
        square = x.square().mean(-1, keepdim=True)
        return torch.zeros_like(square), square
    if kind is SampleNorm:
        return x.mean((1, 2), keepdim=True), x.var((1, 2), correction=0, keepdim=True)
    if kind in (BatchNorm, PaddedBatchNorm):
        assert isinstance(norm, BatchNorm)
        if not norm.training:
            return norm.running_mean[None, None], norm.running_var[None, None]
        counted = x.flatten(0, 1) if norm.counts_padding else x[is_real]
        return counted.mean(0)[None, None], counted.var(0, correction=0)[None, None]
    return None
