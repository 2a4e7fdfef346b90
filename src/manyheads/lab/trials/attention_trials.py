"""What happens inside attention: scores, weights, gradients through the softmax, and how heads differ."""

import copy
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor, nn

from manyheads.lab.lab_tasks import PAD, Reorder
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, count_parameters, counted_logits, make_model, train_model, untrained
from manyheads.model import Transformer
from manyheads.model.tap import Tap

_TIMED = {"task": Reorder("previous", lengths=(64, 64)), "n_rows": 16}


def score_scale(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy and speed of learning, and the statistics of the first attention before training."""
    start = attention_statistics(make_model(setup, seed), setup, seed)
    trained = train_model(setup, seed)
    return {
        **trained.outcome(),
        "variance": start.score_variance,
        "entropy": start.entropy,
        "median_gradient": start.median_gradient,
        "tail_gradient": start.tail_gradient,
    }


def head_count(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy, size, and the sums of the attention weights of one head and of all heads."""
    trained = train_model(setup, seed)
    one_head, all_heads = head_row_sums(trained)
    return {
        **trained.outcome(),
        "parameters": count_parameters(trained.model),
        "one_head_sum": one_head,
        "all_heads_sum": all_heads,
    }


def head_diversity(setup: Setup, seed: int) -> dict[str, float]:
    """How heads differ after training, or before it."""
    trained = train_model(setup, seed) if setup.extra["is_trained"] else untrained(setup, seed)
    found = head_differences(trained)
    return {
        "divergence": found.divergence,
        "entropy": found.entropy,
        "distance": found.distance,
        "distance_range": found.distance_range,
        "first_layer": _mean(found.distances[0]),
        "last_layer": _mean(found.distances[-1]),
        **trained.outcome(),
    }


def output_projection(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy and size; whether W^O adds up over heads, and whether the weights depend on the input."""
    trained = train_model(setup, seed)
    return {
        **trained.outcome(),
        "additivity": additivity_error(trained),
        "weights_change": input_dependence(trained),
        "parameters": count_parameters(trained.model),
    }


def query_key_projections(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy and size, and the weight that a token gives to itself before and after training."""
    trained = train_model(setup, seed)
    return {
        **trained.outcome(),
        "self_start": self_weight(untrained(setup, seed)),
        "self_end": self_weight(trained),
        "parameters": count_parameters(trained.model),
    }


def shared_keys(setup: Setup, seed: int) -> dict[str, float]:
    """Scores, how unlike the heads are, and the size of the key–value cache and of the model."""
    trained = train_model(setup, seed)
    return {
        **trained.outcome(),
        "divergence": head_differences(trained).divergence,
        "cache": cache_bytes(trained.model),
        "parameters": count_parameters(trained.model),
    }


def score_form(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy, size, and the time of one pass over sequences of 64 tokens."""
    trained = train_model(setup, seed)
    return {
        **trained.outcome(),
        "time": pass_milliseconds(setup.changed(_TIMED), seed),
        "parameters": count_parameters(trained.model),
    }


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
        apart = sum(project(head.transpose(1, 2).flatten(2)) for head in alone)
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


@dataclass(frozen=True)
class HeadDifferences:
    """Statistics of the self-attentions of a model on a held-out batch."""

    distances: tuple[tuple[float, ...], ...]  # mean attention distance in tokens, by layer and head
    entropy: float  # as a share of the highest possible, averaged over heads
    divergence: float  # Jensen–Shannon, in bits, averaged over the pairs of heads of a layer

    @property
    def distance(self) -> float:
        """The mean attention distance of all heads."""
        return sum(map(sum, self.distances)) / sum(map(len, self.distances))

    @property
    def distance_range(self) -> float:
        """The distance of the head that looks farthest minus that of the head that looks nearest."""
        return max(map(max, self.distances)) - min(map(min, self.distances))


def head_differences(trained: Trained) -> HeadDifferences:
    """Measure every self-attention on a held-out batch."""
    batch, tap = trained.tapped()
    ids = batch.target if batch.source is None else batch.source
    assert ids is not None
    is_real = ids != PAD
    layers = [value.double() for name, value in tap.values.items() if name.endswith(".self.weights")]
    rows = [[weights[:, head][is_real] for head in range(weights.size(1))] for weights in layers]
    scores = next(value for name, value in tap.values.items() if name.endswith(".self.scores"))
    visible = torch.isfinite(scores[:, 0])[is_real]
    return HeadDifferences(
        distances=tuple(tuple(_distances(weights, is_real)) for weights in layers),
        entropy=_mean([relative_entropy(head, visible) for heads in rows for head in heads]),
        divergence=_mean([jensen_shannon(*pair) for heads in rows for pair in combinations(heads, 2)]),
    )


def jensen_shannon(first: Float[Tensor, "N K"], second: Float[Tensor, "N K"]) -> float:
    """The mean Jensen–Shannon divergence between rows of weights in bits: 0 if they agree, 1 if they share no key."""
    middle = (first + second) / 2
    return float((_entropy(middle) - (_entropy(first) + _entropy(second)) / 2).mean())


def _entropy(weights: Float[Tensor, "N K"]) -> Float[Tensor, " N"]:
    return -torch.special.xlogy(weights, weights).sum(-1) / torch.log(torch.tensor(2.0, dtype=weights.dtype))


def _distances(weights: Float[Tensor, "B H Q K"], is_real: Bool[Tensor, "B Q"]) -> list[float]:
    """The mean of |query position − key position|, weighted by attention, for each head."""
    positions = torch.arange(weights.size(-1))
    apart = (positions[:, None] - positions[None]).abs()
    return [float(mean) for mean in (weights * apart).sum(-1).transpose(1, 2)[is_real].mean(0)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
