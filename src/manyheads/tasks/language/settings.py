"""Settings of the language task."""

from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults


@dataclass(frozen=True, kw_only=True)
class LanguageSettings:
    """What a document is, and how text is scored; the context is model.max_length."""

    kind: Literal["language"] = "language"  # continue a text, token by token
    # What a document of plain text is; a row of a table is always one document.
    documents: Literal["file", "paragraph", "line"] = "file"
    stride: int | None = None  # tokens by which the scoring window moves; by default half the context

    def __post_init__(self) -> None:
        faults = type_faults(self, "task.")
        if not faults and self.stride is not None and self.stride < 1:
            faults.append(f"task.stride = {self.stride} must be at least 1. Leave it out for half the context.")
        raise_faults(faults)
