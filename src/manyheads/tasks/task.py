"""`Task`: the interface of a task to runs, bundles and commands, and the types in it.

A task is a class with this interface; there is no base class to inherit from. It defines how rows are read and encoded,
what is trained on them, and how a trained model predicts and is scored. The model and train packages do not know it.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor, nn

from manyheads.data import Encoded
from manyheads.data.cleaning import Fields
from manyheads.decode import DecodeSettings, Engine, EngineSelector, Hypothesis
from manyheads.messages import Message
from manyheads.metrics import Answers, Card, Decisions, Score, Tally, format_score
from manyheads.model import ModelSettings, Tap, Transformer
from manyheads.tasks.lens_examples import LensExamples
from manyheads.tasks.proposal import Quickstart
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import TaskInit
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Token, Tokenizer

_CHINESE_SETTINGS = {"length_penalty": "长度惩罚"}
Progress = Callable[[int], None]  # called with the number of rows done since the last call


@dataclass(frozen=True)
class TrainingData:
    """The encoded rows of a run and how to batch them."""

    encoded: Encoded
    batch_tokens: int
    sampling: float = 0.0
    seed: int = 1
    boundaries: Sequence[int] = ()  # row index at which each of several corpora begins, and at which the last ends
    weights: Sequence[float] = ()  # how often the rows of each corpus occur in an epoch; without weights, once


@dataclass(frozen=True)
class ValidationResult:
    """The score of a model during training, with sample predictions."""

    metric: str
    score: float  # higher is better
    samples: Sequence[tuple[str, str, str]]  # input, prediction and reference of each row


@dataclass(frozen=True)
class DecodingChoice:
    """A decoding setting that was chosen on validation rows, with the score of each value that was tried."""

    setting: str  # of DecodeSettings
    value: float
    metric: str
    scores: Mapping[str, float]  # by value
    n_rows: int

    def describe(self) -> Message:
        """What was chosen, and why."""
        scores = [(value, format_score(self.metric, score)) for value, score in self.scores.items()]
        return Message(
            f"{self.setting.replace('_', ' ')} {self.value:g}, chosen by {self.metric} on {self.n_rows:,} validation "
            f"rows; differences within one standard error do not count ("
            f"{', '.join(f'{value}: {score}' for value, score in scores)})",
            f"{_CHINESE_SETTINGS.get(self.setting, self.setting)} {self.value:g}，在 {self.n_rows:,} 条验证数据上按 "
            f"{self.metric} 选出，不计一个标准误以内的差异（"
            f"{'，'.join(f'{value}：{score}' for value, score in scores)}）",
        )


@dataclass(frozen=True)
class ModelInput:
    """One text as the tokens that a model reads, with their character offsets in the text or in the answer.

    A language model reads both as one text, so the offsets of an answer count from the beginning of the text.
    """

    text: str
    answer: str = ""
    source: tuple[Token, ...] = ()  # the encoder's input
    target: tuple[Token, ...] = ()  # the decoder's input; at each position it predicts the next token
    last: Token | None = None  # the token after the last position, if known: EOS, or the last before the limit

    @property
    def written(self) -> tuple[Token, ...]:
        """The token that follows each position of the target, as far as known."""
        return self.target[1:] if self.last is None else (*self.target[1:], self.last)


@runtime_checkable
class Prediction(Protocol):
    """The prediction for one text: a frozen dataclass, so that `asdict` makes it JSON."""

    @property
    def answer(self) -> Any:
        """The prediction itself: a text, a label, spans."""

    def line(self) -> str:
        """The prediction as one line of text."""


def one_line(text: str) -> str:
    """The text with its line breaks replaced by spaces."""
    return text.replace("\r", " ").replace("\n", " ")


@runtime_checkable
class TaskSettings(Protocol):
    """The settings of a task: a frozen dataclass whose `kind` names the task in `TASKS`."""

    @property
    def kind(self) -> str:
        """The task's name in a recipe."""


