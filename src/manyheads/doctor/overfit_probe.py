"""Short trainings on this machine that show, in seconds, whether a recipe's model learns at all and stays calm.

They train the recipe's own model, without dropout or smoothing, on a handful of its sentences over and over. A healthy
model knows them by heart after some dozen steps. The tokenizer is a small one, quickly learnt from a part of the text.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import fmean

import torch
from torch import Tensor
from torch.nn import functional as F

from manyheads.data import make_batch
from manyheads.doctor.findings import Finding
from manyheads.errors import TrainingError
from manyheads.model import ModelSettings, Transformer
from manyheads.model.device import pick_device
from manyheads.run import Recipe
from manyheads.tasks import TensorBatch
from manyheads.text.tokenizer import PAD, Tokenizer, TokenizerSettings
from manyheads.train import Trainer, TrainSettings, learning_rate

_SAMPLE = 2000  # pairs
_VOCAB_SIZE = 2000
_BATCH_PAIRS = 8  # pairs
_LONGEST = 120  # characters of a side
_STEPS = 150
_WARMUP = 15
_PEAK_STEPS = 40  # with the warm-up
_MEMORIZED = 0.5  # nats a token: the batch is known by heart
_STUCK = 0.3  # of the first loss: below it, learning is under way
_SECONDS = 10.0  # that one probe may take
_LOWER_RATES = (10.0, 100.0)  # what to divide the rate by, in search of one that works

Sentences = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Probe:
    """What the probes train: a model, and a handful of sentences."""

    model: ModelSettings
    sources: Sequence[Sequence[int]]
    targets: Sequence[Sequence[int]]
    device: torch.device
    seed: int


@dataclass(frozen=True)
class LossCurve:
    """How a probe went: the loss of every step, and whether it ended in something that is no number."""

    losses: tuple[float, ...]
    steps: int  # that it was to take
    is_finite: bool = True

    @property
    def last(self) -> float:
        """The mean of the last few losses."""
        return fmean(self.losses[-3:])

    @property
    def is_memorized(self) -> bool:
        """Whether the sentences are known by heart."""
        return self.is_finite and (self.last <= 2 * _MEMORIZED or self.losses[-1] <= _MEMORIZED)

    @property
    def is_learning(self) -> bool:
        """Whether the time was too short, but the loss is well on its way."""
        return self.is_finite and len(self.losses) < self.steps and self.last <= 0.8 * self.losses[0]

    def summary(self) -> str:
        """The curve in figures."""
        if not self.is_finite:
            return f"the loss was no longer a number at step {len(self.losses)}"
        return f"loss {self.losses[0]:.1f} → {self.losses[-1]:.2f} in {len(self.losses)} steps"


def make_probe(recipe: Recipe, pairs: Iterable[tuple[str, str]]) -> Probe | None:
    """Choose the handful and cut it into tokens; None where there is no text to train on."""
    sample = [pair for pair in islice(pairs, _SAMPLE) if pair[0].strip() and pair[1].strip()]
    chosen = _choose_pairs(sample)
    if not chosen:
        return None
    settings = TokenizerSettings(kind="bpe", vocab_size=min(_VOCAB_SIZE, recipe.tokenizer.vocab_size))
    tokenizer = Tokenizer.train((line for pair in sample for line in pair), settings, recipe.seed)
    most = recipe.model.max_length - 1  # a model that reads very little gets to see the beginnings
    model = replace(
        recipe.model,
        vocab_size=tokenizer.vocab_size,
        dropout=0.0,
        attention_dropout=0.0,
        feed_forward_dropout=0.0,
    )
    sources, targets = ([tokenizer.encode(pair[side])[:most] for pair in chosen] for side in (0, 1))
    return Probe(model, sources, targets, pick_device(recipe.device), recipe.seed)


def check_one_batch(probe: Probe) -> Finding:
    """Whether the model can learn a handful of sentences by heart: one that cannot will learn nothing else."""
    check = "overfit one batch"
    curve = overfit(probe, _safe_rate(probe.model.width), _STEPS, until=_MEMORIZED)
    message = f"{len(probe.sources)} sentences, {curve.summary()}"
    if curve.is_memorized:
        return Finding(check, "good", f"{message}: learnt by heart.")
    if curve.is_learning:
        return Finding(check, "good", f"{message}, when the {_SECONDS:.0f} s for it were over: it learns.")
    is_slow = curve.is_finite and curve.last <= _STUCK * curve.losses[0]
    return Finding(
        check,
        "warning" if is_slow else "bad",
        f"the model {'is slow to' if is_slow else 'cannot even'} learn one batch by heart: {message}.",
        (),
        'It is the model, not the data: begin with a preset (model.preset = "tiny") and model.norm_placement = "pre",'
        " then change one setting at a time. 模型结构有问题：请先换用预设模型，再逐项修改。",
    )


def check_learning_rate(probe: Probe, settings: TrainSettings) -> Finding:
    """Whether the model still learns when the rate climbs to the recipe's peak, after a much shorter warm-up."""
    check = "learning rate"
    peak = learning_rate(settings.warmup, settings, probe.model.width)
    curve = overfit(probe, peak, _PEAK_STEPS)
    # A low rate is no harm to a model; whether it is too low, a few steps cannot tell.
    if curve.is_memorized or curve.is_learning or (peak <= _safe_rate(probe.model.width) and curve.is_finite):
        return Finding(check, "good", f"at the recipe's peak rate of {peak:.1e} it stays calm: {curve.summary()}.")
    curves = ((peak / by, overfit(probe, peak / by, _PEAK_STEPS)) for by in _LOWER_RATES)
    lower = next((rate for rate, curve in curves if curve.is_memorized), None)
    advice = f" (train.learning_rate = {lower:.1e} worked here)" if lower else ""
    return Finding(
        check,
        "bad" if not curve.is_finite or curve.last > _STUCK * curve.losses[0] else "warning",
        f"at the recipe's peak rate of {peak:.1e} the model cannot learn a handful of sentences: {curve.summary()}.",
        (),
        f'Lower train.learning_rate{advice}, or lengthen train.warmup; model.norm_placement = "pre" bears higher rates.'
        " 学习率过高：请调低 train.learning_rate，或加长 train.warmup。",
    )


