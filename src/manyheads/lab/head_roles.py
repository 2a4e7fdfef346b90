"""How heads differ: how far they look, how sharply, and how unlike one another they are."""

from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from manyheads.lab.lab_tasks import PAD
from manyheads.lab.probes import relative_entropy
from manyheads.lab.trial import Trained


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
        divergence=_mean([jensen_shannon(one, other) for heads in rows for one, other in combinations(heads, 2)]),
    )


def jensen_shannon(one: Float[Tensor, "N K"], other: Float[Tensor, "N K"]) -> float:
    """The mean Jensen–Shannon divergence between rows of weights in bits: 0 if they agree, 1 if they share no key."""
    middle = (one + other) / 2
    return float((_entropy(middle) - (_entropy(one) + _entropy(other)) / 2).mean())


def _entropy(weights: Float[Tensor, "N K"]) -> Float[Tensor, " N"]:
    return -torch.special.xlogy(weights, weights).sum(-1) / torch.log(torch.tensor(2.0, dtype=weights.dtype))


def _distances(weights: Float[Tensor, "B H Q K"], is_real: Bool[Tensor, "B Q"]) -> list[float]:
    """The mean of |query position − key position|, weighted by attention, for each head."""
    positions = torch.arange(weights.size(-1))
    apart = (positions[:, None] - positions[None]).abs()
    return [float(one) for one in (weights * apart).sum(-1).transpose(1, 2)[is_real].mean(0)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
