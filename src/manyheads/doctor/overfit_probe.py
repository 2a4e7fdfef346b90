"""Probes that train for seconds: can the recipe's model overfit one batch, also at the recipe's learning rate?

They train the recipe's model, without dropout or smoothing, on one batch of its sentences. A healthy model memorizes
them within a few dozen steps. The tokenizer is a small one, trained on part of the text.
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
from manyheads.errors import TrainingError
from manyheads.messages import _
from manyheads.model import ModelSettings, Transformer
from manyheads.model.device import pick_device
from manyheads.run import Recipe
from manyheads.tasks import TensorBatch
from manyheads.tasks.findings import Finding
from manyheads.text.tokens.tokenizer import PAD, Tokenizer, TokenizerSettings
from manyheads.training import Trainer, TrainSettings, learning_rate

_SAMPLE = 2000  # pairs
_VOCAB_SIZE = 2000
_BATCH_PAIRS = 8  # pairs
_LONGEST = 120  # characters of a side
_STEPS = 150
_WARMUP = 15
_PEAK_STEPS = 40  # including the warm-up
_MEMORIZED = 0.5  # nats per token: the batch is memorized
_STUCK = 0.3  # share of the first loss; below it, the model is learning
_SECONDS = 10.0  # time limit of one probe
_LOWER_RATES = (10.0, 100.0)  # divisors of the rate, to find one that works

Sentences = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Probe:
    """What the probes train: a model on one batch of sentences."""

    model: ModelSettings
    sources: Sequence[Sequence[int]]
    targets: Sequence[Sequence[int]]
    device: torch.device
    seed: int


@dataclass(frozen=True)
class LossCurve:
    """The loss at every step of a probe."""

    losses: tuple[float, ...]
    steps: int  # planned
    is_finite: bool = True

    @property
    def last(self) -> float:
        """The mean of the last three losses."""
        return fmean(self.losses[-3:])

    @property
    def is_memorized(self) -> bool:
        """Whether the batch is memorized."""
        return self.is_finite and (self.last <= 2 * _MEMORIZED or self.losses[-1] <= _MEMORIZED)

    @property
    def is_learning(self) -> bool:
        """Whether time ran out while the loss was falling."""
        return self.is_finite and len(self.losses) < self.steps and self.last <= 0.8 * self.losses[0]

    def summary(self) -> str:
        """Return the curve in figures."""
        n_steps = len(self.losses)
        if not self.is_finite:
            return _("the loss was not finite at step {n_steps}", n_steps=n_steps)
        figures = f"{self.losses[0]:.1f} → {self.losses[-1]:.2f}"
        return _("loss {figures} in {n_steps} steps", figures=figures, n_steps=n_steps)


def make_probe(recipe: Recipe, pairs: Iterable[tuple[str, str]]) -> Probe | None:
    """Choose and tokenize the batch; return None if there is no text to train on."""
    sample = [pair for pair in islice(pairs, _SAMPLE) if pair[0].strip() and pair[1].strip()]
    chosen = _choose_pairs(sample)
    if not chosen:
        return None
    settings = TokenizerSettings(kind="bpe", vocab_size=min(_VOCAB_SIZE, recipe.tokenizer.vocab_size))
    tokenizer = Tokenizer.train((line for pair in sample for line in pair), settings, recipe.seed)
    most = recipe.model.max_length - 1  # sentences are cut for a model with a very short maximum length
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
    """Check that the model can memorize one batch: a model that cannot will learn nothing else."""
    check = "overfit one batch"
    curve = overfit(probe, _safe_rate(probe.model.width), _STEPS, until=_MEMORIZED)
    count = len(probe.sources)
    message = _("{count} sentences, {summary}", count=count, summary=curve.summary())
    if curve.is_memorized:
        return Finding(check, "good", message + _(": memorized."))
    if curve.is_learning:
        message += _(" within {limit:.0f} s: it learns.", limit=_SECONDS)
        return Finding(check, "good", message)
    is_slow = curve.is_finite and curve.last <= _STUCK * curve.losses[0]
    return Finding(
        check,
        "warning" if is_slow else "bad",
        _("the model is slow to memorize one batch: {message}.", message=message)
        if is_slow
        else _("the model cannot memorize one batch: {message}.", message=message),
        (),
        _(
            'The model is at fault, not the data: start with a preset (model.preset = "tiny") and '
            'model.norm_placement = "pre", then change one setting at a time.'
        ),
    )


def check_learning_rate(probe: Probe, settings: TrainSettings) -> Finding:
    """Check that the model learns at the recipe's peak learning rate, after a much shorter warm-up."""
    check = "learning rate"
    peak = learning_rate(settings.warmup, settings, probe.model.width)
    curve = overfit(probe, peak, _PEAK_STEPS)
    # A low rate is harmless; a few steps cannot show whether it is too low.
    if curve.is_memorized or curve.is_learning or (peak <= _safe_rate(probe.model.width) and curve.is_finite):
        message = _(
            "training is stable at the recipe's peak rate of {peak:.1e}: {summary}.", peak=peak, summary=curve.summary()
        )
        return Finding(check, "good", message)
    curves = ((peak / divisor, overfit(probe, peak / divisor, _PEAK_STEPS)) for divisor in _LOWER_RATES)
    lower = next((rate for rate, curve in curves if curve.is_memorized), None)
    return Finding(
        check,
        "bad" if not curve.is_finite or curve.last > _STUCK * curve.losses[0] else "warning",
        _(
            "at the recipe's peak rate of {peak:.1e} the model cannot memorize one batch: {summary}.",
            peak=peak,
            summary=curve.summary(),
        ),
        (),
        _(
            "Lower train.learning_rate{example}, or lengthen train.warmup; "
            'model.norm_placement = "pre" tolerates higher rates.',
            example=_(" ({rate:.1e} worked here)", rate=lower) if lower else "",
        ),
    )


def overfit(probe: Probe, peak: float, steps: int, until: float = -math.inf) -> LossCurve:
    """Train on the batch for some steps, or until the loss is at most `until`, or until time is up."""
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
    """A training task that repeats one batch."""

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
        return F.cross_entropy(self.model.output.logits(hidden[is_real]), batch.target_output[is_real])

    def describe(self, plan: int) -> str:
        """Return a description of the batch."""
        return "one batch"


def _to_batch(probe: Probe) -> TensorBatch:
    batch = make_batch(probe.sources, probe.targets)
    source, read, written = (
        torch.from_numpy(ids).to(probe.device) for ids in (batch.source, batch.target_input, batch.target_output)
    )
    return TensorBatch(source, read, written, batch.n_tokens)


def _choose_pairs(sample: Sentences) -> Sentences:
    """Return a few short pairs with different sources: one source with two targets cannot be memorized."""
    pairs = sorted(dict(sample).items(), key=lambda pair: len(pair[0]) + len(pair[1]))
    start = max(0, min(len(pairs) // 4, len(pairs) - _BATCH_PAIRS))
    return [(source[:_LONGEST], target[:_LONGEST]) for source, target in pairs[start : start + _BATCH_PAIRS]]


def _safe_rate(width: int) -> float:
    """Return a learning rate at which every healthy model of that width trains."""
    return 2e-3 * math.sqrt(128 / width)
