"""Training speed: the time of whole updates on the built-in corpus, compared with the speed of matrix products."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads import corpora
from manyheads.data import Encoded, Texts
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Seq2Seq, Seq2SeqSettings, TrainingData
from manyheads.tasks.seq2seq import Seq2SeqTrainingTask, TensorBatch
from manyheads.text.tokens.tokenizer import EOS, PAD, Tokenizer, TokenizerSettings
from manyheads.training import Trainer, TrainSettings

_LANGUAGES = ("en", "de")
_N_PAIRS = 2000
# A small vocabulary makes these short sentences as long, in tokens, as real ones with a larger vocabulary.
_N_TOKENS = 1500

_MAX_STEPS = 40
_MATRIX_SIZES = (512, 768, 1024, 1536)
_ROUND_SECONDS = 0.1


@dataclass(frozen=True)
class Sentences:
    """Sentence pairs as text and as ids."""

    tokenizer: Tokenizer
    encoded: Encoded

    @classmethod
    @contextmanager
    def make(cls) -> Iterator["Sentences"]:
        """Make the pairs; they are on disk until the block ends."""
        rows = list(corpora.pairs(*_LANGUAGES, "train", _N_PAIRS, 1))
        settings = TokenizerSettings(kind="bpe", vocab_size=_N_TOKENS)
        tokenizer = Tokenizer.train((text for row in rows for text in row), settings, 1)
        with TemporaryDirectory(prefix="manyheads-bench-") as folder:
            Texts.write(Path(folder) / "text", rows, n_fields=2)
            texts = Texts.open(Path(folder) / "text")
            encode = partial(Seq2Seq.encode_rows, tokenizer=tokenizer, settings=Seq2SeqSettings())
            Encoded.write(Path(folder) / "data", texts, encode, max_length=None)
            yield cls(tokenizer, Encoded.open(Path(folder) / "data", texts))

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """The mean number of tokens of sources and of targets, EOS included."""
        source, target = self.encoded.lengths.mean(axis=0).tolist()
        return source, target

    @property
    def example(self) -> str:
        """The first source sentence."""
        return self.encoded.text(0, 0)

    def sources(self, count: int) -> list[list[int]]:
        """The ids of the first sources, each with EOS."""
        return [[*self.encoded.columns[0][number].tolist(), EOS] for number in range(min(count, len(self.encoded)))]


@dataclass(frozen=True)
class MatmulSpeed:
    """The speed of float32 products of square matrices, at the size that is fastest on this machine."""

    size: int
    speeds: tuple[float, ...]  # GFLOP/s in each round
    slowdown: float  # wall-clock time over CPU time per thread: above 1, other processes use the cores

    @classmethod
    def measure(cls, n_rounds: int = 3) -> "MatmulSpeed":
        """Measure every size in alternation, so that other load affects them equally."""
        by_size: dict[int, list[float]] = {size: [] for size in _MATRIX_SIZES}
        clock, computed = time.perf_counter(), time.process_time()
        for _ in range(n_rounds):
            for size, speeds in by_size.items():
                speeds.append(time_matmul(size))
        best = max(by_size, key=lambda size: median(by_size[size]))
        clock, computed = time.perf_counter() - clock, time.process_time() - computed
        return cls(best, tuple(by_size[best]), max(1.0, clock * torch.get_num_threads() / computed))

    @property
    def gflop_per_second(self) -> float:
        """The median over rounds."""
        return median(self.speeds)


def time_matmul(size: int) -> float:
    """GFLOP/s of products of this size, measured for a tenth of a second."""
    a, b, result = (torch.full((size, size), 0.5) for _ in range(3))
    torch.mm(a, b, out=result)
    count, started = 0, time.perf_counter()
    while (spent := time.perf_counter() - started) < _ROUND_SECONDS or count < 2:
        torch.mm(a, b, out=result)
        count += 1
    return count * 2 * size**3 / spent / 1e9


def count_flop(settings: ModelSettings, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> int:
    """FLOP of the matrix products of one update on pairs of these lengths, EOS included.

    Padding is not counted, and the backward pass counts twice the forward pass. W: width, A: width of all heads,
    F: feed-forward width, V: vocabulary, S and T: tokens of the batch, s and t: tokens of a pair.

        encoder layer   S · 2 (4 W A + 2 W F) + Σ s² · 4 A
        decoder layer   T · 2 (6 W A + 2 W F) + S · 2 · 2 W A + Σ t (t + 1) / 2 · 4 A + Σ s t · 4 A
        output          T · 2 W V
    """
    width, inner, heads = settings.width, settings.feed_forward_width, settings.heads
    both = heads.n_heads * heads.head_width
    n_source, n_target = int(sources.sum()), int(targets.sum())
    encoder = n_source * 2 * (4 * width * both + 2 * width * inner) + int((sources**2).sum()) * 4 * both
    decoder = (
        n_target * 2 * (6 * width * both + 2 * width * inner)
        + n_source * 4 * width * both
        + int((targets * (targets + 1) // 2 + sources * targets).sum()) * 4 * both
    )
    layers = settings.n_encoder_layers * encoder + settings.n_decoder_layers * decoder
    return 3 * (layers + n_target * 2 * width * settings.vocab_size)


@dataclass(frozen=True)
class StepTiming:
    """The time of one update."""

    seconds: float
    n_tokens: int  # target tokens without padding
    flop: int
    matmul_speed: float  # GFLOP/s of matrix products just before the update

    @property
    def utilization(self) -> float:
        """FLOP/s of the update over FLOP/s of matrix products."""
        return self.flop / self.seconds / 1e9 / self.matmul_speed


@dataclass(frozen=True, kw_only=True)
class TrainingSpeed:
    """The measurements of one model."""

    model: str
    n_parameters: int
    vocab_size: int
    batch_tokens: int
    steps: tuple[StepTiming, ...]

    @property
    def tokens_per_second(self) -> float:
        """Target tokens without padding; the median over updates."""
        return median(step.n_tokens / step.seconds for step in self.steps)

    @property
    def utilization(self) -> float:
        """The median over updates."""
        return median(step.utilization for step in self.steps)


class _Counted:
    """A training task that records the FLOP of each batch."""

    def __init__(self, training_task: Seq2SeqTrainingTask) -> None:
        self.training_task = training_task
        self.flop = 0

    def plan(self, epoch: int) -> Sequence[Any]:
        """Return the plan of an epoch."""
        return self.training_task.plan(epoch)

    def make(self, plan: Any, seed: int) -> TensorBatch:
        """Make a batch."""
        return self.training_task.make(plan, seed)

    def loss(self, batch: TensorBatch, step: int) -> Tensor:
        """Record the FLOP and return the loss."""
        sources, targets = ((ids != PAD).sum(1).numpy() for ids in (batch.source, batch.target_output))
        self.flop = count_flop(self.training_task.model.settings, sources, targets)
        return self.training_task.loss(batch, step)

    def describe(self, plan: Any) -> str:
        """Describe a batch."""
        return self.training_task.describe(plan)


def measure_training(
    name: str, settings: ModelSettings, sentences: Sentences, matmul: MatmulSpeed, *, batch_tokens: int, seconds: float
) -> TrainingSpeed:
    """Train for about this many seconds, two updates at least. The first one, which allocates memory, is dropped."""
    torch.manual_seed(1)
    model = Transformer(settings)
    task = Seq2Seq(model, sentences.tokenizer, Seq2SeqSettings())
    training_task = _Counted(task.training_task(TrainingData(sentences.encoded, batch_tokens)))
    train_settings = TrainSettings(steps=_MAX_STEPS, batch_tokens=batch_tokens, learning_rate=1e-3, warmup=100)
    steps: list[StepTiming] = []
    trainer: Trainer[TensorBatch] = Trainer(model, training_task, train_settings, width=settings.width, seed=1)
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
