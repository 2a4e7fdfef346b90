"""Sections: the neutral parts that a scorecard consists of.

A scorecard describes itself as a list of sections. The terminal and the HTML report render sections by type and know
no scorecard class, so a new task needs no renderer of its own. `card_record` writes a card's sections to the log of a
run; `read_sections` reads them back.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

from manyheads.language import LANGUAGES
from manyheads.messages import Message, RecordedMessage
from manyheads.metrics.bootstrap import Sums, f1, percentage
from manyheads.metrics.score import Score
from manyheads.metrics.significance import Difference
from manyheads.metrics.tallies import Change

NO_LABEL = "∅"  # in a confusion matrix: no answer, or no span


@dataclass(frozen=True)
class Figure:
    """A named number; with `total`, its share of the total is shown too."""

    name: Message
    value: float
    total: int | None = None


@dataclass(frozen=True)
class Figures:
    """Numbers that are not scores, such as the size of the test set."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Note:
    """Something the reader should know before comparing the scores."""

    text: Message


@dataclass(frozen=True)
class LabelRow:
    """Precision, recall and F1 of one label in percent."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int  # number of gold occurrences


@dataclass(frozen=True)
class LabelTable:
    """One row for each label."""

    rows: Sequence[LabelRow]


@dataclass(frozen=True)
class Confusion:
    """How often a gold label (row) was predicted as each label (column).

    If `NO_LABEL` occurs, it comes last: its column counts missing answers, its row answers without a gold label.
    """

    labels: Sequence[str]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class ExampleRow:
    """One text of the test set, the model's answer and the expected one."""

    number: int  # in the test set, from 1
    text: str
    answer: str
    expected: str
    probability: float | None = None


@dataclass(frozen=True)
class Examples:
    """Examples under a title."""

    title: Message
    rows: Sequence[ExampleRow]
    are_random: bool = False  # drawn at random, so that they represent the test set


@dataclass(frozen=True)
class GenerationSample:
    """A prompt and the text that the model generated after it."""

    prompt: str
    text: str


@dataclass(frozen=True)
class Generations:
    """Generated texts, which have no reference to compare with."""

    samples: Sequence[GenerationSample]


@dataclass(frozen=True)
class Comparison:
    """Differences to another system on the same test set."""

    other: str
    differences: Sequence[Difference]


_FAST = 2.0  # times as fast: then a simple model that is as good is worth taking


@dataclass(frozen=True)
class Baseline:
    """The score of a simple model on the same texts, and how much better the evaluated model is."""

    name: str  # of the simple model
    change: Change  # from the simple model to the evaluated one
    is_optimistic: bool = False  # the evaluated model was fitted to these texts in part: no verdict that it is better
    speedup: float | None = field(default=None, compare=False)  # how many times as fast the simple model is

    @property
    def interval(self) -> str:
        """The interval of the difference; "" if every text is scored alike, since it would be a point."""
        low, high = self.change.low, self.change.high
        return f"[{low:+.1f}, {high:+.1f}]" if low or high else ""

    @property
    def verdict(self) -> Message:
        """Whether the evaluated model is better, in words."""
        is_clear = self.change.low * self.change.high > 0
        if not is_clear and self.speedup is not None and self.speedup >= _FAST:
            return Message(
                "no clear difference: alone, the baseline is {speedup:,.0f} × as fast (--baseline-only)",
                speedup=self.speedup,
            )
        if self.is_optimistic:
            return Message("optimistic: the mixture was chosen on this set")
        if not self.interval:
            return Message("every text is scored alike")
        if -self.change.cost > 0 and self.change.low * self.change.high > 0:
            return Message("better than the baseline")
        if self.change.low * self.change.high > 0:
            return Message("worse than the baseline")
        return Message("no clear difference from the baseline")


Section = Baseline | Figures | Note | LabelTable | Confusion | Examples | Generations | Comparison


@runtime_checkable
class Card(Protocol):
    """The scorecard of a test set: a frozen dataclass, so that `asdict` makes it JSON."""

    @property
    def scores(self) -> Sequence[Score]:
        """The scores, each with its interval; the main one first."""

    def sections(self) -> Sequence[Section]:
        """Return the other parts of the card, in reading order."""


