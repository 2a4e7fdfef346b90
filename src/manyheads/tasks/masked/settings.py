"""Settings of the masked task."""

from dataclasses import dataclass
from typing import Annotated, Literal

from manyheads.settings import Range, raise_faults, type_faults
from manyheads.tasks.task import TaskSettings


@dataclass(frozen=True, kw_only=True)
class MaskedSettings(TaskSettings):
    """Which tokens of a text are masked."""

    kind: Literal["masked"] = "masked"  # predict masked tokens
    # What a document of plain text is; a row of a table is always one document.
    documents: Literal["file", "paragraph", "line"] = "file"
    mask_probability: Annotated[float, Range(greater_than=0, at_most=0.4)] = 0.15  # share of the tokens that are masked
    whole_words: bool = False  # mask all tokens of a word together

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task."))
