"""Greedy, beam search and sampling, on one trained model a seed."""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from manyheads.decode import DecodeSettings, Hypothesis, generate
from manyheads.lab.lab_tasks import BOS, EOS, MASK, PAD, LabBatch, LabTask
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, train_model
from manyheads.model import Transformer

_N_SENTENCES = 256
_N_DRAWS = 4


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
