"""What happens inside attention: spread of scores, entropy of weights, gradients through the softmax."""

import copy
import statistics
import time
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from manyheads.lab.lab_tasks import PAD
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, counted_logits, make_model
from manyheads.model import Transformer
from manyheads.model.tap import Tap


@dataclass(frozen=True)
class AttentionStatistics:
    """Statistics of the first attention of a model on one batch."""

    score_variance: float  # over the visible keys of a query, averaged
    entropy: float  # of the weights of a query as a share of the highest possible, averaged
    median_gradient: float  # of the absolute derivatives of the loss by the scores
    tail_gradient: float  # their 99th percentile


class _GradientTap(Tap):
    """Keeps the gradient of the attention weights."""

    def receive(self, name: str, value: Tensor) -> None:
        """Store the value, and its gradient once there is one."""
        if name.endswith(".weights") and value.requires_grad:
            value.retain_grad()
        super().receive(name, value)


def attention_statistics(model: nn.Module, setup: Setup, seed: int, n_rows: int = 128) -> AttentionStatistics:
    """Measure the first attention of a model on a batch of its task."""
    batch = setup.task.batch(n_rows, Generator().manual_seed(9_000_000 + seed))
    tap = _GradientTap()
    expected = batch.expected[batch.is_counted]
    torch.nn.functional.cross_entropy(counted_logits(model, batch, tap), expected, reduction="sum").backward()
    model.zero_grad()
    weights, scores = _first(tap, "weights"), _first(tap, "scores").detach()
    # Only the rows that the loss depends on: elsewhere all derivatives are 0.
    rows = batch.is_counted[:, None].expand(weights.shape[:3])
    gradient = softmax_gradient(weights.detach(), _gradient_of(weights))[rows]
    visible = torch.isfinite(scores)[rows]
    derivatives = gradient[visible].abs().double()
    return AttentionStatistics(
        score_variance=_row_variance(scores[rows], visible),
        entropy=relative_entropy(weights.detach()[rows], visible),
        median_gradient=float(derivatives.median()),
        tail_gradient=float(derivatives.quantile(0.99)),
    )


def head_row_sums(trained: Trained) -> tuple[float, float]:
    """The weights that a query of the first attention gives to all keys: the sum in one head, and over all heads."""
    weights = _first(trained.tapped()[1], "weights").double()
    return float(weights.sum(-1).mean()), float(weights.sum((1, -1)).mean())


def self_weight(trained: Trained) -> float:
    """The mean weight that a token gives to itself in the first attention."""
    batch, tap = trained.tapped()
    ids = batch.target if batch.source is None else batch.source
    assert ids is not None
    own = _first(tap, "weights").diagonal(dim1=-2, dim2=-1).mean(1)  # B Q
    return float(own[ids != PAD].double().mean())


def input_dependence(trained: Trained) -> float:
    """How much the weights of the first attention differ between rows: the mean total variation distance, 0 to 1."""
    weights = _first(trained.tapped()[1], "weights").double()
    return float((weights[1:] - weights[:-1]).abs().sum(-1).mean() / 2)


def additivity_error(trained: Trained) -> float:
    """How far the first W^O is from a linear map: the sum of its outputs for each head alone, against that for all.

    The error is relative to the root mean square of the output. A map that is not linear has a large one.
    """
    model, (_, tap) = trained.model, trained.tapped()
    assert isinstance(model, Transformer)
    heads = _first(tap, "heads").double()  # B H Q E
    project = copy.deepcopy(model.attentions()[0].output).double()
    alone = torch.eye(heads.size(1), dtype=torch.float64)[:, None, :, None, None] * heads  # one head kept, H times
    with torch.no_grad():
        together = project(heads.transpose(1, 2).flatten(2))
        apart = sum(project(one.transpose(1, 2).flatten(2)) for one in alone)
    return float((together - apart).square().mean().sqrt() / together.square().mean().sqrt())


def cache_bytes(model: nn.Module) -> int:
    """The bytes per token of one layer's key–value cache with numbers of 16 bits."""
    assert isinstance(model, Transformer)
    heads = model.settings.heads
    return heads.n_key_heads * (heads.head_width + heads.value_width) * 2


def pass_milliseconds(setup: Setup, seed: int, n_passes: int = 5) -> float:
    """The processor time of a forward and backward pass over one batch: the median, after two passes to warm up."""
    model = make_model(setup, seed)
    batch = setup.task.batch(setup.n_rows, Generator().manual_seed(seed))
    times = []
    for _ in range(n_passes + 2):
        start = time.process_time()
        logits = counted_logits(model, batch)
        torch.nn.functional.cross_entropy(logits, batch.expected[batch.is_counted]).backward()
        times.append(time.process_time() - start)
    return statistics.median(times[2:]) * 1000


def softmax_gradient(weights: Float[Tensor, "*B K"], gradient: Float[Tensor, "*B K"]) -> Float[Tensor, "*B K"]:
    """The derivative by the scores, given that by the weights: w (g − Σ w g)."""
    return weights * (gradient - (weights * gradient).sum(-1, keepdim=True))


def relative_entropy(weights: Float[Tensor, "N K"], visible: Bool[Tensor, "N K"]) -> float:
    """The mean entropy of rows of weights, as a share of ln(number of visible keys)."""
    entropy = -(weights * weights.clamp(min=1e-30).log()).sum(-1)
    most = visible.sum(-1).clamp(min=2).log()
    return float((entropy / most).double().mean())


def calibration_error(probabilities: Float[Tensor, "N V"], expected: Int[Tensor, " N"], n_bins: int = 10) -> float:
    """The expected calibration error (Naeini 2015): |confidence − accuracy| of equally wide bins, weighted by size."""
    confidence, predicted = probabilities.double().max(-1)
    is_right = (predicted == expected).double()
    bins = (confidence * n_bins).long().clamp(max=n_bins - 1)
    gaps = torch.zeros(n_bins, dtype=torch.double).index_add_(0, bins, confidence - is_right)
    return float(gaps.abs().sum() / len(expected))


def _row_variance(scores: Float[Tensor, "N K"], visible: Bool[Tensor, "N K"]) -> float:
    counts = visible.sum(-1)
    zeroed = scores.masked_fill(~visible, 0.0).double()
    means = zeroed.sum(-1) / counts
    squares = ((zeroed - means[:, None]) ** 2).masked_fill(~visible, 0.0).sum(-1)
    return float((squares / (counts - 1).clamp(min=1)).mean())


def _first(tap: Tap, kind: str) -> Tensor:
    """A value of the first attention."""
    return next(value for name, value in tap.values.items() if name.endswith(f".{kind}"))


def _gradient_of(value: Tensor) -> Tensor:
    assert value.grad is not None
    return value.grad
