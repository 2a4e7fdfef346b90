"""Short trainings on this machine that show, in seconds, whether a recipe's model learns at all and stays calm.

They use the recipe's own model and the real training loop; only the tokenizer is learnt from a part of the text.
"""

import math
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from manyheads.data import Pairs
from manyheads.doctor.findings import Finding
from manyheads.errors import TrainingError
from manyheads.model import Transformer
from manyheads.model.device import pick_device
from manyheads.recipe import Recipe
from manyheads.tasks import Seq2SeqLesson
from manyheads.text.tokenizer import Tokenizer
from manyheads.train import Trainer, learning_rate

_SAMPLE = 4000  # pairs
_BY_HEART = 8  # pairs
_STEPS = 150
_LEARNT = 0.3  # nats a token: the batch is known by heart
_CALM_STEPS = 60
_SECONDS = 15.0  # that one probe may take
_BLOWN_UP = 1.0  # nats above the lowest loss
_LOWER_RATES = (3.0, 10.0, 100.0)  # what to divide the rate by, in search of one that stays calm

Sentences = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Patient:
    """What the probes train: a recipe, and a sample of its text as pieces."""

    recipe: Recipe
    tokenizer: Tokenizer
    sample: Sentences


def admit(recipe: Recipe, pairs: Iterable[tuple[str, str]]) -> Patient | None:
    """Learn a tokenizer from a part of the text; None where there is no text to train on."""
    sample = [pair for pair in islice(pairs, _SAMPLE) if pair[0].strip() and pair[1].strip()]
    if not sample:
        return None
    tokenizer = Tokenizer.learn((line for pair in sample for line in pair), recipe.tokenizer, recipe.seed)
    model = replace(recipe.model, vocabulary=tokenizer.vocabulary)
    return Patient(replace(recipe, model=model), tokenizer, sample)


def check_one_batch(patient: Patient) -> Finding:
    """Whether the model can learn a handful of sentences by heart: one that cannot will learn nothing else."""
    check = "one batch by heart"
    recipe = patient.recipe
    calm = replace(recipe.model, dropout=0.0, attention_dropout=0.0, feed_forward_dropout=0.0)
    certain = replace(recipe.task, smoothing=0.0, consistency=0.0)
    train = replace(
        recipe.train, steps=_STEPS, warmup=10, learning_rate=_sane_rate(calm.width), schedule="inverse-sqrt",
        batch_tokens=1_000_000, accumulate=1, weight_decay=0.0, clip=1.0, ema=0.0,
    )  # fmt: skip
    subject = replace(recipe, model=calm, task=certain, train=train)
    with _trainer(replace(patient, recipe=subject, sample=_handful(patient.sample))) as trainer:
        losses, fault = _losses(trainer, until=_LEARNT)
    steps = len(losses)
    if losses and losses[-1] <= _LEARNT:
        return Finding(
            check, "good", f"{_BY_HEART} sentences learnt in {steps} steps: loss {losses[0]:.1f} → {losses[-1]:.2f}."
        )
    told = fault or f"after {steps} steps on the same {_BY_HEART} sentences the loss is {losses[-1]:.2f}, not below {_LEARNT}."
    if not fault and steps < _STEPS and losses[-1] < 0.7 * losses[0]:
        return Finding(
            check, "good", f"{steps} steps in {_SECONDS:.0f} s, loss {losses[0]:.1f} → {losses[-1]:.2f} and falling: it learns."
        )
    return Finding(
        check,
        "bad",
        f"The model cannot even learn one batch by heart: {told}",
        (),
        "Something is wrong with the model, not with the data: try a preset (model.preset = \"tiny\"), norm_place ="
        ' "pre", positions other than "none", separate projections. 模型结构有问题：请先换用预设模型再逐项修改。',
    )