def score_labels(labels: Sequence[str], correct: Sums, predicted: Sums, gold: Sums) -> list[LabelRow]:
    """Return a row for each label that is gold or predicted at least once."""
    columns = (percentage(correct, predicted), percentage(correct, gold), f1(correct, predicted, gold))
    precisions, recalls, f1s = (column.tolist() for column in columns)
    return [
        LabelRow(label, precisions[index], recalls[index], f1s[index], int(gold[index]))
        for index, label in enumerate(labels)
        if gold[index] + predicted[index] > 0
    ]


def truncate(text: str, longest: int) -> str:
    """Return the text, truncated to `longest` characters."""
    return text if len(text) <= longest else text[:longest] + "…"


def plain_texts(value: Any) -> Any:
    """Return nested data for JSON: a message as the list of its texts, one in each language."""
    if isinstance(value, Message):
        return list(value.by_language().values())
    if isinstance(value, dict):
        return {key: plain_texts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_texts(item) for item in value]
    return value


def card_record(card: Card) -> dict[str, Any]:
    """Return the scores and sections of a card as JSON-serializable data for the log of a run."""
    return {
        "scores": [asdict(score) for score in card.scores],
        "sections": [
            {"section": type(section).__name__, **plain_texts(asdict(section))} for section in card.sections()
        ],
    }


def read_sections(record: object) -> list[Section]:
    """Return the sections of a card's record; sections that are damaged or unknown are left out."""
    entries = record.get("sections") if isinstance(record, Mapping) else None
    sections = []
    for entry in entries if isinstance(entries, list | tuple) else []:
        reader = _READERS.get(str(entry.get("section"))) if isinstance(entry, Mapping) else None
        if reader:
            try:
                sections.append(reader(entry))
            except (KeyError, TypeError, ValueError):
                continue
    return sections


def _read_figures(entry: Mapping[str, Any]) -> Figures:
    return Figures(
        [Figure(_message(figure["name"]), _number(figure["value"]), figure.get("total")) for figure in entry["figures"]]
    )


def _read_label_table(entry: Mapping[str, Any]) -> LabelTable:
    return LabelTable(
        [
            LabelRow(
                label=_text(row["label"]),
                precision=_number(row["precision"]),
                recall=_number(row["recall"]),
                f1=_number(row["f1"]),
                support=int(row["support"]),
            )
            for row in entry["rows"]
        ]
    )


def _read_confusion(entry: Mapping[str, Any]) -> Confusion:
    labels, counts = [str(label) for label in entry["labels"]], entry["counts"]
    is_square = labels and len(counts) == len(labels) and all(len(row) == len(labels) for row in counts)
    if not is_square or not all(isinstance(count, int) and count >= 0 for row in counts for count in row):
        raise ValueError("A confusion matrix is square and holds counts.")
    return Confusion(labels, counts)


def _read_examples(entry: Mapping[str, Any]) -> Examples:
    rows = [
        ExampleRow(int(row["number"]), _text(row["text"]), _text(row["answer"]), _text(row["expected"]))
        for row in entry["rows"]
    ]
    return Examples(_message(entry["title"]), rows, bool(entry.get("are_random")))


def _read_baseline(entry: Mapping[str, Any]) -> Baseline:
    change = entry["change"]
    names = ("value", "before", "difference", "low", "high")
    figures = {name: _number(change[name]) for name in names}
    change = Change(_text(change["name"]), **figures, n_texts=int(change["n_texts"]))
    speedup = entry.get("speedup")
    return Baseline(
        _text(entry["name"]),
        change,
        bool(entry.get("is_optimistic")),
        None if speedup is None else _number(speedup),
    )


def _read_generations(entry: Mapping[str, Any]) -> Generations:
    return Generations([GenerationSample(_text(row["prompt"]), _text(row["text"])) for row in entry["samples"]])


_READERS: dict[str, Callable[[Mapping[str, Any]], Section]] = {
    "Baseline": _read_baseline,
    "Figures": _read_figures,
    "Note": lambda entry: Note(_message(entry["text"])),
    "LabelTable": _read_label_table,
    "Confusion": _read_confusion,
    "Examples": _read_examples,
    "Generations": _read_generations,
}


def _message(value: object) -> Message:
    if not isinstance(value, list | tuple) or len(value) != len(LANGUAGES):
        raise ValueError("Expected a text in each language.")
    return RecordedMessage(dict(zip(LANGUAGES, map(_text, value), strict=True)))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("Expected a string.")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("Expected a finite number.")
    return value
