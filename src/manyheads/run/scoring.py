"""Score a set of rows, and mark the scores if the set was used for something else too."""

import filecmp
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.metrics import Baseline, Card, Use, compare_tallies
from manyheads.run.recipe import DataSettings, Recipe
from manyheads.tasks import LabelingTask, Task
from manyheads.tasks.task import Progress
from manyheads.text.reading.readers import Row

VALID = "valid"  # the name of the validation set where it is scored instead of a test set


def score_rows(
    task: Task,
    rows: Iterable[Row],
    settings: DecodeSettings,
    used_for: Sequence[Use] = (),
    progress: Progress = lambda done: None,
) -> Card:
    """Return the scorecard of rows; rows that calibrated the task are scored by cross-fitting.

    The card of a task with a linear model compares the two.
    """
    if has_baseline(task):
        rows = list(rows)  # rows of other tasks may be long documents, which are read one by one
    if "calibration" in used_for and isinstance(task, LabelingTask):
        card = task.score_calibrated(rows, settings, progress)
    else:
        card = task.score(rows, settings, progress)
    if isinstance(rows, list) and rows and isinstance(task, LabelingTask) and task.baseline_name:
        started = time.process_time()
        tally = task.tally(rows, settings)
        middle = time.process_time()
        change = compare_tallies(tally, task.baseline_tally(rows))
        speedup = (middle - started) / max(time.process_time() - middle, 1e-3)
        changed: Any = card  # a card is a dataclass, which a protocol cannot say
        baseline = Baseline(task.baseline_name, change, "calibration" in used_for, speedup)
        card = replace(changed, baseline=baseline)
    return mark(card, used_for)


def has_baseline(task: Task) -> bool:
    """Whether a task has a linear model to compare with."""
    return isinstance(task, LabelingTask) and bool(task.baseline_name)


def mark(card: Card, used_for: Sequence[Use]) -> Card:
    """Return the card with scores that say what the set was used for."""
    if not used_for:
        return card
    changed: Any = card  # a card is a dataclass, which a protocol cannot say
    return replace(changed, scores=[replace(score, used_for=tuple(used_for)) for score in card.scores])


def validation_uses(recipe: Recipe, *, is_calibrated: bool, is_tuned: bool = False) -> tuple[Use, ...]:
    """Return what a run uses its validation set for; `is_tuned`: a decoding setting was chosen by its scores."""
    stopping: tuple[Use, ...] = ("stopping",) if recipe.train.patience is not None else ()
    calibration: tuple[Use, ...] = ("calibration",) if is_calibrated else ()
    decoding: tuple[Use, ...] = ("decoding",) if is_tuned else ()
    return (*stopping, *calibration, *decoding)


def uses_of(bundle: Bundle, name: str, files: Sequence[Path] = ()) -> tuple[Use, ...]:
    """Return what the bundle's run used a set for: a set of its recipe, by its name, or any files.

    Files are compared with those of the recipe by path and by content. If only some of them were used, all are marked.
    """
    if not files:
        own = tuple(bundle.validation_used_for) if name == VALID else ()
        stored: tuple[Use, ...] = next((score.used_for for score in bundle.scores.get(name, ())), ())
        return tuple(dict.fromkeys((*own, *stored)))
    data: DataSettings = Recipe.from_table(bundle.recipe).data
    trained = [Path(file) for corpus in data.corpora for file in corpus.files]
    training: tuple[Use, ...] = ("training",) if _have_common_file(files, trained) else ()
    is_validated = _have_common_file(files, [Path(file) for file in data.valid])
    return (*training, *bundle.validation_used_for) if is_validated else training


def _have_common_file(files: Sequence[Path], others: Sequence[Path]) -> bool:
    return any(_are_same(file, other) for file in files for other in others)


def _are_same(file: Path, other: Path) -> bool:
    try:
        return file.resolve() == other.resolve() or filecmp.cmp(file, other, shallow=False)
    except OSError:  # the data of the recipe is elsewhere
        return False
