"""How much depends on each head, asked twice: what the gradient says, and what is lost without it.

Gradient importance (Michel 2019): I_h = E_x |∂L(x)/∂ξ_h| at ξ = 1, where ξ_h scales the head's output and L(x) is the
task's own loss summed over the tokens of example x; then each attention's heads are divided by their ℓ2 norm together,
as in the paper. Measured ablation: the task's own score with the head silent, against the whole model on the same
rows. Ablations do not add up, so the effect of a set stands beside the sum of its heads' own.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.lens.heads import Head, ablation_gates, find_heads, heads_of
from manyheads.lens.row_sample import Sample
from manyheads.metrics import Change, Tally, compare_tallies, confidence_interval, resample_matrix, resamples
from manyheads.model import gated
from manyheads.tasks import Progress, Task


@dataclass(frozen=True)
class GradientImportance:
    """What the gradient says of one head; 95 % of resamples of the examples between low and high."""

    head: Head
    raw: float  # per token, before each attention is normalized
    value: float
    low: float
    high: float
    n_examples: int


@dataclass(frozen=True)
class Ablation:
    """The score without some heads."""

    heads: tuple[Head, ...]
    change: Change


@dataclass(frozen=True)
class Agreement:
    """Spearman's ρ of two rankings of the same heads; 95 % of resamples of the heads between low and high."""

    value: float
    low: float
    high: float
    n_heads: int


def gradient_importance(
    task: Task, sample: Sample, progress: Progress = lambda done: None, n_resamples: int = 1000
) -> list[GradientImportance]:
    """Of every head, over the examples of a sample: of texts in rows, a row is an example."""
    task.module.eval()
    training_task, device = sample.training_task(task), task.model.device
    found: list[NDArray[np.float64]] = []
    n_tokens = 0
    for number, plan in enumerate(sample.plans):
        batch = training_task.make(plan, number)
        gates = {one.name: _RowGates(one.heads.n_heads, device) for one in task.model.attentions()}
        with gated(task.model, gates), torch.enable_grad():
            loss = training_task.loss(batch, 0) * batch.n_tokens
        made = [gate.made for gate in gates.values()]
        gradients = torch.autograd.grad(loss, [one for one in made if one is not None])
        found.append(torch.cat(gradients, dim=1).abs().double().cpu().numpy())
        n_tokens += batch.n_tokens
        progress(1)
    examples = np.concatenate(found)
    heads = heads_of(task.model)
    borders = np.cumsum([attention.heads.n_heads for attention in task.model.attentions()])[:-1]
    draws = resample_matrix(len(examples), n_resamples)
    low, high = confidence_interval(_normalized(draws @ examples, borders))
    raw, value = examples.sum(0) / n_tokens, _normalized(examples.sum(0), borders)
    return [
        GradientImportance(
            head=head,
            raw=float(raw[at]),
            value=float(value[at]),
            low=float(low[at]),
            high=float(high[at]),
            n_examples=len(examples),
        )
        for at, head in enumerate(heads)
    ]


@dataclass
class _RowGates:
    """Gates of 1 for every row of a pass, made when it is known how many rows there are: each has its own gradient."""

    n_heads: int
    device: torch.device
    made: Tensor | None = None

    def __call__(self, n_rows: int) -> Tensor:
        self.made = torch.ones(n_rows, self.n_heads, device=self.device, requires_grad=True)
        return self.made


def _normalized(sums: NDArray[np.float64], borders: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each attention's heads divided by their ℓ2 norm; all zeros stay so."""
    parts = np.split(sums, borders, axis=-1)
    norms = [np.linalg.norm(part, axis=-1, keepdims=True) for part in parts]
    return np.concatenate([part / np.where(norm > 0, norm, 1.0) for part, norm in zip(parts, norms, strict=True)], -1)


def ablate(
    task: Task,
    sample: Sample,
    sets: Iterable[Sequence[Head | str]],
    whole: Tally | None = None,
    progress: Callable[[Ablation], None] = lambda done: None,
) -> list[Ablation]:
    """The task's score without each of these sets of heads, against the whole model on the same rows."""
    whole = whole or sample.tally(task)
    found = []
    for wanted in sets:
        heads = find_heads(task.model, wanted)
        tally = sample.tally(task, ablation_gates(task.model, heads))
        found.append(Ablation(tuple(heads), compare_tallies(tally, whole)))
        progress(found[-1])
    return found


def single_heads(task: Task) -> list[list[Head]]:
    """Sets of one head each, to ablate."""
    return [[head] for head in heads_of(task.model)]


def whole_attentions(task: Task) -> list[list[Head]]:
    """Sets of all the heads of an attention."""
    return [find_heads(task.model, [attention.name]) for attention in task.model.attentions()]


def sum_of_single(joint: Ablation, singles: Iterable[Ablation]) -> float:
    """What a set would cost if the costs of its heads added up."""
    costs = {one.heads[0]: one.change.cost for one in singles if len(one.heads) == 1}
    return sum(costs[head] for head in joint.heads)


def rank_agreement(first: Sequence[float], second: Sequence[float], n_resamples: int = 1000) -> Agreement:
    """How far two measures put the same heads into the same order: 1 entirely, 0 not at all."""
    if len(first) != len(second) or len(first) < 3:
        raise ValueError("Agreement needs two measures of the same heads, and at least three heads.")
    pairs = np.array([first, second], dtype=np.float64)
    drawn = [_spearman(np.repeat(pairs, draw, axis=1)) for draw in resamples(len(first), n_resamples)]
    low, high = confidence_interval(drawn)
    return Agreement(_spearman(pairs), float(low), float(high), len(first))


def _spearman(pairs: NDArray[np.float64]) -> float:
    """Pearson's correlation of ranks; 0 where one of the measures is the same for all."""
    first, second = (_ranks(row) - (len(row) - 1) / 2 for row in pairs)
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 for the smallest; those that are equal share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[which]
