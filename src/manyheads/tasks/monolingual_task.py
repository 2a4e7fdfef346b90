"""`MonolingualTask` and `DocumentTask`: what tasks of one language, and tasks on whole documents, have in common."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from manyheads import corpora
from manyheads.data import Windows, choose_examples, cut_windows
from manyheads.data.cleaning import Fields
from manyheads.errors import RecipeError
from manyheads.messages import _
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks.task import TrainingData
from manyheads.text.reading.documents import read_documents
from manyheads.text.reading.files import OnBad
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Tokenizer

_T = TypeVar("_T", bound="DocumentTask")  # jaxtyping's beartype does not support Self

_SHOWN_TOKENS = 20  # of a window, in `describe_windows`


class MonolingualTask:
    """A task whose rows have one text, in one language."""

    @staticmethod
    def languages(settings: Any) -> tuple[str, ...]:
        """The task has one language."""
        return ()

    @staticmethod
    def language_settings(languages: Sequence[str]) -> dict[str, Any]:
        """No setting depends on the language."""
        return {}

    @staticmethod
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The texts, without labels or tags."""
        return (row[0] for row in rows)

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that are not blank."""
        return (row for row in rows if row[0].strip())


@runtime_checkable
class DocumentSettings(Protocol):
    """Settings that define what a document is."""

    @property
    def documents(self) -> Literal["file", "paragraph", "line"]:
        """What a document of plain text is; a row of a table is always one."""


@dataclass(frozen=True)
class DocumentTask(MonolingualTask):
    """A task whose rows are documents of any length, and whose module is the Transformer alone."""

    noun: ClassVar[str] = "documents"

    model: Transformer
    tokenizer: Tokenizer
    settings: Any

    @property
    def module(self) -> Transformer:
        """The model."""
        return self.model

    @staticmethod
    def fields(settings: DocumentSettings) -> tuple[str, ...]:
        """The text."""
        return ("text",)

    @staticmethod
    def cleaning(settings: DocumentSettings) -> Fields:
        """The one field is a text."""
        return Fields(n_fields=1, n_texts=1)

    @staticmethod
    def read(
        files: Sequence[str], columns: Mapping[str, str], settings: DocumentSettings, on_bad: OnBad | None = None
    ) -> Iterator[Row]:
        """Read documents from any number of files."""
        return read_documents(files, settings.documents, columns.get("text"), on_bad=on_bad)

    @staticmethod
    def builtin(
        settings: DocumentSettings, languages: Sequence[str], split: str, count: int, seed: int
    ) -> Iterable[Row]:
        """Stories."""
        (language,) = languages
        return corpora.rows("generate", language, split, count, seed)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: DocumentSettings) -> list[list[list[int]]]:
        """The token ids of each document; line breaks are characters like any other."""
        return [tokenizer.encode_batch([text for (text,) in rows])]

    @staticmethod
    def max_row_length(model: ModelSettings, settings: DocumentSettings) -> int | None:
        """No limit: documents are cut into windows."""
        return None

    @classmethod
    def create(cls: type[_T], model: Transformer, tokenizer: Tokenizer, settings: Any, rows: Iterable[Row] = ()) -> _T:
        """Create an untrained model."""
        return cls(model, tokenizer, settings)

    @classmethod
    def restore(
        cls: type[_T], model: Transformer, tokenizer: Tokenizer, settings: Any, metadata: Mapping[str, Any]
    ) -> _T:
        """Create the model; there is no metadata."""
        return cls(model, tokenizer, settings)

    def metadata(self) -> dict[str, Any]:
        """Everything is in the settings."""
        return {}

    def calibrate(self: _T, rows: Sequence[Row]) -> _T:
        """Nothing is calibrated."""
        return self

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that are not empty."""
        return (row for row in rows if row[0])


def epoch_windows(data: TrainingData, lengths: Any, size: int, epoch: int) -> Windows:
    """Windows of at most `size` tokens of the documents with these lengths, cut differently in every epoch."""
    chosen = choose_examples(data.boundaries, data.weights, seed=data.seed, epoch=epoch)
    windows = cut_windows(lengths if chosen is None else lengths[chosen], size, seed=data.seed, epoch=epoch)
    if chosen is not None:
        windows[:, 0] = chosen[windows[:, 0]]
    return windows


def describe_windows(data: TrainingData, tokenizer: Tokenizer, windows: Windows) -> str:
    """The number of windows (document, start, end), and the beginnings of the first three."""
    column = data.encoded.columns[0]
    beginnings = [column[document][start : start + _SHOWN_TOKENS] for document, start, _ in windows[:3].tolist()]
    texts = ", ".join(f"“{tokenizer.decode(ids.tolist())}…”" for ids in beginnings)
    return f"{len(windows)} windows, {texts}{' …' if len(windows) > 3 else ''}"


def refuse_sampling(data: TrainingData, noun: str) -> None:
    """Raise RecipeError if subword sampling is set: windows are cut from stored tokens."""
    if data.sampling:
        raise RecipeError(
            _(
                "tokenizer.sampling = {sampling}: {noun} is trained on stored tokens. Use 0.",
                sampling=data.sampling,
                noun=noun,
            )
        )
