"""The importance of heads by the gradient and by the change of a score, and how far two rankings of heads agree.

`ablated_probability` measures importance by log-probability, which is finer than a score: a score changes only where an
answer does.

Gradient importance (Michel 2019) is I_h = E_x |∂L(x)/∂ξ_h| at ξ = 1, where ξ_h scales the head's output and L(x) is the
task's loss summed over the tokens of example x. The heads of each attention are then divided by their joint ℓ2 norm, as
in the paper. It takes one pass for all heads, but it is the slope where the head is whole, which can say little about
what is lost without the head.

`ablate` returns the change of the task's score without heads, on the same rows. Ablations do not add up, so the effect
of ablating several heads together is reported beside the sum of their single effects.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.lens.ablated_probability import Ablated, LostProbability
from manyheads.lens.heads import Head, ablation_gates, find_heads, heads_of
from manyheads.lens.scored_rows import Sample
from manyheads.messages import _
from manyheads.metrics import Change, Tally, compare_tallies, confidence_interval, resample_matrix, resamples
from manyheads.model import gated
from manyheads.tasks import Progress, Task

_MEASURES: dict[Ablated, str] = {"zero": "importance", "mean": "importance_mean", "resample": "importance_resample"}


@dataclass(frozen=True)
class GradientImportance:
    """The gradient importance of one head, with the 95 % interval of a bootstrap over examples."""

    head: Head
    raw: float  # per token, before each attention is normalized
    value: float
    low: float
    high: float
    n_examples: int


@dataclass(frozen=True)
class HeadImportance:
    """The importance of one head: by each way to ablate it, and by the gradient."""

    lost: Mapping[Ablated, LostProbability]
    gradient: GradientImportance

    @property
    def values(self) -> dict[str, float]:
        """The importance by the name of each measure."""
        return {_MEASURES[way]: lost.value for way, lost in self.lost.items()} | {"gradient": self.gradient.value}

    def to_json(self) -> dict[str, float]:
        """Return the importance by zero ablation, with its interval."""
        lost = self.lost["zero"]
        return {"value": lost.value, "low": lost.low, "high": lost.high}


@dataclass(frozen=True)
class Ablation:
    """The change of the score without these heads."""

    heads: tuple[Head, ...]
    change: Change


@dataclass(frozen=True)
class Agreement:
    """Spearman's ρ of two rankings of the same heads, with the 95 % interval of a bootstrap over heads."""

    value: float
    low: float
    high: float
    n_heads: int


def gradient_importance(
    task: Task, sample: Sample, progress: Progress = lambda done: None, n_resamples: int = 1000
) -> list[GradientImportance]:
    """Return the gradient importance of every head over the examples of a sample; an example is one row."""
    gradients, n_tokens = _head_gradients(task, sample, progress)
    borders = np.cumsum([attention.heads.n_heads for attention in task.model.attentions()])[:-1]
    draws = resample_matrix(len(gradients), n_resamples)
    lows, highs = confidence_interval(_normalized(draws @ gradients, borders))
    raw, values = gradients.sum(0) / n_tokens, _normalized(gradients.sum(0), borders)
    return [
        GradientImportance(
            head=head,
            raw=float(raw[index]),
            value=float(values[index]),
            low=float(lows[index]),
            high=float(highs[index]),
            n_examples=len(gradients),
        )
        for index, head in enumerate(heads_of(task.model))
    ]


def _head_gradients(task: Task, sample: Sample, progress: Progress) -> tuple[NDArray[np.float64], int]:
    """Return |∂L(x)/∂ξ_h| of every example and head, and the number of tokens."""
    task.module.eval()
    training_task, device = sample.training_task(task), task.model.device
    gradients: list[NDArray[np.float64]] = []
    n_tokens = 0
    for number, plan in enumerate(sample.plans):
        batch = training_task.make(plan, number)
        gates = {attention.name: _RowGates(attention.heads.n_heads, device) for attention in task.model.attentions()}
        with gated(task.model, gates), torch.enable_grad():
            loss = training_task.loss(batch, 0) * batch.n_tokens
        made = [gate.made for gate in gates.values()]
        by_attention = torch.autograd.grad(loss, [gate for gate in made if gate is not None])
        gradients.append(torch.cat(by_attention, dim=1).abs().cpu().double().numpy())
        n_tokens += batch.n_tokens
        progress(1)
    return np.concatenate(gradients), n_tokens


@dataclass
class _RowGates:
    """Makes gates of 1 for every row of a pass, so that each row has its own gradient."""

    n_heads: int
    device: torch.device
    made: Tensor | None = None

    def __call__(self, n_rows: int) -> Tensor:
        self.made = torch.ones(n_rows, self.n_heads, device=self.device, requires_grad=True)
        return self.made


def _normalized(sums: NDArray[np.float64], borders: NDArray[np.int64]) -> NDArray[np.float64]:
    """Divide the heads of each attention by their ℓ2 norm; zeros stay zeros."""
    parts = np.split(sums, borders, axis=-1)
    norms = [np.linalg.norm(part, axis=-1, keepdims=True) for part in parts]
    return np.concatenate([part / np.where(norm > 0, norm, 1.0) for part, norm in zip(parts, norms, strict=True)], -1)


def ablate(
    task: Task,
    sample: Sample,
    head_sets: Iterable[Sequence[Head | str]],
    baseline: Tally | None = None,
    progress: Callable[[Ablation], None] = lambda ablation: None,
) -> list[Ablation]:
    """Return the change of the score without each of these sets of heads, on the same rows."""
    baseline = baseline or sample.tally(task)
    ablations = []
    for head_set in head_sets:
        heads = find_heads(task.model, head_set)
        tally = sample.tally(task, ablation_gates(task.model, heads))
        ablations.append(Ablation(tuple(heads), compare_tallies(tally, baseline)))
        progress(ablations[-1])
    return ablations


def single_heads(task: Task) -> list[list[Head]]:
    """Return one set per head, to ablate."""
    return [[head] for head in heads_of(task.model)]


def whole_attentions(task: Task) -> list[list[Head]]:
    """Return one set per attention, to ablate."""
    return [find_heads(task.model, [attention.name]) for attention in task.model.attentions()]


def sum_of_single(joint: Ablation, singles: Iterable[Ablation]) -> float:
    """Return the sum of the costs of a set's heads when they are ablated one at a time."""
    costs = {ablation.heads[0]: ablation.change.cost for ablation in singles if len(ablation.heads) == 1}
    return sum(costs[head] for head in joint.heads)


def rank_agreement(first: Sequence[float], second: Sequence[float], n_resamples: int = 1000) -> Agreement:
    """Return Spearman's ρ between two measures of the same heads."""
    if len(first) != len(second) or len(first) < 3:
        raise ValueError(_("Agreement needs two measures of the same heads, and at least three heads."))
    pairs = np.array([first, second], dtype=np.float64)
    resampled = [_spearman(np.repeat(pairs, draw, axis=1)) for draw in resamples(len(first), n_resamples)]
    low, high = confidence_interval(resampled)
    return Agreement(_spearman(pairs), float(low), float(high), len(first))


def _spearman(pairs: NDArray[np.float64]) -> float:
    """Return Pearson's correlation of the ranks; 0 if all values of a measure are equal."""
    first, second = (_ranks(row) - (len(row) - 1) / 2 for row in pairs)
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 0 for the smallest; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]
