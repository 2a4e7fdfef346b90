"""The scorecard of a classifier: accuracy, F1, calibration and confusion."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import DataError
from manyheads.messages import Message, PluralMessage, _
from manyheads.metrics.bootstrap import (
    N_RESAMPLES,
    Count,
    ResampledSums,
    Sums,
    f1,
    f1_extremes,
    percentage,
    sum_resamples,
)
from manyheads.metrics.card_sections import (
    NO_LABEL,
    Baseline,
    Confusion,
    ExampleRow,
    Examples,
    Figure,
    Figures,
    LabelRow,
    LabelTable,
    Note,
    Section,
    score_labels,
    truncate,
)
from manyheads.metrics.score import Score

Labels = Sequence[tuple[str, ...]]  # of each text: one, or any number with multi_label
Probabilities = NDArray[np.floating[Any]]  # [texts, labels]

N_WORST = 20
LONGEST_TEXT = 500  # characters kept of a text in an example
_N_BINS = 15  # of confidence, as in Guo et al. (2017)
_SPARE_BIN = _N_BINS  # empty but for the additional text of an interval
_MAX_CONFUSION = 200  # labels; a larger matrix is not readable
_CORRECT, _ANSWERED, _TEXTS, _FIRST_LABEL = 0, 1, 2, 3  # columns of counts; three for each label from _FIRST_LABEL on


@dataclass(frozen=True)
class Mistake:
    """One text with a wrong prediction."""

    number: int  # in the test set, from 1
    text: str  # truncated
    gold: tuple[str, ...]
    predicted: tuple[str, ...]
    probability: float  # the model's confidence in the wrong part of its answer


@dataclass(frozen=True)
class LabelCard:
    """How well a test set was labeled. Figures are in percent; `asdict` makes it JSON."""

    scores: Sequence[Score]
    n_texts: int
    rows: Sequence[LabelRow]  # without labels that are neither gold nor predicted
    confusion: Confusion | None  # of single labels, unless there are too many to read
    n_abstained: int  # texts without an answer, which count as wrong
    n_unknown: int  # texts with a gold label that is not in the training data, which no answer can match
    worst: Sequence[Mistake]  # most confident first
    baseline: Baseline | None = None

    def sections(self) -> list[Section]:
        """Return the most confident mistakes, the confusion matrix, the labels and the counts."""
        sections: list[Section] = []
        if self.worst:
            rows = [
                ExampleRow(
                    mistake.number,
                    mistake.text,
                    format_labels(mistake.predicted),
                    format_labels(mistake.gold),
                    mistake.probability,
                )
                for mistake in self.worst
            ]
            sections.append(Examples(Message("most confident mistakes"), rows))
        if self.confusion:
            sections.append(self.confusion)
        sections.append(LabelTable(self.rows))
        figures = [Figure(Message("number of texts"), self.n_texts)]
        if self.n_abstained:
            figures.append(Figure(Message("without an answer"), self.n_abstained, self.n_texts))
        sections.append(Figures(figures))
        sections += [self.baseline] if self.baseline else []
        if self.n_unknown:
            note = PluralMessage(
                "1 text with a label that is not in the training data: no answer can be correct.",
                "{n:,} texts with a label that is not in the training data: no answer can be correct.",
                self.n_unknown,
            )
            sections.append(Note(note))
        return sections


def format_labels(labels: Sequence[str]) -> str:
    """Return labels on one line; `NO_LABEL` if there are none."""
    return ", ".join(labels) or NO_LABEL


def label_card(
    texts: Sequence[str],
    gold: Labels,
    predicted: Labels,
    probabilities: Probabilities,
    labels: Sequence[str],
    *,
    multi_label: bool = False,
    n_resamples: int = N_RESAMPLES,
) -> LabelCard:
    """Compare predicted with gold labels; with `multi_label`, a text may have any number of labels.

    `labels` are those that the model knows, in the order of the columns of `probabilities`. A single-label model
    abstains by predicting (): accuracy counts this as wrong, "accuracy where answered" leaves it out.
    """
    _check(texts, gold, predicted, probabilities, labels)
    names = [*labels, *sorted({label for row in gold for label in row} - set(labels))]
    columns = {name: column for column, name in enumerate(names)}
    bins = list(_count_calibration(gold, probabilities, columns, multi_label=multi_label))
    first_bin = _FIRST_LABEL + 3 * len(names)
    n_columns = first_bin + 3 * (_N_BINS + 1)
    counts = [*_count(gold, predicted, columns), *((text, first_bin + column, x) for text, column, x in bins)]
    extremes = partial(_extremes, n_texts=len(texts), n_labels=len(names))
    sums = sum_resamples(counts, len(texts), n_columns, extremes, n_resamples)
    n_abstained = 0 if multi_label else sum(not row for row in predicted)
    rows = score_labels(names, *_by_label(sums.total, len(names)))
    return LabelCard(
        scores=_scores(sums, len(names), multi_label=multi_label, abstains=n_abstained > 0),
        n_texts=len(texts),
        rows=rows,
        confusion=None if multi_label else _confusion(gold, predicted, [row.label for row in rows]),
        n_abstained=n_abstained,
        n_unknown=sum(not set(row) <= set(labels) for row in gold),
        worst=_worst(texts, gold, predicted, probabilities, labels, multi_label=multi_label),
    )


def _check(
    texts: Sequence[str], gold: Labels, predicted: Labels, probabilities: Probabilities, labels: Sequence[str]
) -> None:
    if not texts:
        raise DataError(_("There is nothing to score: the test set is empty."))
    if not len(texts) == len(gold) == len(predicted) == len(probabilities):
        raise ValueError(f"{len(texts)} texts, {len(gold)} gold and {len(predicted)} predicted labels do not match.")
    if probabilities.shape[1:] != (len(labels),):
        raise ValueError(f"Probabilities of shape {probabilities.shape} do not match {len(labels)} labels.")


def _count(gold: Labels, predicted: Labels, columns: dict[str, int]) -> Iterator[Count]:
    """Yield the counts of each text: correct, answered; for each label, correct, predicted, gold."""
    for text, (true, found) in enumerate(zip(map(set, gold), map(set, predicted), strict=True)):
        yield text, _TEXTS, 1.0
        yield text, _CORRECT, float(true == found)
        yield text, _ANSWERED, float(bool(found))
        for kind, labels in enumerate((true & found, found, true)):
            for label in labels:
                yield text, _FIRST_LABEL + kind * len(columns) + columns[label], 1.0


def _count_calibration(
    gold: Labels, probabilities: Probabilities, columns: dict[str, int], *, multi_label: bool
) -> Iterator[Count]:
    """Yield the counts of each decision in its bin: one, its confidence, whether it was correct.

    With single labels, the most probable label is the decision; with `multi_label`, every label is one.
    """
    applies = np.zeros((len(gold), len(columns)), dtype=bool)
    for text, row in enumerate(gold):
        applies[text, [columns[label] for label in row]] = True
    decided = np.tile(np.arange(probabilities.shape[1]), (len(gold), 1))
    if not multi_label:
        decided = probabilities.argmax(1, keepdims=True)
    confidence, correct = (np.take_along_axis(table, decided, 1) for table in (probabilities, applies))
    bins = np.clip((confidence * _N_BINS).astype(int), 0, _N_BINS - 1)
    texts = np.broadcast_to(np.arange(len(gold))[:, None], bins.shape)
    table = np.zeros((len(gold), 3 * (_N_BINS + 1)))
    for kind, amounts in enumerate((np.ones_like(confidence), confidence, correct)):
        np.add.at(table, (texts, kind * (_N_BINS + 1) + bins), amounts)
    filled = table.nonzero()
    yield from zip(*(column.tolist() for column in (*filled, table[filled])), strict=True)


def _by_label(sums: Sums, n_labels: int) -> Sums:
    """Return [..., 3, labels]: correct, predicted and gold of each label."""
    return sums[..., _FIRST_LABEL : _FIRST_LABEL + 3 * n_labels].reshape(*sums.shape[:-1], 3, n_labels)


def _by_bin(sums: Sums) -> Sums:
    """Return [..., 3, bins]: number, confidence and correctness of the decisions in each bin."""
    return sums[..., -3 * (_N_BINS + 1) :].reshape(*sums.shape[:-1], 3, _N_BINS + 1)


def _extremes(mean: Sums, n_texts: int, n_labels: int) -> list[Sums]:
    """Texts with only wrong labels, predicted with certainty, and with only right ones: of all labels, or of one.

    The one label is that whose F1 changes most: macro-F1 depends on rare labels more than on all others.
    """
    labels, n_decisions = _by_label(mean, n_labels), _by_bin(mean)[0].sum()
    n_per_text = labels[1:].sum() / 2  # labels of a text, gold and predicted
    texts = []
    for is_right in (0.0, 1.0):
        text = np.zeros_like(mean)
        text[[_CORRECT, _ANSWERED, _TEXTS]] = is_right, 1.0, 1.0
        _by_bin(text)[:, _SPARE_BIN] = n_decisions, n_decisions, n_decisions * is_right
        of_all, of_one = text.copy(), text.copy()
        added = n_per_text * np.array([is_right, 1.0, 1.0])
        changes = np.abs(f1(*(labels + added[:, None] / n_texts)) - f1(*labels)) * (labels[1:].sum(0) > 0)
        _by_label(of_one, n_labels)[:, changes.argmax()] = added
        _by_label(of_all, n_labels)[:] = f1_extremes(*labels)[int(is_right)]
        texts += [of_all, of_one]
    return texts


def _accuracy(sums: Sums) -> Sums:
    return percentage(sums[..., _CORRECT], sums[..., _TEXTS])


def _micro_f1(sums: Sums, n_labels: int) -> Sums:
    correct, predicted, gold = np.moveaxis(_by_label(sums, n_labels).sum(-1), -1, 0)
    return f1(correct, predicted, gold)


def _macro_f1(sums: Sums, n_labels: int) -> Sums:
    correct, predicted, gold = np.moveaxis(_by_label(sums, n_labels), -2, 0)
    n_seen = np.maximum(((predicted + gold) > 0).sum(-1), 1)
    return np.asarray(f1(correct, predicted, gold).sum(-1) / n_seen)


def _calibration_error(sums: Sums) -> Sums:
    """Return the expected calibration error: the mean gap between confidence and accuracy over bins."""
    made, confidence, correct = np.moveaxis(_by_bin(sums), -2, 0)
    return percentage(np.abs(confidence - correct).sum(-1), made.sum(-1))


def _scores(sums: ResampledSums, n_labels: int, *, multi_label: bool, abstains: bool) -> list[Score]:
    macro = sums.score("macro-F1", partial(_macro_f1, n_labels=n_labels), "labels:in gold or predicted")
    error = sums.score("calibration error", _calibration_error, f"bins:{_N_BINS}")
    if multi_label:
        micro = sums.score("micro-F1", partial(_micro_f1, n_labels=n_labels))
        return [micro, macro, sums.score("exact match", _accuracy), error]
    answered = sums.score("accuracy where answered", lambda sums: percentage(sums[..., _CORRECT], sums[..., _ANSWERED]))
    accuracy = sums.score("accuracy", _accuracy)
    return [accuracy, *([answered] if abstains else []), macro, error]


def _confusion(gold: Labels, predicted: Labels, names: Sequence[str]) -> Confusion | None:
    labels = [*names, *([NO_LABEL] if not all(predicted) or not all(gold) else [])]
    if len(labels) > _MAX_CONFUSION:
        return None
    indices = {name: index for index, name in enumerate(names)}
    counts = [[0] * len(labels) for _row in labels]
    for pair in zip(gold, predicted, strict=True):
        row, column = (indices[answer[0]] if answer else -1 for answer in pair)
        counts[row][column] += 1
    return Confusion(labels, counts)


def _worst(
    texts: Sequence[str],
    gold: Labels,
    predicted: Labels,
    probabilities: Probabilities,
    labels: Sequence[str],
    *,
    multi_label: bool,
) -> list[Mistake]:
    """Return the most confident mistakes; a text without an answer is not one."""
    columns = {label: column for column, label in enumerate(labels)}
    mistakes = []
    for index, (true, found) in enumerate(zip(gold, predicted, strict=True)):
        if set(true) != set(found) and (found or multi_label):
            confidence = _confidence(true, found, probabilities[index].tolist(), columns, multi_label=multi_label)
            text = truncate(texts[index], LONGEST_TEXT)
            mistakes.append(Mistake(index + 1, text, tuple(true), tuple(found), confidence))
    return sorted(mistakes, key=lambda mistake: -mistake.probability)[:N_WORST]


def _confidence(
    gold: tuple[str, ...],
    predicted: tuple[str, ...],
    probabilities: Sequence[float],
    columns: dict[str, int],
    *,
    multi_label: bool,
) -> float:
    """Return the confidence in the worst part of an answer: a wrong label or, with `multi_label`, a missing one."""
    wrong = [probabilities[columns[label]] for label in set(predicted) - set(gold)]
    missing = [1 - probabilities[columns[label]] for label in set(gold) - set(predicted) if label in columns]
    return max(wrong + (missing if multi_label else []), default=0.0)
