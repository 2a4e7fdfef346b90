"""The importance of heads by ablation: how much log-probability the answers to many texts lose without each head.

The answer is the reference of a row where it has one, as a translation has, the rest of a text that a language model
continues, and otherwise the model's own answer. An ablated head is replaced in one of three ways:

zero        its output is 0. No text has such an output, so the layers above may break for this reason alone.
mean        its mean output over all positions of all texts: what it says of no text in particular.
resample    its output at the same position of another text, or at the last position of a shorter one: what it says,
            but of another text (Chan 2022).

All copies of a text, one without each head, are computed in one forward pass. Tests compare this with one head at a
time.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from manyheads.errors import DataError
from manyheads.lens.heads import Head, heads_of
from manyheads.lens.interventions import without_each_head
from manyheads.messages import _
from manyheads.metrics import confidence_interval, resample_matrix
from manyheads.model import gated
from manyheads.model.attention import Replacement
from manyheads.tasks import GenerativeTask, ModelInput, Progress, Task
from manyheads.tasks.lens_examples import Example
from manyheads.tasks.lens_output import LensProbe
from manyheads.text.reading.readers import Row

Ablated = Literal["zero", "mean", "resample"]
WAYS: tuple[Ablated, ...] = ("zero", "mean", "resample")
_SEED = 1  # of the order of texts: each is resampled from the one before it
_MAX_COPIES = 3_200  # of texts in a survey, for each way to ablate: 100 texts of a model with 32 heads

Outputs = Mapping[str, Float[Tensor, "H Q E"]]  # of the heads of each attention at one text


@dataclass(frozen=True)
class LostProbability:
    """The log-probability that an answer loses without a head, in nats, with a 95 % bootstrap interval over texts."""

    head: Head
    value: float
    low: float
    high: float
    n_texts: int


@dataclass(frozen=True)
class AnsweredText:
    """One text with the answer whose probability is measured."""

    model_input: ModelInput
    probe: LensProbe


def answered_texts(task: Task, rows: Iterable[Row], n_texts: int | None = None) -> list[AnsweredText]:
    """Return the texts of rows with their answers, at most `n_texts`; those too long for the model are left out.

    Raises `DataError` if fewer than two are left.
    """
    inputs = islice(_inputs(task, rows), n_texts)
    texts = [AnsweredText(model_input, task.lens_probe(model_input)) for model_input in inputs]
    if len(texts) < 2:
        raise DataError(
            _("{n_texts} texts can be measured; at least 2 are needed. The others are too long.", n_texts=len(texts))
        )
    return texts


def _inputs(task: Task, rows: Iterable[Row]) -> Iterator[ModelInput]:
    for row in rows:
        for example in task.lens_examples.from_row(row):
            with suppress(DataError):
                yield _with_answer(task, example)


def _with_answer(task: Task, example: Example) -> ModelInput:
    source = example.texts[0].text
    if len(example.texts) > 1:
        return task.model_input(source, example.texts[1].text)
    asked = task.lens_examples.suggestion(task, source)
    return task.model_input(asked, source.removeprefix(asked) if isinstance(task, GenerativeTask) else None)


def affordable(n_texts: int, n_heads: int) -> int:
    """Return how many of these texts a survey measures: fewer for a model with many heads."""
    return min(n_texts, max(20, _MAX_COPIES // n_heads))


def lost_probabilities(
    task: Task, texts: Sequence[AnsweredText], ways: Sequence[Ablated] = WAYS, progress: Progress = lambda done: None
) -> dict[Ablated, list[LostProbability]]:
    """Return how much log-probability answers lose without each head, on average over texts, for each way to ablate.

    `progress` is called with 1 for each text and way. Callers that share the model hold a lock, as in `interventions`.
    """
    losses = losses_of_texts(task, texts, ways, progress)
    draws = resample_matrix(len(texts)) / len(texts)
    return {way: _summarized(heads_of(task.model), losses[way], draws) for way in ways}


def _summarized(
    heads: Sequence[Head], losses: NDArray[np.float64], draws: NDArray[np.float64]
) -> list[LostProbability]:
    lows, highs = confidence_interval(draws @ losses)
    summaries = zip(heads, losses.mean(0).tolist(), lows.tolist(), highs.tolist(), strict=True)
    return [LostProbability(*summary, n_texts=len(losses)) for summary in summaries]


def losses_of_texts(
    task: Task, texts: Sequence[AnsweredText], ways: Sequence[Ablated] = WAYS, progress: Progress = lambda done: None
) -> dict[Ablated, NDArray[np.float64]]:
    """Return texts × heads: the log-probability that each answer loses without each head."""
    if len(texts) < 2:
        raise ValueError("Two texts are needed: a head is resampled from another text.")
    losses = {way: np.empty((len(texts), len(heads_of(task.model)))) for way in ways}
    means = _means(task, texts) if "mean" in ways else {}
    order = list(range(len(texts)))
    random.Random(_SEED).shuffle(order)
    before = _record(task, texts[order[-1]])[1]
    for number in order:
        text = texts[number]
        whole, outputs = _record(task, text)
        stand_ins: dict[Ablated, Mapping[str, Replacement]] = {
            "zero": {},
            "mean": {name: partial(_constant, mean) for name, mean in means.items()},
            "resample": {name: partial(_same_positions, other) for name, other in before.items()},
        }
        for way in ways:
            without = without_each_head(
                task.model, text.model_input, text.probe.log_probabilities, replacements=stand_ins[way]
            )
            losses[way][number] = whole - np.array(without)
            progress(1)
        before = outputs
    return losses


def _constant(mean: Tensor, heads: Tensor) -> Tensor:
    return mean


def _same_positions(other: Float[Tensor, "H P E"], heads: Float[Tensor, "B H Q E"]) -> Float[Tensor, "H Q E"]:
    positions = torch.arange(heads.size(2), device=heads.device).clamp(max=other.size(1) - 1)
    return other[:, positions]


def _means(task: Task, texts: Iterable[AnsweredText]) -> Outputs:
    """Return the mean output of every head over all positions of all texts."""
    sums: dict[str, Tensor] = {}
    n_positions: dict[str, int] = {}
    for text in texts:
        for name, outputs in _record(task, text)[1].items():
            sums[name] = sums.get(name, 0) + outputs.sum(1, keepdim=True)
            n_positions[name] = n_positions.get(name, 0) + outputs.size(1)
    return {name: total / n_positions[name] for name, total in sums.items()}


def _record(task: Task, text: AnsweredText) -> tuple[float, Outputs]:
    """Return the log-probability of the answer with all heads, and the outputs of the heads."""
    recorders = {attention.name: _Recorder() for attention in task.model.attentions()}
    gates = {
        attention.name: torch.ones(attention.heads.n_heads, device=task.model.device)
        for attention in task.model.attentions()
    }
    with gated(task.model, gates, recorders):
        whole = float(text.probe.log_probabilities(1)[0])
    return whole, {name: torch.cat(recorder.outputs, dim=1) for name, recorder in recorders.items()}


@dataclass
class _Recorder:
    """A replacement for gates of 1, which changes nothing and keeps the outputs of each window of a text."""

    outputs: list[Tensor] = field(default_factory=list)

    def __call__(self, heads: Float[Tensor, "B H Q E"]) -> Float[Tensor, "B H Q E"]:
        self.outputs.append(heads[0])
        return heads
