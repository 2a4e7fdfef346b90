"""How fast this machine trains a model: whole updates by the loop that every run uses."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from manyheads.bench.flop import count_flop
from manyheads.bench.products import Products, multiply
from manyheads.bench.sentences import Sentences
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Material, Seq2Seq, Seq2SeqSettings
from manyheads.tasks.seq2seq import Seq2SeqLesson, TensorBatch
from manyheads.text.tokenizer import PAD
from manyheads.train import Trainer, TrainSettings

_MOST_STEPS = 40


@dataclass(frozen=True)
class TrainingTurn:
    """One update."""

    seconds: float
    n_tokens: int  # real ones, of the target
    flop: int
    product_speed: float  # GFLOP a second that matrix products reached right before it

    @property
    def utilisation(self) -> float:
        """The share of what products alone would reach."""
        return self.flop / self.seconds / 1e9 / self.product_speed


@dataclass(frozen=True, kw_only=True)
class TrainingSpeed:
    """What was seen of one model in training."""

    model: str
    n_parameters: int
    vocabulary: int
    batch_tokens: int
    turns: tuple[TrainingTurn, ...]

    @property
    def tokens_per_second(self) -> float:
        """Real tokens of the target; the median over turns."""
        return median(turn.n_tokens / turn.seconds for turn in self.turns)

    @property
    def utilisation(self) -> float:
        """The median over turns."""
        return median(turn.utilisation for turn in self.turns)


class _Counted:
    """A lesson that notes how much work each batch is."""

    def __init__(self, lesson: Seq2SeqLesson) -> None:
        self.lesson = lesson
        self.flop = 0

    def plan(self, epoch: int) -> Sequence[Any]:
        """As it is."""
        return self.lesson.plan(epoch)

    def make(self, plan: Any, seed: int) -> TensorBatch:
        """As it is."""
        return self.lesson.make(plan, seed)

    def loss(self, batch: TensorBatch, step: int) -> Tensor:
        """As it is; the work is noted."""
        sources, targets = ((ids != PAD).sum(1).numpy() for ids in (batch.source, batch.target_written))
        self.flop = count_flop(self.lesson.model.settings, sources, targets)
        return self.lesson.loss(batch, step)

    def describe(self, plan: Any) -> str:
        """As it is."""
        return self.lesson.describe(plan)


def measure_training(
    name: str, settings: ModelSettings, sentences: Sentences, products: Products, *, batch_tokens: int, seconds: float
) -> TrainingSpeed:
    """Updates for about so many seconds, at least two; the first, when memory is found, does not count."""
    torch.manual_seed(1)
    model = Transformer(settings)
    task = Seq2Seq(model, sentences.tokenizer, Seq2SeqSettings())
    lesson = _Counted(task.lesson(Material(sentences.encoded, batch_tokens)))
    how = TrainSettings(steps=_MOST_STEPS, batch_tokens=batch_tokens, learning_rate=1e-3, warmup=100)
    turns: list[TrainingTurn] = []
    trainer: Trainer[TensorBatch] = Trainer(model, lesson, how, width=settings.width, seed=1)
    started, speed = time.perf_counter(), multiply(products.size)
    for step in trainer.run():
        turns.append(TrainingTurn(step.seconds, step.n_tokens, lesson.flop, speed))
        if len(turns) > 2 and time.perf_counter() - started > seconds:
            break
        speed = multiply(products.size)
    return TrainingSpeed(
        model=name,
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=settings.vocabulary,
        batch_tokens=batch_tokens,
        turns=tuple(turns[1:]),
    )
