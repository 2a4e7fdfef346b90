"""Settings of the language task."""

from dataclasses import dataclass
from typing import Annotated, Literal

from manyheads.settings import Range, raise_faults, type_faults
from manyheads.tasks.task import TaskSettings


@dataclass(frozen=True, kw_only=True)
class LanguageSettings(TaskSettings):
    """What a document is, and how text is scored; the context is model.max_length."""

    kind: Literal["language"] = "language"  # continue a text, token by token
    # What a document of plain text is; a row of a table is always one document.
    documents: Literal["file", "paragraph", "line"] = "file"
    # Tokens by which the scoring window moves; by default half the context.
    stride: Annotated[int, Range(1, 1_000_000, hint="Leave it out for half the context.")] | None = None

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task."))
