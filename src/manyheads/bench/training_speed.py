"""How fast this machine trains a model: whole updates by the loop that every run uses."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from manyheads.bench.flop import count_flop
from manyheads.bench.products import MatmulSpeed, time_matmul
from manyheads.bench.sentences import Sentences
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Seq2Seq, Seq2SeqSettings, TrainingData
from manyheads.tasks.seq2seq import Seq2SeqTrainingTask, TensorBatch
from manyheads.text.tokenizer import PAD
from manyheads.train import Trainer, TrainSettings

_MOST_STEPS = 40


@dataclass(frozen=True)
class StepTiming:
    """One update."""

    seconds: float
    n_tokens: int  # real ones, of the target
    flop: int
    matmul_speed: float  # GFLOP a second that matrix products reached right before it

    @property
    def utilization(self) -> float:
        """The share of what products alone would reach."""
        return self.flop / self.seconds / 1e9 / self.matmul_speed


@dataclass(frozen=True, kw_only=True)
class TrainingSpeed:
    """What was seen of one model in training."""

    model: str
    n_parameters: int
    vocab_size: int
    batch_tokens: int
    steps: tuple[StepTiming, ...]

    @property
    def tokens_per_second(self) -> float:
        """Real tokens of the target; the median over turns."""
        return median(turn.n_tokens / turn.seconds for turn in self.steps)

    @property
    def utilization(self) -> float:
        """The median over turns."""
        return median(turn.utilization for turn in self.steps)


class _Counted:
    """A training task that notes how much work each batch is."""

    def __init__(self, training_task: Seq2SeqTrainingTask) -> None:
        self.training_task = training_task
        self.flop = 0

    def plan(self, epoch: int) -> Sequence[Any]:
        """As it is."""
        return self.training_task.plan(epoch)

    def make(self, plan: Any, seed: int) -> TensorBatch:
        """As it is."""
        return self.training_task.make(plan, seed)

    def loss(self, batch: TensorBatch, step: int) -> Tensor:
        """As it is; the work is noted."""
        sources, targets = ((ids != PAD).sum(1).numpy() for ids in (batch.source, batch.target_output))
        self.flop = count_flop(self.training_task.model.settings, sources, targets)
        return self.training_task.loss(batch, step)

    def describe(self, plan: Any) -> str:
        """As it is."""
        return self.training_task.describe(plan)


def measure_training(
    name: str, settings: ModelSettings, sentences: Sentences, matmul: MatmulSpeed, *, batch_tokens: int, seconds: float
) -> TrainingSpeed:
    """Updates for about so many seconds, at least two; the first, when memory is found, does not count."""
    torch.manual_seed(1)
    model = Transformer(settings)
    task = Seq2Seq(model, sentences.tokenizer, Seq2SeqSettings())
    training_task = _Counted(task.training_task(TrainingData(sentences.encoded, batch_tokens)))
    how = TrainSettings(steps=_MOST_STEPS, batch_tokens=batch_tokens, learning_rate=1e-3, warmup=100)
    steps: list[StepTiming] = []
    trainer: Trainer[TensorBatch] = Trainer(model, training_task, how, width=settings.width, seed=1)
    started, speed = time.perf_counter(), time_matmul(matmul.size)
    for step in trainer.run():
        steps.append(StepTiming(step.seconds, step.n_tokens, training_task.flop, speed))
        if len(steps) > 2 and time.perf_counter() - started > seconds:
            break
        speed = time_matmul(matmul.size)
    return TrainingSpeed(
        model=name,
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocab_size=settings.vocab_size,
        batch_tokens=batch_tokens,
        steps=tuple(steps[1:]),
    )
