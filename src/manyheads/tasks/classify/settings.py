"""Settings of the classify task."""

from dataclasses import dataclass
from typing import Annotated, Literal

from manyheads.messages import _
from manyheads.settings import Range, Rate, raise_faults, type_faults
from manyheads.tasks.model_inputs import Pooling
from manyheads.tasks.task import TaskSettings


@dataclass(frozen=True, kw_only=True)
class ClassifySettings(TaskSettings):
    """How a text is pooled into one vector, and how its labels are trained and predicted."""

    kind: Literal["classify"] = "classify"  # predict the label or labels of a text
    multi_label: bool = False  # a text may have several labels, or none
    separator: str = "|"  # between the labels of a row
    pooling: Pooling = "mean-max"  # how token vectors become the vector of the text
    head_dropout: Rate = 0.2  # dropout of the pooled vector
    # Also fit a linear classifier of word and character n-grams. Its score is shown beside the model's, and the
    # answer is a mixture of both, weighted on the validation rows.
    baseline: bool = True
    # Also pool a convolution over this many neighboring tokens, beside attention; 0: none.
    convolution: Annotated[int, Range(0, 9)] = 0
    class_weights: Literal["none", "balanced"] = "none"  # balanced: every label has the same total weight
    smoothing: Rate = 0.1  # ε of label smoothing
    # R-Drop's α: weight of the agreement of two passes with different dropout, such as 1; 0: one pass.
    consistency: Annotated[float, Range(0)] = 0.0
    threshold: Rate = 0.0  # minimum probability of a predicted label; 0: the likeliest, or ½ if multi_label

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task.") or self._faults())

    def _faults(self) -> list[str]:
        if self.multi_label and not self.separator:
            return [_('task.separator is empty: it separates the labels of a row. Use "|", for instance.')]
        return []

    @property
    def loss_terms(self) -> dict[str, float]:
        """What the loss contains beside the cross-entropy."""
        terms = {"label smoothing": self.smoothing, "R-Drop": self.consistency}
        return {name: weight for name, weight in terms.items() if weight}

    def labels_of(self, field: str) -> tuple[str, ...]:
        """The labels in a row's label field."""
        if not self.multi_label:
            return (field,)
        return tuple(sorted({label.strip() for label in field.split(self.separator)} - {""}))
