"""What the scorecards of labels and of spans percentage: a row for each label, and which label was taken for which."""

from collections.abc import Sequence
from dataclasses import dataclass

from manyheads.metrics.bootstrap import Sums, f1, percentage

NOTHING = "∅"  # in a confusion matrix: no answer, or no span
N_WORST = 20
_LONGEST = 500  # characters shown of a text


@dataclass(frozen=True)
class LabelRow:
    """How well one label is found, in per cent."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int  # how often it is in the gold answers


@dataclass(frozen=True)
class Confusion:
    """How often a gold label (row) was predicted as another or itself (column).

    `NOTHING` is the last label where it is needed: its column holds what got no answer, its row what was invented.
    """

    labels: Sequence[str]
    counts: Sequence[Sequence[int]]


def label_rows(labels: Sequence[str], right: Sums, predicted: Sums, gold: Sums) -> list[LabelRow]:
    """A row for each label that is in the gold answers or was predicted."""
    columns = (percentage(right, predicted), percentage(right, gold), f1(right, predicted, gold))
    precisions, recalls, f1s = (column.tolist() for column in columns)
    return [
        LabelRow(label, precisions[at], recalls[at], f1s[at], int(gold[at]))
        for at, label in enumerate(labels)
        if gold[at] + predicted[at] > 0
    ]


def shortened(text: str) -> str:
    """As much of a text as anybody would read."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