@runtime_checkable
class HasLossTerms(Protocol):
    """Settings of a task whose loss is more than the cross-entropy."""

    @property
    def loss_terms(self) -> Mapping[str, float]:
        """The weight of each term that raises the loss, by its name."""


@runtime_checkable
class Task(Protocol):
    """A model for a task, in training or trained: text in, text out."""

    shape: ClassVar[str]  # of the model: "encoder-decoder", "encoder" or "decoder"
    noun: ClassVar[str]  # what its rows are called, plural
    loss_unit: ClassVar[str]  # what the loss is averaged over, plural, abbreviated
    metrics: ClassVar[tuple[str, ...]]  # the metrics of `validate`; the first is the default
    settings_type: ClassVar[type]
    lens_examples: ClassVar[LensExamples]  # what the lens observes heads on
    quickstart: ClassVar[Quickstart | None]  # None: `manyheads quickstart` does not offer this task
    init: ClassVar[TaskInit]  # its part of `manyheads init`
    doctor: ClassVar[TaskDoctor]  # its part of `manyheads doctor`

    @property
    def settings(self) -> Any:
        """The task's settings in the recipe."""

    @property
    def model(self) -> Transformer:
        """The Transformer."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""

    @property
    def module(self) -> nn.Module:
        """Everything that is trained; the model is part of it, or all of it."""

    @staticmethod
    def fields(settings: Any) -> tuple[str, ...]:
        """The names of a row's fields."""

    @staticmethod
    def cleaning(settings: Any) -> Fields:
        """How many fields a row has, and which of them are texts to clean."""

    @staticmethod
    def languages(settings: Any) -> tuple[str, ...]:
        """The source and target language of pairs; () for tasks of one language."""

    @staticmethod
    def language_settings(languages: Sequence[str]) -> dict[str, Any]:
        """The settings that follow from the languages of the built-in corpus."""

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: Any, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Read the rows of one set of files; `columns` maps fields to columns, if the recipe names them."""

    @staticmethod
    def builtin(settings: Any, languages: Sequence[str], split: str, count: int, seed: int) -> Iterable[Row]:
        """Generate rows of the built-in corpus."""

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The texts that the tokenizer is trained on."""

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: Any) -> Sequence[Sequence[Sequence[int]]]:
        """Encode rows: for each stored column, the ids of each row."""

    @staticmethod
    def max_row_length(model: ModelSettings, settings: Any) -> int | None:
        """The maximum number of ids of a training row; None allows any number."""

    @classmethod
    def create(cls, model: Transformer, tokenizer: Tokenizer, settings: Any, rows: Iterable[Row]) -> "Task":
        """Create an untrained task; its labels, if it has any, are those of the rows."""

    @classmethod
    def restore(cls, model: Transformer, tokenizer: Tokenizer, settings: Any, metadata: Mapping[str, Any]) -> "Task":
        """Create the task that returned this `metadata`; its weights are loaded afterwards."""

    def metadata(self) -> dict[str, Any]:
        """What `restore` needs, as JSON values."""

    def training_task(self, data: TrainingData) -> Any:
        """The task as the training loop sees it: a `TrainingTask`."""

    def check(self, text: str, where: str) -> None:
        """Raise DataError if the model cannot read a text."""

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """The tokens that the model reads for a text and, if it generates, for an answer; too long a text is refused.

        Without an answer, the target ends where the model begins to generate.
        """

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that can be used for validation."""

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Score the model on a few rows during training."""

    def calibrate(self, rows: Sequence[Row]) -> "Task":
        """The trained task, calibrated on valid rows; for instance with a temperature."""

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> Sequence[Prediction]:
        """Predict for each text; `first` is the index of the first text within a longer sequence."""

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The statistics of the task's main score, row by row, to compare models on the same rows."""

    def score(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Card:
        """Compute the scorecard of a test set."""


@runtime_checkable
class GenerativeTask(Protocol):
    """A task whose model has a decoder and generates text."""

    def generate_one(
        self, model_input: ModelInput, settings: DecodeSettings, tap: Tap | None = None
    ) -> tuple[Hypothesis, ModelInput]:
        """The best hypothesis, as `predict` finds it, and the model input with it as the target."""


@runtime_checkable
class HasReferences(Protocol):
    """A task whose answers are texts that are scored against references, so that two systems can be compared."""

    def fits(self, text: str) -> bool:
        """Whether a text is short enough for the model."""

    def answer(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Answers:
        """Return the answers to all rows of a test set."""


@runtime_checkable
class CalibratedTask(Protocol):
    """A task whose probabilities are calibrated on validation rows."""

    def score_calibrated(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> Card:
        """Compute the scorecard of the rows that `calibrate` was given, without probabilities fitted to themselves."""


@runtime_checkable
class HasBaseline(Protocol):
    """A task that also fits a linear model, to be compared with and mixed into the answer."""

    @property
    def baseline_name(self) -> str:
        """What the linear model is called, such as "linear CRF"; "" if the recipe does not want one."""

    def baseline_tally(self, rows: Sequence[Row]) -> Tally:
        """The statistics of the main score of the linear model alone, row by row, as `tally` gives the model's."""

    def baseline_share(self, rows: Sequence[Row]) -> float:
        """How much of the decisions on these rows the linear model makes, from 0 to 1; heads act on the rest."""


@runtime_checkable
class StoresBaseline(Protocol):
    """A task whose linear model is not part of its module: a bundle stores it in a file of its own."""

    def baseline_tensors(self) -> Mapping[str, Tensor]:
        """The numbers of the linear model; nothing if there is none."""

    def with_baseline(self, tensors: Mapping[str, Tensor]) -> "Task":
        """The task with the linear model of these tensors; ValueError or TypeError if they do not fit."""


@runtime_checkable
class TunableTask(Protocol):
    """A task that chooses decoding settings on validation rows, where the recipe leaves them open."""

    def tune_decoding(
        self, rows: Sequence[Row], settings: DecodeSettings, metric: str
    ) -> tuple["Task", DecodeSettings, DecodingChoice | None]:
        """The task, calibrated for the settings to decode with; these settings; and the choice made by a metric."""


@runtime_checkable
class ThresholdTask(Protocol):
    """A task whose answers have probabilities, so that answers below a threshold can be left out."""

    def with_threshold(self, threshold: float) -> "Task":
        """The same task, leaving out what is less probable than the threshold."""

    def decisions(self, rows: Sequence[Row], progress: Progress = lambda done: None) -> Decisions:
        """The answers to rows without a threshold: their probabilities, and which are correct."""


@runtime_checkable
class ScopedTask(Protocol):
    """A task that tells texts which are unlike all of its training texts."""

    def score_out_of_scope(self, rows: Sequence[Row], texts: Sequence[str], name: str) -> Sequence[Score]:
        """Score how well texts that belong to no label are told from rows; `name` is that of the texts."""


@runtime_checkable
class StreamingTask(Protocol):
    """A task whose model continues a prompt."""

    def stream(self, prompt: str, settings: DecodeSettings, number: int = 0) -> Generator[str, None, bool]:
        """Yield the continuation of a prompt in parts; `number` is the prompt's index among many.

        The generator returns whether the continuation is finished, as `finished` of a candidate.
        """


@runtime_checkable
class ReadsFolders(Protocol):
    """A task that reads certain files of a folder instead of all of its text files."""

    @staticmethod
    def folder_files(folder: Path, table: Mapping[str, Any]) -> Sequence[Path] | None:
        """The files of a set that is given as a folder; None if they are its text files.

        `table` is the recipe's [task] table, which has not been checked yet.
        """


@runtime_checkable
class SupportsEngines(Task, Protocol):
    """A task that decodes with an engine."""

    def with_engine(self, engine: EngineSelector) -> "SupportsEngines":
        """The same task, decoding with this engine."""

    def engine_for(self, settings: DecodeSettings, n_texts: int = 1) -> Engine:
        """The engine that decodes this many texts with these settings."""
