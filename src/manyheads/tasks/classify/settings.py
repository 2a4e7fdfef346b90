"""Settings of the classify task."""

import math
from dataclasses import dataclass
from typing import Literal

from manyheads.settings import raise_faults, type_faults
from manyheads.tasks.pooling import Pooling


@dataclass(frozen=True, kw_only=True)
class ClassifySettings:
    """How a text is pooled into one vector, and how its labels are trained and predicted."""

    kind: Literal["classify"] = "classify"  # predict the label or labels of a text
    multi_label: bool = False  # a text may have several labels, or none
    separator: str = "|"  # between the labels of a row
    pooling: Pooling = "mean-max"  # how token vectors become the vector of the text
    head_dropout: float = 0.2  # dropout of the pooled vector
    ngrams: int = 0  # also score n-grams of up to this many tokens beside the Transformer; 0: none
    class_weights: Literal["none", "balanced"] = "none"  # balanced: every label has the same total weight
    smoothing: float = 0.1  # ε of label smoothing
    consistency: float = 0.0  # R-Drop's α: weight of the agreement of two passes with different dropout; 0: one pass
    threshold: float = 0.0  # minimum probability of a predicted label; 0: the likeliest, or ½ if multi_label

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
            faults.append('task.separator is empty: it separates the labels of a row. Use "|", for instance.')
        return faults

    def labels_of(self, field: str) -> tuple[str, ...]:
        """The labels in a row's label field."""
        if not self.multi_label:
            return (field,)
        return tuple(sorted({label.strip() for label in field.split(self.separator)} - {""}))
