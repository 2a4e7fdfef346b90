"""The events of a run. Each is yielded to the caller and logged as one line of log.jsonl."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from manyheads.messages import Message
from manyheads.metrics import Card, Score, card_record
from manyheads.tasks import DecodingChoice
from manyheads.training import Step

Sample = tuple[str, str, str]  # input, prediction, reference
FROZEN_FEATURES = "frozen features + logistic regression"  # the name of what a fine-tuned model is compared with


@dataclass(frozen=True)
class Stage:
    """A lengthy stage begins."""

    description: str


@dataclass(frozen=True)
class Prepared:
    """The text is tokenized and the model is built."""

    noun: str  # what a row is called, in the plural
    n_rows: int
    loss_unit: str  # what the loss is averaged over: "token", "row", …
    dropped: Mapping[str, int]  # rows not trained on, by reason
    vocab_size: int
    n_parameters: int
    device: str
    seconds: float
    warnings: Sequence[str] = ()  # damaged cache entries, which were created again
    loss_terms: Mapping[str, float] = field(default_factory=dict)  # what the loss contains beside the cross-entropy
    n_threads: int | None = None  # that the run started with and keeps
    n_processes: int = 1  # that train together
    has_too_few_cores: bool = False  # this machine has fewer cores than the run has threads
    old_torch: str | None = None  # the version of PyTorch that the run started with, if this is another
    warm_start: str | None = None  # which weights were copied from `init_from`
    n_valid: int | None = None  # validation rows
    valid_dropped: Mapping[str, int] = field(default_factory=dict)  # rows not validated on, by reason


@dataclass(frozen=True)
class BaselineScored:
    """The linear model was fitted and scored on the validation set, before training."""

    name: str
    score: Score


@dataclass(frozen=True)
class Resumed:
    """Training continues from a checkpoint; `warnings` describes newer checkpoints that are damaged."""

    step: int
    warnings: Sequence[str]


@dataclass(frozen=True)
class Validated:
    """A sample of the validation set was predicted and scored."""

    step: int
    metric: str
    score: float
    best: float
    sample: Sample  # of another row at each validation
    samples: Sequence[Sample] = ()  # of the same rows at each validation


@dataclass(frozen=True)
class StoppedEarly:
    """The score has not improved for `train.patience` validations; the bundle gets the best weights."""

    step: int
    best_step: int


@dataclass(frozen=True)
class DecodingChosen:
    """A decoding setting that the recipe leaves open was chosen on validation rows; the bundle stores it."""

    choice: DecodingChoice


@dataclass(frozen=True)
class WeightsChosen:
    """Of the weights before training, after it and in between, those with the lowest loss on validation rows."""

    share: float  # of training: 0 is before it, 1 after it
    losses: Mapping[str, float]  # by share
    n_rows: int

    def describe(self) -> Message:
        """Which weights the bundle has, and why."""
        if len(self.losses) == 1:
            return Message("the encoder as it was, with an output layer fitted by logistic regression")
        return Message(
            "{share:.0%} of the way from the frozen encoder to the fine-tuned one, by the loss of {n_rows:,} "
            "validation rows ({losses})",
            share=self.share,
            n_rows=self.n_rows,
            losses=", ".join(f"{share}: {loss:.3f}" for share, loss in self.losses.items()),
        )


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written."""

    step: int


@dataclass(frozen=True)
class Interrupted:
    """Training stopped on request; a checkpoint of this step was written."""

    step: int


@dataclass(frozen=True)
class Finished:
    """The bundle was written and scored."""

    bundle: Path
    cards: Mapping[str, Card]  # by test set


@dataclass(frozen=True)
class RecipeChanged:
    """A resumed run has other settings than before, where that is allowed."""

    changes: Sequence[str]


Event = (
    Stage
    | RecipeChanged
    | Prepared
    | BaselineScored
    | Resumed
    | Step
    | Validated
    | Saved
    | StoppedEarly
    | DecodingChosen
    | WeightsChosen
    | Interrupted
    | Finished
)


def event_record(event: Event) -> dict[str, Any]:
    """Return an event as JSON-serializable data for the log; scorecards as their scores and sections."""
    if isinstance(event, Finished):
        return {"bundle": str(event.bundle), "cards": {name: card_record(card) for name, card in event.cards.items()}}
    return asdict(event)
