"""`FineTuner`: train a model further on the data of its bundle's recipe, so that the remaining heads compensate."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from manyheads.bundle import Bundle
from manyheads.errors import DataError, LensError
from manyheads.messages import _
from manyheads.model.weights import load_weights
from manyheads.run import Corpus, Recipe, RunFolder
from manyheads.run.preparation import PreparedData, prepare
from manyheads.tasks import Task, TrainingData
from manyheads.training import Step, Trainer, TrainingTask, TrainSettings, peak_learning_rate

OnStep = Callable[[Step], None]

_SHARE_OF_PEAK = 0.2  # of the recipe's learning rate, since the model is already trained
_MAX_LEARNING_RATE = 1e-3  # of the default


@dataclass(frozen=True)
class FineTuneSettings:
    """How long and how fast to fine-tune."""

    steps: int = 300
    learning_rate: float | None = None  # at its peak; None: a fifth of the recipe's, at most 0.001

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise LensError(_("Fine-tuning takes at least 1 step, not {steps}.", steps=self.steps))
        if self.learning_rate is not None and not 0 < self.learning_rate < 1:
            raise LensError(
                _(
                    "The learning rate {learning_rate:g} is not between 0 and 1. Use one like 0.0005.",
                    learning_rate=self.learning_rate,
                )
            )


@dataclass(frozen=True)
class FineTuner:
    """The prepared training data of a recipe, and the recipe."""

    recipe: Recipe
    training_data: TrainingData

    def train(
        self,
        module: nn.Module,
        training_task: TrainingTask[Any],
        settings: FineTuneSettings,
        on_step: OnStep = lambda step: None,
    ) -> None:
        """Train a module as in the recipe, but with these steps and this learning rate."""
        trainer = Trainer(
            module, training_task, self.schedule(settings), width=self.recipe.model.width, seed=self.recipe.seed
        )
        for step in trainer.run():
            on_step(step)
        load_weights(module, {name: value.clone() for name, value in trainer.eval_weights().items()}, "fine-tuning")
        module.eval()

    def fine_tune(self, task: Task, settings: FineTuneSettings, on_step: OnStep = lambda step: None) -> None:
        """Train a task further, in place."""
        self.train(task.module, task.training_task(self.training_data), settings, on_step)

    def schedule(self, settings: FineTuneSettings) -> TrainSettings:
        """Return the training settings of the recipe with a short cosine schedule at a low learning rate."""
        train = self.recipe.train
        peak = peak_learning_rate(train, self.recipe.model.width)
        learning_rate = settings.learning_rate or min(_MAX_LEARNING_RATE, _SHARE_OF_PEAK * peak)
        warmup = max(1, settings.steps // 10)
        return replace(train, steps=settings.steps, schedule="cosine", learning_rate=learning_rate, warmup=warmup)


def make_fine_tuner(bundle: Bundle, folder: Path, beside: Path, files: Sequence[Path] = ()) -> FineTuner:
    """Prepare a fine-tuner for the bundle in `folder`; the prepared text is cached beside the path `beside`.

    `files` replace the training data of the recipe.
    """
    recipe = replace(Recipe.from_table(bundle.recipe), init_from=str(folder))
    if files:
        data = replace(recipe.data, builtin=None, mix=(), train=tuple(str(file.resolve()) for file in files))
        recipe = replace(recipe, data=data)
    try:
        prepared = _prepare(recipe, beside)
    except DataError as error:
        if files:
            raise
        raise DataError(
            _("{error} Fine-tuning needs the training data of the bundle: give it with --train.", error=error)
        ) from None
    training_data = TrainingData(
        encoded=prepared.encoded,
        batch_tokens=recipe.train.batch_tokens,
        sampling=recipe.tokenizer.sampling,
        seed=recipe.seed,
        boundaries=prepared.boundaries,
        weights=Corpus.of(recipe).weights,
    )
    return FineTuner(recipe, training_data)


def _prepare(recipe: Recipe, beside: Path) -> PreparedData:
    """Prepare the data of a recipe in a temporary run folder, beside which the cache is kept."""
    beside.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{beside.name}.", dir=beside.parent))
    stages = prepare(recipe, RunFolder(folder))
    try:
        while True:
            next(stages)
    except StopIteration as end:
        prepared: PreparedData = end.value
        return prepared
    finally:
        shutil.rmtree(folder, ignore_errors=True)
