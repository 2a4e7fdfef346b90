"""What a run tells while it is carried out; its log holds one line for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.tasks import Card
from manyheads.train import Step


@dataclass(frozen=True)
class Stage:
    """Something that takes a while begins."""

    description: str


@dataclass(frozen=True)
class Prepared:
    """The text is tokenized and the model is built."""

    noun: str  # the rows are, in the plural
    n_rows: int
    loss_unit: str  # what the loss is averaged over, in short
    dropped: Mapping[str, int]  # why other rows are not trained on, and how many
    vocab_size: int
    n_parameters: int
    device: str
    seconds: float
    warnings: Sequence[str] = ()  # what was damaged in the cache and was made anew
    warm_start: str = ""  # what was taken over from another bundle


@dataclass(frozen=True)
class Resumed:
    """Training goes on from a checkpoint; `warnings` says what was wrong with newer ones."""

    step: int
    warnings: Sequence[str]


@dataclass(frozen=True)
class Validated:
    """A sample of the valid set was answered."""

    step: int
    metric: str
    score: float
    best: float
    sample: tuple[str, str, str]  # what went in, what came out, what was wanted: of another row each time
    samples: Sequence[tuple[str, str, str]] = ()  # of the same rows each time


@dataclass(frozen=True)
class StoppedEarly:
    """The score has not become better for as long as the recipe's patience lasts; the best weights are taken."""

    step: int
    best_step: int


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written."""

    step: int


@dataclass(frozen=True)
class Interrupted:
    """Training was asked to stop; everything up to this step is saved."""

    step: int


@dataclass(frozen=True)
class Finished:
    """The bundle is written and scored."""

    bundle: Path
    cards: Mapping[str, Card]  # by test set


@dataclass(frozen=True)
class RecipeChanged:
    """The recipe of a run under way was edited where that does not touch what is learnt."""

    changes: Sequence[str]


Event = Stage | RecipeChanged | Prepared | Resumed | Step | Validated | Saved | StoppedEarly | Interrupted | Finished