def overfit(probe: Probe, peak: float, steps: int, until: float = -math.inf) -> LossCurve:
    """Train on the handful so many steps, or until the loss is low enough, or until the time is up."""
    torch.manual_seed(probe.seed)
    model = Transformer(probe.model).to(probe.device)
    settings = TrainSettings(steps=steps, warmup=_WARMUP, learning_rate=peak, schedule="inverse-sqrt")
    trainer = Trainer(model, _OneBatchTask(model, _to_batch(probe)), settings, width=probe.model.width, seed=probe.seed)
    losses: list[float] = []
    started = time.monotonic()
    try:
        for step in trainer.run():
            losses.append(step.loss)
            has_diverged = step.loss > 3 * losses[0]
            if step.loss <= until or has_diverged or time.monotonic() - started > _SECONDS:
                break
    except TrainingError:
        return LossCurve((*losses, math.inf), steps, is_finite=False)
    return LossCurve(tuple(losses), steps)


@dataclass(frozen=True)
class _OneBatchTask:
    """The training task of one batch, again and again."""

    model: Transformer
    batch: TensorBatch

    def plan(self, epoch: int) -> list[int]:
        return [epoch]

    def make(self, plan: int, seed: int) -> TensorBatch:
        return self.batch

    def loss(self, batch: TensorBatch, step: int) -> Tensor:
        hidden = self.model.hidden(
            batch.source,
            batch.target_input,
            source_is_real=batch.source != PAD,
            target_is_real=batch.target_input != PAD,
        )
        is_real = batch.target_output != PAD
        return F.cross_entropy(F.linear(hidden[is_real], self.model.output.weight), batch.target_output[is_real])

    def describe(self, plan: int) -> str:
        """All there is."""
        return "one batch"


def _to_batch(probe: Probe) -> TensorBatch:
    batch = make_batch(probe.sources, probe.targets)
    source, read, written = (
        torch.from_numpy(ids).to(probe.device) for ids in (batch.source, batch.target_input, batch.target_output)
    )
    return TensorBatch(source, read, written, batch.n_tokens)


def _choose_pairs(sample: Sentences) -> Sentences:
    """A few shortish pairs with different sources: the same source with two targets cannot be learnt."""
    pairs = sorted(dict(sample).items(), key=lambda pair: len(pair[0]) + len(pair[1]))
    start = max(0, min(len(pairs) // 4, len(pairs) - _BATCH_PAIRS))
    return [(source[:_LONGEST], target[:_LONGEST]) for source, target in pairs[start : start + _BATCH_PAIRS]]


def _safe_rate(width: int) -> float:
    """A rate that every healthy model of that width bears."""
    return 2e-3 * math.sqrt(128 / width)
