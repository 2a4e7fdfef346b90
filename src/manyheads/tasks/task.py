"""`Task`: what a run, a bundle and the commands know of a task; and the small things it trades in.

A task is a class with this interface; there is no base class to inherit from. It says how rows are read and become
ids, what is learnt from them, and what a trained model answers and is scored by. The model and train rooms know none
of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import nn

from manyheads.data import Encoded
from manyheads.data.cleaning import Fields
from manyheads.decode import DecodeSettings, Engine, EngineSelector, Hypothesis
from manyheads.metrics import Answers, Card, Tally
from manyheads.model import ModelSettings, Tap, Transformer
from manyheads.tasks.lens_examples import LensExamples
from manyheads.tasks.quickstart import Quickstart
from manyheads.text.files import OnBad
from manyheads.text.readers import Row
from manyheads.text.tokenizer import Token, Tokenizer

Progress = Callable[[int], None]  # told how many more are done


@dataclass(frozen=True)
class TrainingData:
    """What a training task is made of."""

    encoded: Encoded
    batch_tokens: int
    sampling: float = 0.0
    seed: int = 1
    boundaries: Sequence[int] = ()  # where each of several corpora begins among the rows, and where the last ends
    weights: Sequence[float] = ()  # how often their rows come in an epoch; without any, all come once


@dataclass(frozen=True)
class ValidationResult:
    """A quick look at how a model in training is doing."""

    metric: str
    score: float  # higher is better
    samples: Sequence[tuple[str, str, str]]  # of each row: what went in, what came out, what was wanted


@dataclass(frozen=True)
class ModelInput:
    """One text as the tokens that a model reads, each with its place: in the text, or in the answer.

    A language model reads both in one line, so that an answer's places are counted from the text's beginning on.
    """

    text: str
    answer: str = ""
    source: tuple[Token, ...] = ()  # what the encoder reads
    target: tuple[Token, ...] = ()  # what the decoder reads; at each place it writes the next one
    last: Token | None = None  # what it writes at the last place, where that is known: EOS, or where it was cut off

    @property
    def written(self) -> tuple[Token, ...]:
        """What is written at each place of the target, as far as it is known."""
        return self.target[1:] if self.last is None else (*self.target[1:], self.last)


@runtime_checkable
class Prediction(Protocol):
    """The answer to one text: a frozen dataclass, so that `asdict` makes it JSON."""

    @property
    def answer(self) -> Any:
        """The answer itself, for those who want no more: a text, a label, spans."""

    def line(self) -> str:
        """The answer as one line of text."""


@runtime_checkable
class Task(Protocol):
    """A model of some task, in training or trained, with text on both ends."""

    shape: ClassVar[str]  # of the model it needs
    noun: ClassVar[str]  # what its rows are, in the plural
    loss_unit: ClassVar[str]  # what its loss is averaged over, in the plural, in short
    metrics: ClassVar[tuple[str, ...]]  # what `validate` can score by; the first unless told otherwise
    settings_type: ClassVar[type]
    lens_examples: ClassVar[LensExamples]  # what the lens observes heads on
    quickstart: ClassVar[Quickstart | None]  # None: `manyheads quickstart` does not offer this task

    @property
    def settings(self) -> Any:
        """Those of the recipe."""

    @property
    def model(self) -> Transformer:
        """The Transformer, with every head of it."""

    @property
    def tokenizer(self) -> Tokenizer:
        """From text to ids and back."""

    @property
    def module(self) -> nn.Module:
        """Everything that learns; the model is part of it, or all of it."""

    @staticmethod
    def fields(settings: Any) -> tuple[str, ...]:
        """The names of a row's fields."""

    @staticmethod
    def cleaning(settings: Any) -> Fields:
        """What the cleaner has to know of them."""

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: Any, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """The rows of one set of files; `columns` names the column of a field, where the recipe does."""

    @staticmethod
    def builtin(settings: Any, languages: Sequence[str], split: str, count: int, seed: int) -> Iterable[Row]:
        """Rows of the built-in corpus."""

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The text that a tokenizer learns its tokens from."""

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: Any) -> Sequence[Sequence[Sequence[int]]]:
        """For each column of ids that is stored, those of each row."""

    @staticmethod
    def max_row_length(model: ModelSettings, settings: Any) -> int | None:
        """The maximum number of ids of a training row; None allows any number."""

    @classmethod
    def create(cls, model: Transformer, tokenizer: Tokenizer, settings: Any, rows: Iterable[Row]) -> "Task":
        """A task that has learnt nothing yet; what it has to know beforehand, as its labels, is taken from the rows."""

    @classmethod
    def restore(cls, model: Transformer, tokenizer: Tokenizer, settings: Any, metadata: Mapping[str, Any]) -> "Task":
        """The task that gave these `metadata`, its weights still to be loaded."""

    def metadata(self) -> dict[str, Any]:
        """What `restore` needs to know, as JSON can hold it."""

    def training_task(self, data: TrainingData) -> Any:
        """What the training loop sees of the task: a `TrainingTask`."""

    def check(self, text: str, where: str) -> None:
        """Refuse a text that the model cannot read."""

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """What the model reads of a text; of one that writes, and of an answer. Never cut short: too long is refused.

        Without an answer, the target ends where the model begins to write.
        """

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those rows that can be looked at while training."""

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """How well these rows are answered by now, quickly."""

    def calibrate(self, rows: Sequence[Row]) -> "Task":
        """The task after training, with what it may still learn from the valid rows, as a temperature."""

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> Sequence[Prediction]:
        """The answer to each text; `first` is the number of the first where these are a part of many."""

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The task's first score of these rows, taken apart, to compare models on the same rows."""

    def score(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Card:
        """The scorecard of a test set."""


@runtime_checkable
class GenerativeTask(Protocol):
    """A task whose model writes: it has a decoder."""

    def generate_one(
        self, model_input: ModelInput, settings: DecodeSettings, tap: Tap | None = None
    ) -> tuple[Hypothesis, ModelInput]:
        """The best answer as `predict` finds it, and the model_input with it: of the target, all that was read."""


@runtime_checkable
class HasReferences(Protocol):
    """A task whose answers are texts that are scored against references, so that two systems can be compared."""

    def answer(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Answers:
        """Return the answers to all rows of a test set."""


@runtime_checkable
class SupportsEngines(Task, Protocol):
    """A task that decodes with an engine."""

    def with_engine(self, engine: EngineSelector) -> "SupportsEngines":
        """The same task, decoding with this engine."""

    def engine_for(self, settings: DecodeSettings) -> Engine:
        """The engine that decodes with these settings."""
