"""Trials that train a model and look at its scores: size, dropout, smoothing, embeddings, length, decoding."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor

from manyheads.decode import DecodeSettings, Hypothesis, generate
from manyheads.lab.lab_tasks import BOS, EOS, MASK, PAD, LabBatch, LabTask
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, count_parameters, counted_logits, make_model, train_model
from manyheads.model import Transformer
from manyheads.model.evaluation import evaluating
from manyheads.model.positions import SinusoidalPositions

_TARGET = 1.0  # nats
_N_POSITIONS = 16
_N_ROWS, _N_LONGER_ROWS = 256, 128

_N_SENTENCES = 256
_N_DRAWS = 4


def scores(setup: Setup, seed: int) -> dict[str, float]:
    """Accuracy, loss, and the number of parameters."""
    trained = train_model(setup, seed)
    return {**trained.outcome(), "parameters": count_parameters(trained.model)}


def tied_embeddings(setup: Setup, seed: int) -> dict[str, float]:
    """Scores on fewer rows, and thousands of parameters."""
    trained = train_model(setup, seed)
    assert isinstance(trained.model, Transformer)
    return {**trained.outcome(_N_ROWS), "parameters": trained.model.n_parameters / 1000}


def longer_sequences(setup: Setup, seed: int) -> dict[str, float]:
    """Scores on sequences as long as in training, and on longer ones."""
    trained = train_model(setup, seed)
    on_longer = replace(trained, setup=replace(setup, test_task=setup.extra["longer"]))
    longer = on_longer.test_scores(_N_LONGER_ROWS)
    return {
        **trained.outcome(_N_ROWS),
        "longer_accuracy": longer["accuracy"],
        "longer_loss": longer["loss"],
    }


def dropout(setup: Setup, seed: int) -> dict[str, float]:
    """Scores, and the loss of training rows."""
    trained = train_model(setup, seed)
    return {**trained.outcome(), "training_loss": _training_loss(trained)}


def _training_loss(trained: Trained) -> float:
    """The loss of training rows without dropout."""
    batch = trained.setup.task.batch(256, Generator().manual_seed(8_000_000))
    with evaluating(trained.model):
        logits = counted_logits(trained.model, batch)
        return float(F.cross_entropy(logits.double(), batch.expected[batch.is_counted]))


def embedding_scale(setup: Setup, seed: int) -> dict[str, float]:
    """Scores and speed of learning, and the length of embeddings against that of sinusoids before training."""
    model = make_model(setup, seed)
    assert isinstance(model, Transformer)
    trained = train_model(setup, seed)
    return {**trained.outcome(), "steps": trained.steps_to(_TARGET), "ratio": _magnitude_ratio(model)}


@torch.no_grad()
def _magnitude_ratio(model: Transformer) -> float:
    """The length of the embeddings as the model adds them, divided by that of sinusoids of its width."""
    embedding = model.source_embedding
    tokens = embedding.scale * embedding.token_embedding.weight.norm(dim=-1).mean()
    sinusoids = SinusoidalPositions(model.settings.width)(torch.arange(_N_POSITIONS)[None]).norm(dim=-1).mean()
    return float(tokens / sinusoids)


def label_smoothing(setup: Setup, seed: int) -> dict[str, float]:
    """Scores, calibration and confidence, and the target that the loss sets for the right class of five."""
    trained = train_model(setup, seed)
    parts = list(trained.test_logits())
    logits, expected = (torch.cat(part) for part in zip(*parts, strict=True))
    return {
        **trained.outcome(),
        "calibration_error": calibration_error(logits.softmax(-1), expected),
        "confidence": float(logits.double().softmax(-1).amax(-1).mean()),
        "target": _target_of_five(setup),
    }


def spread_over_all(logits: Tensor, expected: Tensor, smoothing: float) -> Tensor:
    """Label smoothing as PyTorch defines it: ε / V for every class, the right one included."""
    return F.cross_entropy(logits, expected, label_smoothing=smoothing)


def _target_of_five(setup: Setup) -> float:
    """The target probability of the right class of five, read off the gradient of the loss: p − target."""
    logits = torch.zeros(1, 5, dtype=torch.double, requires_grad=True)
    setup.loss(logits, torch.tensor([2]), setup.smoothing).backward()
    assert logits.grad is not None
    return float(1 / 5 - logits.grad[0, 2])


def calibration_error(probabilities: Float[Tensor, "N V"], expected: Int[Tensor, " N"], n_bins: int = 10) -> float:
    """The expected calibration error (Naeini 2015): |confidence − accuracy| of equally wide bins, weighted by size."""
    confidence, predicted = probabilities.double().max(-1)
    is_right = (predicted == expected).double()
    bins = (confidence * n_bins).long().clamp(max=n_bins - 1)
    gaps = torch.zeros(n_bins, dtype=torch.double).index_add_(0, bins, confidence - is_right)
    return float(gaps.abs().sum() / len(expected))


def decoding_method(setup: Setup, seed: int) -> dict[str, float]:
    """Exact matches, log-probability and variety of translations; the arms share one model a seed."""
    assert isinstance(setup.task, Hashable)
    trained = _trained(tuple(setup.model.items()), setup.task, setup.steps, setup.n_rows, setup.learning_rate, seed)
    exact, log_probability, distinct = [], [], []
    for batch in trained.test_batches(_N_SENTENCES):
        references = [tuple(id for id in row if id not in (PAD, EOS)) for row in batch.expected.tolist()]
        draws = [_decode(trained.model, batch, setup.extra, draw) for draw in range(1, 1 + _N_DRAWS)]
        for drawn in draws:
            exact += [found.ids == reference for found, reference in zip(drawn, references, strict=True)]
            log_probability += [found.log_probability for found in drawn]
        distinct += [len({found.ids for found in outputs}) / _N_DRAWS for outputs in zip(*draws, strict=True)]
    return {"exact": fmean(exact), "log_probability": fmean(log_probability), "distinct": fmean(distinct)}


@lru_cache(maxsize=8)
def _trained(
    model: Sequence[tuple[str, Any]], task: LabTask, steps: int, n_rows: int, learning_rate: float, seed: int
) -> Trained:
    """The model of a seed, which all arms share: they differ only in how they decode."""
    setup = Setup(model=dict(model), task=task, steps=steps, n_rows=n_rows, learning_rate=learning_rate)
    return train_model(setup, seed)


def _decode(model: torch.nn.Module, batch: LabBatch, options: Mapping[str, Any], draw: int) -> list[Hypothesis]:
    assert isinstance(model, Transformer)
    source: Tensor | None = batch.source
    assert source is not None
    settings = DecodeSettings(**options, seed=draw)
    hypotheses = generate(model, source, source != PAD, bos=BOS, eos=EOS, forbidden=(PAD, MASK), settings=settings)
    return [found[0] for found in hypotheses]
