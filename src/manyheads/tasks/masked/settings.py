"""Settings of the masked task."""

from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults

_MAX_MASK_PROBABILITY = 0.4


@dataclass(frozen=True, kw_only=True)
class MaskedSettings:
    """Which tokens of a text are masked."""

    kind: Literal["masked"] = "masked"  # predict masked tokens
    # What a document of plain text is; a row of a table is always one document.
    documents: Literal["file", "paragraph", "line"] = "file"
    mask_probability: float = 0.15  # share of the tokens that are masked
    whole_words: bool = False  # mask all tokens of a word together

    def __post_init__(self) -> None:
        faults = type_faults(self, "task.")
        if not faults and not 0 < self.mask_probability <= _MAX_MASK_PROBABILITY:
            faults.append(
                f"task.mask_probability = {self.mask_probability} must be more than 0 and at most "
                f"{_MAX_MASK_PROBABILITY}."
            )
        raise_faults(faults)
