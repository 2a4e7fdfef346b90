"""`RunLog`: what doctor reads from the log and the recipe of a run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from manyheads.errors import ManyheadsError, RecipeError
from manyheads.metrics import display_name, format_score
from manyheads.run import Recipe, RunFolder
from manyheads.tasks.task_doctor import Sample


@dataclass(frozen=True)
class RunLog:
    """The events of a run by step; steps that were trained again after a restart count once."""

    folder: Path
    losses: dict[int, float] = field(default_factory=dict)  # by step
    gradient_norms: dict[int, float] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    samples: dict[int, Sample] = field(default_factory=dict)
    last_event: str = ""
    last_time: float = 0.0
    n_unreadable: int = 0  # lines
    recipe: Recipe | None = None  # None if it cannot be read
    prepared: Mapping[str, Any] = field(default_factory=dict)  # the last event of this kind
    metric: str = ""  # of the scores
    consistency_after: float = math.inf  # the step after which the loss includes R-Drop, which raises it

    @property
    def step(self) -> int:
        """The last step."""
        return max(self.losses, default=0)

    def format_score(self, score: float) -> str:
        """Return a score of a validation with its metric."""
        return f"{display_name(self.metric)} {format_score(self.metric, score)}" if self.metric else f"{score:.1f}"

    def comparable_losses(self) -> list[dict[int, float]]:
        """Return the losses without R-Drop, then those with it; empty parts are left out."""
        parts: list[dict[int, float]] = [{}, {}]
        for step, loss in self.losses.items():
            parts[step > self.consistency_after][step] = loss
        return [part for part in parts if part]


def read_log(folder: Path) -> RunLog:
    """Read the log of a run folder; lines that cannot be read are counted and skipped."""
    log = RunLog(folder)
    last_event, last_time, n_invalid = "", 0.0, 0
    prepared: Mapping[str, Any] = {}
    metric = ""
    reader = RunFolder(folder).log()
    for event in reader:
        try:
            _add_event(event, log)
            last_event, last_time = str(event["event"]), float(event["time"])
            prepared = event if last_event == "Prepared" else prepared
            metric = str(event.get("metric", metric)) if last_event == "Validated" else metric
        except (ValueError, KeyError, TypeError, OverflowError):
            n_invalid += 1
    return replace(
        log,
        last_event=last_event,
        last_time=last_time,
        n_unreadable=reader.n_unreadable + n_invalid,
        prepared=prepared,
        metric=metric,
        recipe=_read_recipe(folder),
        consistency_after=_consistency_after(folder),
    )


def _read_recipe(folder: Path) -> Recipe | None:
    try:
        return Recipe.from_table(RunFolder(folder).read_recipe_table())
    except (ManyheadsError, OSError):
        return None


def _consistency_after(folder: Path) -> float:
    """Return the step after which R-Drop starts by the run's recipe; inf if there is none or it cannot be read."""
    try:
        task = RunFolder(folder).read_recipe_table().get("task", {})
        return float(task.get("consistency_after", 0)) if task.get("consistency", 0) else math.inf
    except (RecipeError, OSError, ValueError, TypeError, AttributeError):
        return math.inf


def _add_event(event: dict[str, Any], log: RunLog) -> None:
    kind, step = event["event"], event.get("step")
    if kind == "Resumed" and isinstance(step, int):
        for column in (log.losses, log.gradient_norms, log.seconds, log.scores, log.samples):
            for later in [known for known in column if known > step]:
                del column[later]
    elif kind == "Step" and isinstance(step, int):
        log.losses[step] = float(event["loss"])
        log.gradient_norms[step] = float(event["gradient_norm"])
        log.seconds[step] = float(event["seconds"])
    elif kind == "Validated" and isinstance(step, int):
        log.scores[step] = float(event["score"] if "score" in event else event["bleu"])
        source, translation, reference = event["sample"]
        log.samples[step] = (str(source), str(translation), str(reference))
