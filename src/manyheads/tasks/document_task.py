"""`DocumentTask`: reading and encoding, shared by the tasks whose rows are whole documents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from manyheads import corpora
from manyheads.data.cleaning import Fields
from manyheads.model import ModelSettings
from manyheads.text.documents import read_documents
from manyheads.text.files import OnBad
from manyheads.text.readers import Row
from manyheads.text.tokenizer import Tokenizer


@runtime_checkable
class DocumentSettings(Protocol):
    """Settings that define what a document is."""

    @property
    def documents(self) -> Literal["file", "paragraph", "line"]:
        """What a document of plain text is; a row of a table is always one."""


class DocumentTask:
    """A task whose rows are documents of any length."""

    noun: ClassVar[str] = "documents"

    @staticmethod
    def fields(settings: DocumentSettings) -> tuple[str, ...]:
        """The text."""
        return ("text",)

    @staticmethod
    def cleaning(settings: DocumentSettings) -> Fields:
        """The one field is a text."""
        return Fields(n_fields=1, n_texts=1)

    @staticmethod
    def languages(settings: DocumentSettings) -> tuple[str, ...]:
        """The task has one language."""
        return ()

    @staticmethod
    def language_settings(languages: Sequence[str]) -> dict[str, Any]:
        """No setting depends on the language."""
        return {}

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
    def lines(rows: Iterable[Row]) -> Iterator[str]:
        """The documents; line breaks are characters like any other."""
        return (text for (text,) in rows)

    @staticmethod
    def encode_rows(rows: Sequence[Row], tokenizer: Tokenizer, settings: DocumentSettings) -> list[list[list[int]]]:
        """The token ids of each document."""
        return [tokenizer.encode_batch([text for (text,) in rows])]

    @staticmethod
    def max_row_length(model: ModelSettings, settings: DocumentSettings) -> int | None:
        """Any number: documents are cut into windows."""
        return None

    def metadata(self) -> dict[str, Any]:
        """Everything is in the settings."""
        return {}

    def usable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that are not empty."""
        return (row for row in rows if row[0])
