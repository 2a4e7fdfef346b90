"""Embed: an encoder whose vectors are pooled into one vector per text. Classifiers and taggers start from it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from torch import Tensor

from manyheads.data import pad
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError, RecipeError
from manyheads.messages import Message, _
from manyheads.metrics import Card, Tally
from manyheads.model import evaluating
from manyheads.settings import Range, raise_faults, type_faults
from manyheads.tasks.document_task import DocumentDoctor, DocumentTask
from manyheads.tasks.lens_examples import LensExamples, TextExamples
from manyheads.tasks.lens_output import Alternatives, LensOutput, LensProbe
from manyheads.tasks.model_inputs import ModelInput, Pool, batches_by_length, encoder_input, windows
from manyheads.tasks.task import AnswerForm, Progress, TaskSettings, TrainingData, ValidationResult
from manyheads.tasks.task_doctor import TaskDoctor
from manyheads.tasks.task_init import TaskInit
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import BOS, PAD
from manyheads.text.tokens.words import is_blank

_N_SHOWN = 4  # numbers of a vector in the lens


@dataclass(frozen=True, kw_only=True)
class EmbedSettings(TaskSettings):
    """How the vectors of a text's tokens become one vector."""

    kind: Literal["embed"] = "embed"  # the vector of a text
    documents: Literal["file", "paragraph", "line"] = "line"  # what a text of a plain file is
    pooling: Literal["first", "mean", "max"] = "mean"  # how token vectors become the vector of the text
    normalize: bool = False  # scale vectors to length 1, so that a dot product is the cosine
    # The most tokens read at once, special tokens included; None: model.max_length. A longer text is read in windows.
    max_tokens: Annotated[int, Range(3)] | None = None

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task."))


class EmbedInit(TaskInit):
    """`manyheads init` does not offer this task: nothing is trained for it."""

    kind = "embed"
    cli_name = "embed"
    is_offered = False


@dataclass(frozen=True)
class TextEmbedding:
    """The vector of a text; that of a blank text is empty."""

    answer: tuple[float, ...]
    n_tokens: int = 0  # that the model read, without special ones

    def line(self) -> str:
        """The numbers as a JSON list."""
        return json.dumps(self.answer)

    def cells(self) -> dict[str, str | float | None]:
        """The numbers as a JSON list, in one column."""
        return {"vector": self.line()}


class _NoProbe:
    """The probe of an answer without a probability."""

    def log_probabilities(self, n_rows: int) -> Float[Tensor, " N"]:
        """Zeros."""
        return torch.zeros(n_rows)

    def alternatives(self, position: int, instead: int | str) -> Alternatives:
        """Refused."""
        raise LensError(_("A vector has no alternatives. Fine-tune the model for a task that has answers."))

    def logits(self, position: int, n_rows: int) -> Float[Tensor, "N V"]:
        """Refused."""
        raise LensError(_("A vector has no alternatives. Fine-tune the model for a task that has answers."))


