"""`Classification`: the prediction of classify."""

from collections.abc import Mapping
from dataclasses import dataclass

from manyheads.tasks.out_of_scope import THRESHOLD

UNSURE = "?"  # written if no label is predicted


@dataclass(frozen=True)
class Classification:
    """The labels of one text."""

    labels: tuple[str, ...]  # one, or any number if multi_label; none if below the threshold
    probability: float | None  # of the label; if multi_label, of exactly this set of labels; None for a blank text
    probabilities: Mapping[str, float]  # of every label, the likeliest first; empty for a blank text
    separator: str = "|"
    # How much of the decision the linear classifier of n-grams made, from 0 to 1; the rest is the Transformer's.
    ngram_share: float | None = None
    out_of_scope: float | None = None  # 0 to 1; above ½ the text is unlike those it was trained on; None: not known

    @property
    def answer(self) -> str:
        """The label, or several joined by the separator."""
        return self.separator.join(self.labels)

    @property
    def is_out_of_scope(self) -> bool:
        """Whether the text is unlike all training texts, so that probably no label fits."""
        return self.out_of_scope is not None and self.out_of_scope > THRESHOLD

    def line(self) -> str:
        """Label and probability, separated by a tab; empty for a blank text."""
        if self.probability is None:
            return ""
        return f"{self.answer or UNSURE}\t{self.probability:.4f}"
