"""One training run of an experiment: `train_model` trains, `Trained` measures.

Initial weights depend on the seed and on the name and shape of each parameter, not on what else the model contains.
Arms that differ in one part therefore start with the same weights everywhere else.
"""

import math
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor, nn

from manyheads.errors import TrainingError
from manyheads.lab.convergence import Progress, Watch
from manyheads.lab.lab_tasks import PAD, LabBatch, Split
from manyheads.lab.setup import Setup
from manyheads.model import ModelSettings, Transformer
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.evaluation import evaluating
from manyheads.model.tap import Tap
from manyheads.model.weights import load_weights, weights_of
from manyheads.training import Trainer, TrainSettings

_HELD_OUT_SEEDS: dict[Split, int] = {"valid": 6_000_000, "test": 7_000_000}
_N_TEST_ROWS = 512
_N_VALID_ROWS = 256
_TEST_BATCH = 128


DIVERGED = "diverged"  # the name under which a trial reports that its run diverged


@dataclass(frozen=True)
class Trained:
    """A trained model with its history."""

    model: nn.Module
    setup: Setup
    seed: int
    losses: tuple[float, ...]  # of every step
    gradient_norms: tuple[float, ...]
    has_diverged: bool  # the loss or the gradient was not finite: the weights before that step are tested
    progress: Progress | None = None  # of a run with `Setup.convergence`

    def test_batches(self, n_rows: int = _N_TEST_ROWS) -> Iterator[LabBatch]:
        """Held-out batches: the same for every arm and seed."""
        return _held_out(self.setup, "test", n_rows)

    def test_logits(self, n_rows: int = _N_TEST_ROWS) -> Iterator[tuple[Float[Tensor, "N V"], Tensor]]:
        """The logits of every counted position of the held-out batches, and the expected ids."""
        with evaluating(self.model):
            for batch in self.test_batches(n_rows):
                yield counted_logits(self.model, batch), batch.expected[batch.is_counted]

    def test_scores(self, n_rows: int = _N_TEST_ROWS) -> dict[str, float]:
        """Accuracy, and the mean negative log-likelihood in nats, of held-out predictions."""
        return _scores(self.model, self.test_batches(n_rows))

    def outcome(self, n_rows: int = _N_TEST_ROWS) -> dict[str, float]:
        """`test_scores`, and how training went: ability and speed, whether it converged, whether it diverged."""
        found = self.test_scores(n_rows) | {DIVERGED: float(self.has_diverged)}
        if self.progress is not None:
            found |= {
                "steps": self.progress.steps,
                "seconds": self.progress.seconds,
                "trained": self.progress.n_steps,
                "converged": float(self.progress.has_converged),
            }
        return found

    def tapped(self, n_rows: int = _TEST_BATCH) -> tuple[LabBatch, Tap]:
        """A held-out batch, and every intermediate value of its forward pass."""
        batch, tap = next(self.test_batches(n_rows)), Tap()
        with evaluating(self.model):
            counted_logits(self.model, batch, tap)
        return batch, tap

    def steps_to(self, loss: float, window: int = 20) -> int:
        """The first step at which the mean training loss of the last `window` steps is at most `loss`.

        If it is never reached, one more than the number of steps: a lower bound.
        """
        for step in range(window, len(self.losses) + 1):
            if sum(self.losses[step - window : step]) / window <= loss:
                return step
        return self.setup.steps + 1


@dataclass(frozen=True)
class _LabTraining:
    """A lab task as the training loop sees it."""

    model: nn.Module
    setup: Setup

    def plan(self, epoch: int) -> range:
        """One endless epoch: every batch is drawn from its seed."""
        return range(self.setup.steps)

    def make(self, plan: int, seed: int) -> LabBatch:
        """The batch of a step."""
        return self.setup.task.batch(self.setup.n_rows, Generator().manual_seed(seed))

    def loss(self, batch: LabBatch, step: int) -> Tensor:
        """The mean cross-entropy of the counted positions."""
        return self.setup.loss(
            counted_logits(self.model, batch), batch.expected[batch.is_counted], self.setup.smoothing
        )

    def describe(self, plan: int) -> str:
        """The number of the batch."""
        return f"batch {plan}"