@dataclass(frozen=True)
class Embed(DocumentTask):
    """An encoder with pooling, as sentence-transformers has it."""

    shape: ClassVar[str] = "encoder"
    answer_form: ClassVar[AnswerForm] = "vector"
    noun: ClassVar[str] = "texts"
    loss_unit: ClassVar[str] = "texts"
    metrics: ClassVar[tuple[str, ...]] = ()
    settings_type: ClassVar[type] = EmbedSettings
    lens_examples: ClassVar[LensExamples] = TextExamples(is_annotated=True)
    init: ClassVar[TaskInit] = EmbedInit()
    doctor: ClassVar[TaskDoctor] = DocumentDoctor()

    settings: EmbedSettings

    @property
    def limit(self) -> int:
        """The maximum number of tokens of a text read at once."""
        most = self.settings.max_tokens or self.model.settings.max_length
        return min(most, self.model.settings.max_length) - self.tokenizer.n_framing

    def to_ids(self, texts: Sequence[ArrayLike]) -> Int[Tensor, "B S"]:
        """A batch of token ids, with what the encoder reads before and after a text."""
        return torch.from_numpy(pad(texts, before=BOS, after=self.tokenizer.closes)).to(self.model.device)

    def pooled(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B W"]:
        """The pooled vectors of a batch from `to_ids`, not normalized; gradients flow unless they are off."""
        is_real = ids != PAD
        pooled: Tensor = Pool(self.settings.pooling, self.model.settings.width)(
            self.model.encode(ids, is_real), is_real
        )
        return pooled

    def embed(self, texts: Sequence[str], progress: Progress = lambda done: None) -> Float[Tensor, "N W"]:
        """The vector of each text; a text of several windows has their mean, weighted by their tokens."""
        encoded = self.tokenizer.encode_batch(texts)
        parts = [
            (text, start, np.asarray(ids[start:end]))
            for text, ids in enumerate(encoded)
            for start, end in windows([1] * len(ids), self.limit)
        ]
        sums, counts = torch.zeros(len(texts), self.model.settings.width), torch.zeros(len(texts), 1)
        with evaluating(self.model):
            for batch in batches_by_length([len(ids) + self.tokenizer.n_framing for *_others, ids in parts]):
                owners, starts, tokens = zip(*(parts[part] for part in batch), strict=True)
                sizes = torch.tensor([[len(ids) + self.tokenizer.n_framing] for ids in tokens], dtype=torch.float32)
                pooled = self.pooled(self.to_ids(tokens)).float().cpu()
                sums.index_add_(0, torch.tensor(owners), sizes * pooled)
                counts.index_add_(0, torch.tensor(owners), sizes)
                progress(starts.count(0))
        vectors = sums / counts
        return F.normalize(vectors, dim=-1) if self.settings.normalize else vectors

    def predict(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[TextEmbedding]:
        """The vector of each text; none for a blank one."""
        vectors = self.embed(texts).tolist()
        return [
            TextEmbedding((), 0) if is_blank(text) else TextEmbedding(tuple(round(x, 7) for x in vector), len(ids))
            for text, vector, ids in zip(texts, vectors, self.tokenizer.encode_batch(texts), strict=True)
        ]

    def model_input(self, text: str, answer: str | None = None) -> ModelInput:
        """The tokens of a text, which must fit in one window."""
        return encoder_input(self.tokenizer, text, answer, self.tokenizer.iter_tokens(text), limit=self.limit)

    def lens_output(self, model_input: ModelInput) -> LensOutput:
        """The beginning of the vector: there is no word to show."""
        (vector,) = self.embed([model_input.text]).tolist()
        shown = ", ".join(f"{number:.3f}" for number in vector[:_N_SHOWN])
        note = Message("This model answers with a vector of {n_numbers:,} numbers.", n_numbers=len(vector))
        return LensOutput("embed", f"[{shown}, …]", notes=(note,))

    def lens_probe(self, model_input: ModelInput) -> LensProbe:
        """Nothing to measure: a vector has no probability."""
        return _NoProbe()

    def training_task(self, data: TrainingData) -> Any:
        """Refused."""
        raise self._not_trained()

    def validate(self, rows: Sequence[Row], metric: str) -> ValidationResult:
        """Refused."""
        raise self._not_trained()

    def tally(self, rows: Sequence[Row], settings: DecodeSettings) -> Tally:
        """Refused."""
        raise self._not_trained()

    def score(self, rows: Any, settings: DecodeSettings, progress: Progress = lambda done: None) -> Card:
        """Refused."""
        raise self._not_trained()

    def _not_trained(self) -> RecipeError:
        return RecipeError(
            _(
                "An embed bundle has vectors, but no answers to train or score. Train a classifier, a tagger or a "
                "masked language model that starts from it with init_from."
            )
        )
