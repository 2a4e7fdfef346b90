"""Training a little further on the data of a bundle's own recipe: after heads went, the others take over."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from manyheads.bundle import Bundle
from manyheads.errors import DataError, LensError
from manyheads.model.weights import load_weights
from manyheads.run import Corpus, Recipe, RunFolder
from manyheads.run.preparation import prepare
from manyheads.tasks import Task, TrainingData
from manyheads.train import Step, Trainer, TrainingTask, TrainSettings, peak_learning_rate

OnStep = Callable[[Step], None]

_SHARE_OF_PEAK = 0.2  # of the recipe's learning rate: the model has learnt already
_FASTEST = 1e-3


@dataclass(frozen=True)
class FineTuneSettings:
    """How long to train further, and how fast."""

    steps: int = 300
    learning_rate: float = 0.0  # at its peak; 0: a fifth of the recipe's, and at most 0.001

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise LensError(f"Fine-tuning takes at least 1 step, not {self.steps}.")
        if not 0 <= self.learning_rate < 1:
            raise LensError(f"A learning rate of {self.learning_rate:g} is none. Give one like 0.0005.")


@dataclass(frozen=True)
class FineTuner:
    """The data of a recipe, ready to train on, and how its recipe trains."""

    recipe: Recipe
    training_data: TrainingData

    def train(
        self,
        module: nn.Module,
        training_task: TrainingTask[Any],
        settings: FineTuneSettings,
        on_step: OnStep = lambda step: None,
    ) -> None:
        """Train a module by a training task for some steps, by the recipe in all but how long and how fast."""
        trainer = Trainer(
            module, training_task, self.schedule(settings), width=self.recipe.model.width, seed=self.recipe.seed
        )
        for step in trainer.run():
            on_step(step)
        load_weights(module, {name: value.clone() for name, value in trainer.eval_weights().items()}, "fine-tuning")
        module.eval()

    def fine_tune(self, task: Task, settings: FineTuneSettings, on_step: OnStep = lambda step: None) -> None:
        """Train a task on."""
        self.train(task.module, task.training_task(self.training_data), settings, on_step)

    def schedule(self, settings: FineTuneSettings) -> TrainSettings:
        """The recipe's own training, but shorter, slower, and down to nothing at the end."""
        train = self.recipe.train
        peak = peak_learning_rate(train, self.recipe.model.width)
        rate = settings.learning_rate or min(_FASTEST, _SHARE_OF_PEAK * peak)
        warmup = max(1, settings.steps // 10)
        return replace(train, steps=settings.steps, schedule="cosine", learning_rate=rate, warmup=warmup)


@contextmanager
def open_fine_tuner(bundle: Bundle, folder: Path, beside: Path, files: Sequence[Path] = ()) -> Iterator[FineTuner]:
    """A fine_tuner for a bundle in a folder; what is made of its text is cached beside a path, as runs do.

    `files` are trained on instead of the recipe's own, where these are gone.
    """
    recipe = replace(Recipe.from_table(bundle.recipe), init_from=str(folder))
    if files:
        data = replace(recipe.data, builtin=None, mix=(), train=tuple(str(file.resolve()) for file in files))
        recipe = replace(recipe, data=data)
    beside.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{beside.name}.", dir=beside.parent))
    try:
        preparing = prepare(recipe, RunFolder(work))
        while True:
            next(preparing)
    except StopIteration as done:
        data = done.value
    except DataError as error:
        if files:
            raise
        raise DataError(f"{error} Fine-tuning needs what the bundle was trained on: give it with --train.") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    weights = Corpus.of(recipe).weights
    yield FineTuner(
        recipe,
        TrainingData(
            encoded=data.encoded,
            batch_tokens=recipe.train.batch_tokens,
            sampling=recipe.tokenizer.sampling,
            seed=recipe.seed,
            boundaries=data.boundaries,
            weights=weights,
        ),
    )
