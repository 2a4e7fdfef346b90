"""Settings of the masked task."""

from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults

_MAX_MASK_PROBABILITY = 0.4


@dataclass(frozen=True, kw_only=True)
class MaskedSettings:
    """What is hidden of a text."""

    kind: Literal["masked"] = "masked"
    documents: Literal["file", "paragraph", "line"] = "file"  # of plain text; a row of a table is always one
    mask_probability: float = 0.15  # of the tokens
    whole_words: bool = False  # tokens of one word are hidden together

    def __post_init__(self) -> None:
        faults = type_faults(self, "task.")
        if not faults and not 0 < self.mask_probability <= _MAX_MASK_PROBABILITY:
            faults.append(
                f"task.mask_probability = {self.mask_probability} must be more than 0 and at most "
                f"{_MAX_MASK_PROBABILITY}."
            )
        raise_faults(faults)