def check_rate(patient: Patient) -> Finding:
    """Whether training stays calm when the learning rate climbs to the recipe's peak."""
    check = "learning rate"
    train = patient.recipe.train
    peak = learning_rate(train.warmup, train, patient.recipe.model.width)
    fault = _excitement(patient, peak)
    if fault is None:
        return Finding(check, "good", f"calm for {_CALM_STEPS} steps up to the peak rate of {peak:.1e}.")
    calmer = next((peak / by for by in _LOWER_RATES if _excitement(patient, peak / by) is None), None)
    advice = f"train.learning_rate = {calmer:.1e} stayed calm" if calmer else "even a hundredth of it did not stay calm"
    return Finding(
        check,
        "bad",
        f"at a peak rate of {peak:.1e} training blows up: {fault}",
        (),
        f"Lower train.learning_rate or lengthen train.warmup ({advice}); model.norm_place = \"pre\" bears higher rates."
        " 学习率过高：请调低 train.learning_rate 或加长 train.warmup。",
    )


def _excitement(patient: Patient, peak: float) -> str | None:
    """What went wrong on the way to a rate and at it; None if nothing did."""
    recipe = patient.recipe
    train = replace(
        recipe.train, steps=_CALM_STEPS, warmup=_CALM_STEPS // 2, learning_rate=peak, schedule="inverse-sqrt",
        batch_tokens=min(1000, recipe.train.batch_tokens), accumulate=1, ema=0.0,
    )  # fmt: skip
    with _trainer(replace(patient, recipe=replace(recipe, train=train))) as trainer:
        losses, fault = _losses(trainer)
    return fault or blow_up(losses)


def blow_up(losses: Sequence[float]) -> str | None:
    """In what way losses went up and stayed up; None where they did not. Single batches may be hard: five count."""
    if len(losses) < 10:
        return None
    means = [sum(losses[start : start + 5]) / 5 for start in range(len(losses) - 4)]
    lowest, last = min(means), means[-1]
    if last > lowest + _BLOWN_UP:
        return f"the loss fell to {lowest:.1f} and rose to {last:.1f}."
    if last > losses[0]:
        return f"the loss began at {losses[0]:.1f} and stands at {last:.1f}."
    return None


def _losses(trainer: "Trainer[object]", until: float = -math.inf) -> tuple[list[float], str]:
    """The loss of every step, until it is low enough or the time is up; and what stopped training, if anything."""
    started, losses = time.monotonic(), []
    try:
        for step in trainer.run():
            losses.append(step.loss)
            if step.loss <= until or time.monotonic() - started > _SECONDS:
                break
    except TrainingError:
        return losses, f"the loss is no longer a number at step {len(losses) + 1}."
    return losses, ""


@contextmanager
def _trainer(patient: Patient) -> "Iterator[Trainer[object]]":
    """A trainer of a new model on the patient's sample."""
    recipe = patient.recipe
    with tempfile.TemporaryDirectory() as folder:
        Pairs.write(Path(folder), patient.sample, patient.tokenizer, recipe.model.max_length)
        torch.manual_seed(recipe.seed)
        model = Transformer(recipe.model).to(pick_device(recipe.device))
        lesson = Seq2SeqLesson(
            model=model,
            pairs=Pairs.open(Path(folder)),
            tokenizer=patient.tokenizer,
            settings=recipe.task,
            batch_tokens=recipe.train.batch_tokens,
            sampling=0.0,
            seed=recipe.seed,
        )
        yield Trainer(model, lesson, recipe.train, width=recipe.model.width, seed=recipe.seed)  # type: ignore[arg-type]


def _handful(sample: Sentences) -> Sentences:
    """A few pairs of middling length with different sources: the same source with two targets cannot be learnt."""
    middling = sorted(dict(sample).items(), key=lambda pair: len(pair[0]) + len(pair[1]))
    start = max(0, (len(middling) - _BY_HEART) // 2)
    return middling[start : start + _BY_HEART]


def _sane_rate(width: int) -> float:
    """A rate that every healthy model of that width bears."""
    return min(5e-3, 2e-3 * math.sqrt(128 / width))