def train_model(setup: Setup, seed: int) -> Trained:
    """Train a new model; a run that diverges ends early and is marked."""
    model = make_model(setup, seed)
    settings = TrainSettings(
        steps=setup.steps,
        learning_rate=setup.learning_rate,
        warmup=max(1, setup.warmup),
        schedule=setup.schedule,  # type: ignore[arg-type]  # TrainSettings checks it
        clip_norm=setup.clip_norm,
        weight_decay=setup.weight_decay,
        precision="float32",
    )
    width = int(setup.model.get("width", 512))
    trainer: Trainer[LabBatch] = Trainer(model, _LabTraining(model, setup), settings, width=width, seed=seed)
    losses, norms, has_diverged = [], [], False
    watch = None if setup.convergence is None else Watch(setup.convergence, setup.steps)
    started, n_seconds_validating = time.process_time(), 0.0
    try:
        for step in trainer.run():
            losses.append(step.loss)
            norms.append(step.gradient_norm)
            if watch is not None and step.step % watch.rule.every == 0:
                paused = time.process_time()
                scores = _scores(model, _held_out(setup, "valid", _N_VALID_ROWS))
                seconds = paused - started - n_seconds_validating
                if watch.see(step.step, seconds, scores, weights_of(model)):
                    break
                n_seconds_validating += time.process_time() - paused
    except TrainingError:
        has_diverged = True
    if watch is None:
        return Trained(model, setup, seed, tuple(losses), tuple(norms), has_diverged)
    progress = watch.progress(len(losses), time.process_time() - started - n_seconds_validating, has_diverged)
    if watch.best_weights is not None:
        load_weights(model, watch.best_weights, "the best validation")
    return Trained(model, setup, seed, tuple(losses), tuple(norms), has_diverged, progress)


def _held_out(setup: Setup, split: Split, n_rows: int) -> Iterator[LabBatch]:
    """The batches of a split that is not trained on; the same for every arm and seed."""
    task = setup.test_task or setup.task
    for part in range(math.ceil(n_rows / _TEST_BATCH)):
        generator = Generator().manual_seed(_HELD_OUT_SEEDS[split] + part)
        yield task.batch(min(_TEST_BATCH, n_rows), generator, split=split)


def _scores(model: nn.Module, batches: Iterator[LabBatch]) -> dict[str, float]:
    """The accuracy and the loss of the counted positions of all batches."""
    right, nats, count = 0.0, 0.0, 0
    with evaluating(model):
        for batch in batches:
            logits, expected = counted_logits(model, batch), batch.expected[batch.is_counted]
            right += float((logits.argmax(-1) == expected).sum())
            nats += float(F.cross_entropy(logits.double(), expected, reduction="sum"))
            count += len(expected)
    return {"accuracy": right / count, "loss": nats / count}


def untrained(setup: Setup, seed: int) -> Trained:
    """The model that `train_model` starts from, as if training had ended before its first step."""
    return Trained(make_model(setup, seed), setup, seed, (), (), has_diverged=False)


def make_model(setup: Setup, seed: int) -> nn.Module:
    """The model of a setup with its initial weights."""
    settings: dict[str, Any] = {"dropout": 0.0, "max_length": 256, **setup.model}
    torch.manual_seed(seed)
    model: nn.Module = Transformer(ModelSettings(vocab_size=setup.task.vocab_size, shape=setup.task.shape, **settings))
    if setup.alter is not None:
        model = setup.alter(model)
    initialize_by_name(model, seed)
    if setup.start is not None:
        setup.start(model)
    return model


@torch.no_grad()
def initialize_by_name(model: nn.Module, seed: int) -> None:
    """Draw the matrices again, each from a generator seeded by its name: Linear layers (Glorot) and embeddings."""
    for name, module in model.named_modules():
        generator = Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
        elif isinstance(module, TokenEmbedding):
            module.weight.normal_(0.0, module.weight.size(1) ** -0.5, generator=generator)


def count_parameters(model: nn.Module) -> int:
    """The number of trained numbers; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def counted_logits(model: Any, batch: LabBatch, tap: Tap | None = None) -> Float[Tensor, "N V"]:
    """The logits of the counted positions of a batch; the others are not projected."""
    hidden = model.hidden(
        batch.source,
        batch.target,
        source_is_real=None if batch.source is None else batch.source != PAD,
        target_is_real=None if batch.target is None else batch.target != PAD,
        tap=tap,
    )
    return model.output.logits(hidden[batch.is_counted])
