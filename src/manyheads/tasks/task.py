"""`Task`: what runs, bundles and commands know of a task, and the types in it.

A task is a subclass of `Task`. It defines how rows are read and encoded, what is trained on them, and how a trained
model predicts and is scored. The methods with a default suit a task whose rows have one text, in one language.
`GenerativeTask`, `PairTask` and `LabelingTask` add what only tasks of their kind have. No other package tests a task's
name: it asks for one of these classes, or for an attribute. The model and training packages do not know tasks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.data import Encoded
from manyheads.data.cleaning import Fields
from manyheads.decode import DecodeSettings, Engine, EngineSelector, Hypothesis
from manyheads.errors import BundleError, LensError
from manyheads.messages import Message, _
from manyheads.metrics import Answers, Card, Decisions, Score, Tally, format_score
from manyheads.model import ModelSettings, Tap, Transformer
from manyheads.tasks.lens_examples import LensExamples
from manyheads.tasks.lens_output import LensOutput, LensProbe
from manyheads.tasks.model_inputs import ModelInput
from manyheads.tasks.proposal import Quickstart
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import TaskInit
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.readers import Row
from manyheads.text.reading.row_spec import Converter, turns_converter
from manyheads.text.tokens.tokenizer import Tokenizer

Progress = Callable[[int], None]  # called with the number of rows done since the last call

# What the answer to a text is: another text, the continuation of the text, its labels, labeled spans of it, the tokens
# for its masks, or a vector.
AnswerForm = Literal["text", "continuation", "labels", "spans", "masks", "vector"]

_SETTINGS = {"length_penalty": Message("length penalty")}  # as people read them


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
        return Message(
            "{setting} {value:g}, chosen by {metric} on {n_rows:,} validation rows; differences within one standard "
            "error do not count ({scores})",
            setting=_SETTINGS.get(self.setting, self.setting),
            value=self.value,
            metric=self.metric,
            n_rows=self.n_rows,
            scores=", ".join(f"{value}: {format_score(self.metric, score)}" for value, score in self.scores.items()),
        )


@runtime_checkable
class Prediction(Protocol):
    """The prediction for one text: a frozen dataclass, so that `asdict` makes it JSON."""

    @property
    def answer(self) -> Any:
        """The prediction itself: a text, a label, spans."""

    def line(self) -> str:
        """The prediction as one line of text."""

    def cells(self) -> dict[str, str | float | None]:
        """The prediction as columns of a table: such as "label" and "probability"."""


def one_line(text: str) -> str:
    """The text with its line breaks replaced by spaces."""
    return text.replace("\r", " ").replace("\n", " ")


class TaskSettings:
    """The settings of a task: a frozen dataclass whose `kind` names the task in `TASKS`."""

    kind: str

    @property
    def loss_terms(self) -> Mapping[str, float]:
        """The weight of each term that raises the loss above the cross-entropy, by its name."""
        return {}

    @property
    def fits_head(self) -> bool:
        """Whether `fit_head` fits something before the first step, so that a run may have no steps."""
        return False


class Task(ABC):
    """A model for a task, in training or trained: text in, an answer out."""

    shape: ClassVar[str]  # of the model: "encoder-decoder", "encoder" or "decoder"
    answer_form: ClassVar[AnswerForm]
    noun: ClassVar[str]  # what its rows are called, plural
    loss_unit: ClassVar[str]  # what the loss is averaged over, plural, abbreviated
    metrics: ClassVar[tuple[str, ...]]  # the metrics of `validate`; the first is the default
    mask_text: ClassVar[str] = ""  # what a text must contain, where the model fills something in
    settings_type: ClassVar[type]
    lens_examples: ClassVar[LensExamples]  # what the lens observes heads on
    quickstart: ClassVar[Quickstart | None] = None  # None: `manyheads quickstart` does not offer this task
    init: ClassVar[TaskInit]  # its part of `manyheads init`
    doctor: ClassVar[TaskDoctor] = TaskDoctor()  # its part of `manyheads doctor`

    if TYPE_CHECKING:  # fields of most tasks: a property here would be the default of such a field

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

    # Rows.

    @staticmethod
    @abstractmethod
    def fields(settings: Any) -> tuple[str, ...]:
        """The names of a row's fields."""

    @staticmethod
    @abstractmethod
    def cleaning(settings: Any) -> Fields:
        """How many fields a row has, and which of them are texts to clean."""

    @staticmethod
    def languages(settings: Any) -> tuple[str, ...]:
        """The source and target language of pairs; () for tasks of one language."""
        return ()

    @staticmethod
    def language_settings(languages: Sequence[str]) -> dict[str, Any]:
        """The settings that follow from the languages of the built-in corpus."""
        return {}

    @staticmethod
    def folder_files(folder: Path, table: Mapping[str, Any]) -> Sequence[Path] | None:
        """The files of a set that is given as a folder; None if they are its text files.

        `table` is the recipe's [task] table, which has not been checked yet.
        """
        return None

    @staticmethod
    @abstractmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: Any, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Read the rows of one set of files; `columns` maps fields to columns, if the recipe names them."""

    @staticmethod
    def text_converter(settings: Any) -> Converter:
        """Convert the text of a row to predict for, if it is a list in JSON or Parquet: words, by default."""
        return turns_converter(" ")

    @staticmethod
    @abstractmethod
    def builtin(settings: Any, languages: Sequence[str], split: str, count: int, seed: int) -> Iterable[Row]:
        """Generate rows of the built-in corpus."""

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The texts that the tokenizer is trained on."""
        return (row[0] for row in rows)

    @staticmethod
    @abstractmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: Any) -> Sequence[Sequence[Sequence[int]]]:
        """Encode rows: for each stored column, the ids of each row."""

    @staticmethod
    def max_row_length(model: ModelSettings, settings: Any) -> int | None:
        """The maximum number of ids of a training row; None allows any number."""
        return None

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that can be used for validation."""
        return (row for row in rows if row[0].strip())

    # Training.

    @classmethod
    @abstractmethod
    def create(cls, model: Transformer, tokenizer: Tokenizer, settings: Any, rows: Iterable[Row]) -> "Task":
        """Create an untrained task; its labels, if it has any, are those of the rows."""

    @classmethod
    @abstractmethod
    def restore(cls, model: Transformer, tokenizer: Tokenizer, settings: Any, metadata: Mapping[str, Any]) -> "Task":
        """Create the task that returned this `metadata`; its weights are loaded afterwards."""

    def metadata(self) -> dict[str, Any]:
        """What `restore` needs, as JSON values."""
        return {}

    def fit_head(self, rows: Iterable[Row]) -> None:  # noqa: B027
        """Fit what needs no gradients, such as an output layer on a pretrained encoder, before the first step."""

    def refit_head(self, train: Sequence[Row], valid: Sequence[Row]) -> "Task":
        """The task with all that `fit_head` fits fitted on both sets; it answers these rows as if it lacked them."""
        return self

    @property
    def is_refitted(self) -> bool:
        """Whether `refit_head` fitted it on the validation rows, too."""
        return False

    def fitted_loss(self, rows: Sequence[Row]) -> float:
        """The loss of validation rows, after calibration, by which weights are compared."""
        raise NotImplementedError

    def with_trained_share(self, share: float) -> "Task":
        """The task, noting how far its weights are on the way from those of `fit_head` to the trained ones."""
        return self

    @abstractmethod
    def training_task(self, data: TrainingData) -> Any:
        """The task as the training loop sees it: a `TrainingTask`."""

    @abstractmethod
    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Score the model on a few rows during training."""

    def calibrate(self, rows: Sequence[Row]) -> "Task":
        """The trained task, calibrated on valid rows; for instance with a temperature."""
        return self

    def sparse_weights(self) -> set[str]:
        """The names of the weights of which most rows are zero by nature."""
        return set()

    # Prediction.

    @property
    def continues_prompts(self) -> bool:
        """Whether the model continues a prompt, which may be blank."""
        return self.answer_form == "continuation"

    def check(self, text: str, where: str) -> None:  # noqa: B027
        """Raise DataError if the model cannot read a text."""

    @abstractmethod
    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """The tokens that the model reads for a text and, if it generates, for an answer; too long a text is refused.

        Without an answer, the target ends where the model begins to generate.
        """

    def text_to_read(self, text: str) -> tuple[str, tuple[Message, ...]]:
        """The text as `predict` has the model read it, and notes about what `predict` does besides."""
        return text, ()

    @abstractmethod
    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> Sequence[Prediction]:
        """Predict for each text; `first` is the index of the first text within a longer sequence."""

    def with_engine(self, engine: EngineSelector) -> "Task":
        """The same task, decoding with this engine if it decodes with engines."""
        return self

    @abstractmethod
    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """The statistics of the task's main score, row by row, to compare models on the same rows."""

    @abstractmethod
    def score(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Card:
        """Compute the scorecard of a test set."""

    def embed(self, texts: Sequence[str], progress: Progress = lambda done: None) -> Float[Tensor, "N W"]:
        """The vector of each text, if the model has one."""
        raise BundleError(
            _(
                "A bundle of the task {kind} has no vector for a text. Use one of the task embed or classify: "
                "manyheads import makes them from encoders.",
                kind=self.settings.kind,
            )
        )

    # The lens.

    def lens_output(self, model_input: ModelInput) -> LensOutput:
        """The output for an input; a model with a decoder is forced to write the input's target."""
        raise self._no_lens_output()

    def lens_probe(self, model_input: ModelInput) -> LensProbe:
        """The present answer to this input, to be measured again with other gates."""
        raise self._no_lens_output()

    def _no_lens_output(self) -> LensError:
        return LensError(
            _("The lens cannot show the answers of {name}: it has no lens_output.", name=type(self).__name__)
        )


class GenerativeTask(Task):
    """A task whose model has a decoder and generates text."""

    @abstractmethod
    def generate_one(
        self, model_input: ModelInput, settings: DecodeSettings, tap: Tap | None = None
    ) -> tuple[Hypothesis, ModelInput]:
        """The best hypothesis, as `predict` finds it, and the model input with it as the target."""

    def stream(self, prompt: str, settings: DecodeSettings, number: int = 0) -> Generator[str, None, bool]:
        """Yield the answer to a text in parts; `number` is the text's index among many.

        The generator returns whether the answer is finished, as `finished` of a candidate.
        """
        (prediction,) = self.predict([prompt], settings, number)
        yield prediction.answer
        return True


class PairTask(GenerativeTask):
    """A task whose rows are a text and the text to generate from it, which answers are scored against.

    Its decoding settings are chosen on validation rows, where the recipe leaves them open, and engines decode for it.
    """

    @property
    def is_translation(self) -> bool:
        """Whether answers are translations, which can be required to contain certain terms."""
        return False

    @property
    def has_confidence(self) -> bool:
        """Whether predictions have a confidence, by which the model can abstain."""
        return False

    @abstractmethod
    def predict(
        self,
        texts: Sequence[str],
        settings: DecodeSettings,
        first: int = 0,
        progress: Progress = lambda done: None,
        options: Sequence[Any] | None = None,
    ) -> Sequence[Prediction]:
        """Predict for each text; `options` are what the answer to each must satisfy, if it is a translation."""

    def fits(self, text: str) -> bool:
        """Whether a text is short enough for the model."""
        return True

    @abstractmethod
    def answer(self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None) -> Answers:
        """Return the answers to all rows of a test set, with their references."""

    def tune_decoding(
        self, rows: Sequence[Row], settings: DecodeSettings, metric: str
    ) -> tuple["PairTask", DecodeSettings, DecodingChoice | None]:
        """The task, calibrated for the settings to decode with; these settings; and the choice made by a metric."""
        return self, settings, None

    @abstractmethod
    def with_engine(self, engine: EngineSelector) -> "PairTask":
        """The same task, decoding with this engine."""

    @abstractmethod
    def engine_for(self, settings: DecodeSettings, n_texts: int = 1) -> Engine:
        """The engine that decodes this many texts with these settings."""


class LabelingTask(Task):
    """A task whose answers are labels with probabilities, calibrated on validation rows.

    It may also fit a linear model, the baseline, to be compared with and mixed into the answer. A bundle stores it in a
    file of its own.
    """

    @abstractmethod
    def with_threshold(self, threshold: float) -> "Task":
        """The same task, leaving out what is less probable than the threshold."""

    @abstractmethod
    def decisions(self, rows: Sequence[Row], progress: Progress = lambda done: None) -> Decisions:
        """The answers to rows without a threshold: their probabilities, and which are correct."""

    def score_calibrated(
        self, rows: Iterable[Row], settings: DecodeSettings, progress: Progress = lambda done: None
    ) -> Card:
        """Compute the scorecard of the rows that `calibrate` was given, without probabilities fitted to themselves."""
        return self.score(rows, settings, progress)

    def score_out_of_scope(self, rows: Sequence[Row], texts: Sequence[str], name: str) -> Sequence[Score]:
        """Score how well texts that belong to no label are told from rows; `name` is that of the texts."""
        return ()

    @property
    def baseline_name(self) -> str:
        """What the linear model is called, such as "linear CRF"; "" if there is none."""
        return ""

    def baseline_tensors(self) -> Mapping[str, Tensor]:
        """The numbers of the linear model; nothing if there is none."""
        return {}

    def with_baseline(self, tensors: Mapping[str, Tensor]) -> "Task":
        """The task with the linear model of these tensors; ValueError or TypeError if they do not fit."""
        raise TypeError("this task has no baseline.")

    def baseline_alone(self) -> "LabelingTask":
        """The task with the answers of the linear model alone; the Transformer is not computed."""
        raise TypeError("this task has no baseline.")

    def baseline_tally(self, rows: Sequence[Row]) -> Tally:
        """The statistics of the main score of the linear model alone, row by row, as `tally` gives the model's."""
        raise TypeError("this task has no baseline.")

    def baseline_share(self, rows: Sequence[Row]) -> float:
        """How much of the decisions on these rows the linear model makes, from 0 to 1; heads act on the rest."""
        return 0.0
