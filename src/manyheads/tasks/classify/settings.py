"""Settings of the classify task."""

import math
from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults
from manyheads.tasks.pooling import Pooling


@dataclass(frozen=True, kw_only=True)
class ClassifySettings:
    """How a text becomes one vector, and how its labels are learnt and given."""

    kind: Literal["classify"] = "classify"
    multi_label: bool = False  # whether a text may have several labels, or none
    separator: str = "|"  # between several labels of a row
    pooling: Pooling = "mean-max"
    head_dropout: float = 0.2  # of the pooled vector
    ngrams: int = 0  # up to so many tokens in a row also count by themselves, beside the Transformer; 0: none do
    class_weights: Literal["none", "balanced"] = "none"  # balanced: rare labels count as much in all as frequent ones
    smoothing: float = 0.1  # ε of label smoothing
    consistency: float = 0.0  # R-Drop's α: how much two passes with different dropout have to agree; 0: one pass
    threshold: float = 0.0  # a label less probable than this is not given; 0: the likeliest, and of several from ½ on

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task.") or self._faults())

    def _faults(self) -> list[str]:
        faults = [
            f"task.{name} = {getattr(self, name)} must be at least 0 and less than 1."
            for name in ("head_dropout", "smoothing", "threshold")
            if not 0.0 <= getattr(self, name) < 1.0
        ]
        if not 0.0 <= self.consistency < math.inf:
            faults.append(f"task.consistency = {self.consistency} must be at least 0 and finite, like 1.0.")
        if not 0 <= self.ngrams <= 5:
            faults.append(f"task.ngrams = {self.ngrams} must be at least 0 and at most 5.")
        if self.multi_label and not self.separator:
            faults.append('task.separator is empty: labels of one row are told apart by it. Use "|", for instance.')
        return faults

    def labels_of(self, field: str) -> tuple[str, ...]:
        """The labels that a row's field names."""
        if not self.multi_label:
            return (field,)
        return tuple(sorted({label.strip() for label in field.split(self.separator)} - {""}))
