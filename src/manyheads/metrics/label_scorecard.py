"""The scorecard of a classifier: how often it is right, whether its probabilities are, and what it confuses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import DataError
from manyheads.metrics.bootstrap import Count, ResampledSums, Sums, f1, percentage, sum_resamples
from manyheads.metrics.label_tables import N_WORST, NOTHING, Confusion, LabelRow, label_rows, shortened
from manyheads.metrics.score import Score

Labels = Sequence[tuple[str, ...]]  # of each text: one, or as many as there are
Probabilities = NDArray[np.floating[Any]]  # [texts, labels]

_BINS = 15  # of confidence, as Guo et al. (2017) have
_LARGEST_CONFUSION = 200  # labels; a larger matrix nobody reads
_RIGHT, _ANSWERED, _TEXTS, _FIRST = 0, 1, 2, 3  # columns of counts; from _FIRST on three for each label


@dataclass(frozen=True)
class Mistake:
    """One text that was labelled wrongly."""

    number: int  # in the test set, from 1
    text: str  # shortened
    gold: tuple[str, ...]
    predicted: tuple[str, ...]
    probability: float  # that the model gave to what is wrong in its answer


@dataclass(frozen=True)
class LabelCard:
    """How well a test set was labelled. Figures are in per cent; `asdict` makes it JSON."""

    scores: Sequence[Score]
    n_texts: int
    rows: Sequence[LabelRow]  # labels that are neither in the gold answers nor predicted are left out
    confusion: Confusion | None  # of single labels, if they are not too many to read
    n_abstained: int  # texts without an answer of a model that had to give one; they count as wrong
    n_unknown: int  # texts with a gold label that was not in the training data, which no answer can match
    worst: Sequence[Mistake]  # the most confident first


def label_card(
    texts: Sequence[str],
    gold: Labels,
    predicted: Labels,
    probabilities: Probabilities,
    labels: Sequence[str],
    *,
    multi_label: bool = False,
    n_resamples: int = 1000,
) -> LabelCard:
    """Compare predicted with gold labels; with `multi_label`, a text may have any number of them.

    `labels` are those that the model knows, in the order of the columns of `probabilities`. A single-label model
    abstains by predicting (): accuracy counts that as wrong, and the accuracy where it answered is told beside it.
    """
    _check(texts, gold, predicted, probabilities, labels)
    names = [*labels, *sorted({label for row in gold for label in row} - set(labels))]
    columns = {name: column for column, name in enumerate(names)}
    bins = list(_calibration(gold, probabilities, columns, multi_label=multi_label))
    first_bin = _FIRST + 3 * len(names)
    counts = [*_count(gold, predicted, columns), *((text, first_bin + column, x) for text, column, x in bins)]
    sums = sum_resamples(counts, len(texts), first_bin + 3 * _BINS, n_resamples)
    n_abstained = 0 if multi_label else sum(not row for row in predicted)
    rows = label_rows(names, *_by_label(sums.total, len(names)))
    return LabelCard(
        scores=_scores(sums, len(names), multi_label=multi_label, abstains=n_abstained > 0),
        n_texts=len(texts),
        rows=rows,
        confusion=None if multi_label else _confuse(gold, predicted, [row.label for row in rows]),
        n_abstained=n_abstained,
        n_unknown=sum(not set(row) <= set(labels) for row in gold),
        worst=_worst(texts, gold, predicted, probabilities, labels, multi_label=multi_label),
    )


def _check(
    texts: Sequence[str], gold: Labels, predicted: Labels, probabilities: Probabilities, labels: Sequence[str]
) -> None:
    if not texts:
        raise DataError("There is nothing to score: the test set is empty.")
    if not len(texts) == len(gold) == len(predicted) == len(probabilities):
        raise ValueError(f"{len(texts)} texts, {len(gold)} gold and {len(predicted)} predicted labels do not match.")
    if probabilities.shape[1:] != (len(labels),):
        raise ValueError(f"Probabilities of shape {probabilities.shape} are not of {len(labels)} labels.")


def _count(gold: Labels, predicted: Labels, columns: dict[str, int]) -> Iterator[Count]:
    """What each text adds: whether it is right and answered; for each label, whether right, predicted, gold."""
    for text, (wanted, given) in enumerate(zip(map(set, gold), map(set, predicted), strict=True)):
        yield text, _TEXTS, 1.0
        yield text, _RIGHT, float(wanted == given)
        yield text, _ANSWERED, float(bool(given))
        for kind, found in enumerate((wanted & given, given, wanted)):
            for label in found:
                yield text, _FIRST + kind * len(columns) + columns[label], 1.0


def _calibration(
    gold: Labels, probabilities: Probabilities, columns: dict[str, int], *, multi_label: bool
) -> Iterator[Count]:
    """What each judgement adds to its bin: one, how sure it was, whether it was right.

    Of single labels the most probable one is the judgement; of several, each label is one that may apply or not.
    """
    applies = np.zeros((len(gold), len(columns)), dtype=bool)
    for text, row in enumerate(gold):
        applies[text, [columns[label] for label in row]] = True
    judged = np.tile(np.arange(probabilities.shape[1]), (len(gold), 1))
    if not multi_label:
        judged = probabilities.argmax(1, keepdims=True)
    sure, right = (np.take_along_axis(found, judged, 1) for found in (probabilities, applies))
    places = np.clip((sure * _BINS).astype(int), 0, _BINS - 1)
    texts = np.broadcast_to(np.arange(len(gold))[:, None], places.shape)
    table = np.zeros((len(gold), 3 * _BINS))
    for kind, amounts in enumerate((np.ones_like(sure), sure, right)):
        np.add.at(table, (texts, kind * _BINS + places), amounts)
    filled = table.nonzero()
    yield from zip(*(found.tolist() for found in (*filled, table[filled])), strict=True)


def _by_label(sums: Sums, n_labels: int) -> Sums:
    """[right, predicted, gold] of each label, in front of which stands whatever stood in front of the sums."""
    return sums[..., _FIRST : _FIRST + 3 * n_labels].reshape(*sums.shape[:-1], 3, n_labels)


def _accuracy(sums: Sums) -> Sums:
    return percentage(sums[..., _RIGHT], sums[..., _TEXTS])


def _micro_f1(sums: Sums, n_labels: int) -> Sums:
    right, predicted, gold = np.moveaxis(_by_label(sums, n_labels).sum(-1), -1, 0)
    return f1(right, predicted, gold)


def _macro_f1(sums: Sums, n_labels: int) -> Sums:
    right, predicted, gold = np.moveaxis(_by_label(sums, n_labels), -2, 0)
    n_seen = np.maximum(((predicted + gold) > 0).sum(-1), 1)
    return np.asarray(f1(right, predicted, gold).sum(-1) / n_seen)


def _calibration_error(sums: Sums) -> Sums:
    """The mean difference between how sure the judgements of a bin were and how many were right."""
    made, sure, right = np.moveaxis(sums[..., -3 * _BINS :].reshape(*sums.shape[:-1], 3, _BINS), -2, 0)
    return percentage(np.abs(sure - right).sum(-1), made.sum(-1))


def _scores(sums: ResampledSums, n_labels: int, *, multi_label: bool, abstains: bool) -> list[Score]:
    macro = sums.score("macro-F1", partial(_macro_f1, n_labels=n_labels), "labels:in gold or predicted")
    error = sums.score("calibration error", _calibration_error, f"bins:{_BINS}")
    if multi_label:
        micro = sums.score("micro-F1", partial(_micro_f1, n_labels=n_labels))
        return [micro, macro, sums.score("exact match", _accuracy), error]
    answered = sums.score("accuracy where answered", lambda sums: percentage(sums[..., _RIGHT], sums[..., _ANSWERED]))
    accuracy = sums.score("accuracy", _accuracy)
    return [accuracy, *([answered] if abstains else []), macro, error]


def _confuse(gold: Labels, predicted: Labels, names: Sequence[str]) -> Confusion | None:
    labels = [*names, *([NOTHING] if not all(predicted) or not all(gold) else [])]
    if len(labels) > _LARGEST_CONFUSION:
        return None
    places = {name: place for place, name in enumerate(names)}
    counts = [[0] * len(labels) for _ in labels]
    for wanted, given in zip(gold, predicted, strict=True):
        row, column = (places[found[0]] if found else -1 for found in (wanted, given))
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
    """The most confident mistakes; who abstains makes none."""
    columns = {label: column for column, label in enumerate(labels)}
    found = [
        Mistake(
            number, shortened(text), tuple(wanted), tuple(given), _conviction(wanted, given, row, columns, multi_label)
        )
        for number, (text, wanted, given, row) in enumerate(
            zip(texts, gold, predicted, probabilities.tolist(), strict=True), start=1
        )
        if set(wanted) != set(given) and (given or multi_label)
    ]
    return sorted(found, key=lambda mistake: -mistake.probability)[:N_WORST]


def _conviction(
    wanted: tuple[str, ...], given: tuple[str, ...], row: Sequence[float], columns: dict[str, int], multi_label: bool
) -> float:
    """How sure the model was of the worst part of its answer: a label too many, or, of several, one too few."""
    too_many = [row[columns[label]] for label in set(given) - set(wanted)]
    too_few = [1 - row[columns[label]] for label in set(wanted) - set(given) if label in columns]
    return max(too_many + (too_few if multi_label else []), default=0.0)
