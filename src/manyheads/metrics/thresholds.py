"""The threshold above which answers of a classifier or a tagger have a wanted precision; AUROC of a score."""

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.messages import Message, PluralMessage
from manyheads.metrics.bootstrap import N_RESAMPLES, outer_interval, weightings
from manyheads.metrics.score import Score
from manyheads.metrics.tallies import share_tally

_DIGITS = 6  # of a threshold, so that it can be typed
_LISTED = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_UNLIKELY = 0.05  # labels below it are no candidates where a text may have several
_FEW_ANSWERS = 30
_FEW_ERRORS = 5  # with fewer expected errors among the answers, the precision is not well known

TEXTS, SPANS = Message("texts answered"), Message("spans kept")

_MAX_TEXTS = 500  # of each kind: more would make the interval hardly narrower and much slower


@dataclass(frozen=True)
class Decisions:
    """Answers with their probabilities: at most one for each text, or any number."""

    texts: NDArray[np.int64]  # index of each answer's text
    probabilities: NDArray[np.float64]
    are_correct: NDArray[np.bool_]
    n_texts: int
    coverage_of: Message = TEXTS  # or SPANS
    lowest: float = 0.0  # threshold that keeps all answers

    def coverage(self, is_kept: NDArray[np.bool_]) -> float:
        """Return the percentage of texts with an answer that is kept; with spans, of answers that are kept."""
        n_kept, n_all = len(np.unique(self.texts[is_kept])), self.n_texts
        if self.coverage_of == SPANS:
            n_kept, n_all = int(is_kept.sum()), len(is_kept)
        return 100 * n_kept / max(1, n_all)


@dataclass(frozen=True)
class ThresholdRow:
    """What remains at a threshold; shares are in percent."""

    threshold: float
    precision: float
    coverage: float
    n_answers: int


@dataclass(frozen=True)
class ThresholdChoice:
    """The smallest threshold at which answers have the wanted precision; `asdict` makes it JSON."""

    wanted: float  # precision, in percent
    chosen: ThresholdRow | None  # None: no threshold reaches it
    precision: Score | None  # of the chosen threshold, with its interval
    best: ThresholdRow | None  # the highest precision of at least a few answers; None without answers
    rows: Sequence[ThresholdRow]  # of some thresholds, for comparison
    coverage_of: Message
    n_texts: int

    def notes(self) -> Iterator[Message]:
        """Yield what to know before using the threshold."""
        if self.chosen is None:
            if self.best is None:
                yield Message("The model gave no answer at all.")
                return
            best, wanted = self.best, f"{self.wanted:g}"
            yield PluralMessage(
                "No threshold reaches a precision of {wanted} % on these rows. The highest is {precision:.1f} %, of 1 "
                "answer at {threshold:g}.",
                "No threshold reaches a precision of {wanted} % on these rows. The highest is {precision:.1f} %, of "
                "{n:,} answers at {threshold:g}.",
                best.n_answers,
                wanted=wanted,
                precision=best.precision,
                threshold=best.threshold,
            )
            return
        n_answers, needed = self.chosen.n_answers, _answers_needed(self.wanted)
        if math.isinf(needed):
            yield PluralMessage(
                "1 correct answer does not show that there are no errors elsewhere.",
                "{n:,} correct answers do not show that there are no errors elsewhere.",
                n_answers,
            )
        elif n_answers < needed:
            yield PluralMessage(
                "Only 1 answer carries this precision; to know it well would take {needed:,.0f}.",
                "Only {n:,} answers carry this precision; to know it well would take {needed:,.0f}.",
                n_answers,
                needed=needed,
            )
        yield Message("The threshold was chosen on these rows, so their precision is optimistic: check it on others.")


def choose_threshold(decisions: Decisions, wanted: float) -> ThresholdChoice:
    """Choose the smallest threshold at which the precision is at least `wanted` percent."""
    probabilities = decisions.probabilities
    order = np.argsort(probabilities)
    ascending = probabilities[order]
    thresholds = np.unique(np.floor(ascending * 10**_DIGITS) / 10**_DIGITS)
    firsts = np.searchsorted(ascending, thresholds)  # of the answers that each threshold keeps
    n_kept = len(ascending) - firsts
    n_correct = np.append(decisions.are_correct[order][::-1].cumsum()[::-1], 0)[firsts]
    precisions = 100 * n_correct / np.maximum(n_kept, 1)
    reached = np.flatnonzero(precisions >= wanted - 1e-9)
    chosen = _row(decisions, float(thresholds[reached[0]])) if len(reached) else None
    if chosen is not None and chosen.n_answers == len(ascending):
        chosen = _row(decisions, decisions.lowest)
    best = None
    if len(thresholds):
        enough = np.flatnonzero(n_kept >= min(_FEW_ANSWERS, len(ascending)))
        best = _row(decisions, float(thresholds[enough[precisions[enough].argmax()]]))
    listed = (_row(decisions, threshold) for threshold in _LISTED if threshold >= decisions.lowest)
    return ThresholdChoice(
        wanted=wanted,
        chosen=chosen,
        precision=None if chosen is None else _precision(decisions, chosen.threshold),
        best=best,
        rows=[row for row in listed if row.n_answers],
        coverage_of=decisions.coverage_of,
        n_texts=decisions.n_texts,
    )


def label_decisions(
    are_blank: Sequence[bool],
    gold: Sequence[AbstractSet[str]],
    probabilities: NDArray[np.floating[Any]],
    labels: Sequence[str],
    *,
    multi_label: bool,
) -> Decisions:
    """Return the likeliest label of each text or, with `multi_label`, every label that is not unlikely."""
    is_answer = probabilities >= _UNLIKELY
    if not multi_label:
        is_answer = np.arange(len(labels)) == probabilities.argmax(1)[:, None]
    is_answer &= ~np.array(are_blank, dtype=bool)[:, None]
    texts, columns = np.nonzero(is_answer)
    are_correct = [labels[column] in gold[text] for text, column in zip(texts.tolist(), columns.tolist(), strict=True)]
    return Decisions(
        texts,
        np.asarray(probabilities[is_answer], np.float64),
        np.array(are_correct, bool),
        len(gold),
        lowest=_UNLIKELY if multi_label else 0.0,
    )


def span_decisions(
    gold: Sequence[AbstractSet[object]], predicted: Sequence[Sequence[tuple[object, float]]]
) -> Decisions:
    """Return the spans of each text with their probabilities."""
    answers = [
        (text, probability, span in true)
        for text, (true, spans) in enumerate(zip(gold, predicted, strict=True))
        for span, probability in spans
    ]
    texts, probabilities, are_correct = zip(*answers, strict=True) if answers else ((), (), ())
    return Decisions(
        np.array(texts, np.int64),
        np.array(probabilities, np.float64),
        np.array(are_correct, bool),
        len(gold),
        coverage_of=SPANS,
    )


def _answers_needed(wanted: float) -> float:
    """Return how many answers make a precision well known: at least a few errors are expected among them."""
    return math.inf if wanted >= 100 else max(_FEW_ANSWERS, math.ceil(100 * _FEW_ERRORS / (100 - wanted)))


def _row(decisions: Decisions, threshold: float) -> ThresholdRow:
    is_kept = decisions.probabilities >= threshold
    n_kept = int(is_kept.sum())
    precision = 100 * int(decisions.are_correct[is_kept].sum()) / max(1, n_kept)
    return ThresholdRow(threshold, precision, decisions.coverage(is_kept), n_kept)


def _precision(decisions: Decisions, threshold: float) -> Score:
    """Return the precision with its interval; the answers of one text are not independent of each other."""
    is_kept = decisions.probabilities >= threshold
    texts, rows = np.unique(decisions.texts[is_kept], return_inverse=True)
    n_kept = np.bincount(rows, minlength=len(texts))
    n_correct = np.bincount(rows, weights=decisions.are_correct[is_kept], minlength=len(texts))
    return share_tally("precision", n_correct.tolist(), n_kept.tolist()).score()


def auroc(
    name: str, inside: Sequence[float], outside: Sequence[float], *details: str, n_resamples: int = N_RESAMPLES
) -> Score:
    """Return the probability in percent that a text out of scope scores higher than one in scope, with its interval.

    50 is chance. Like other scores, the interval counts one more text of each kind, ranked as badly or as well as
    possible.
    """
    chosen = [np.asarray(_spread(values), np.float64) for values in (inside, outside)]
    wins = (np.sign(chosen[1][None, :] - chosen[0][:, None]) + 1) / 2  # a tie counts half
    value = 100 * float(wins.mean())
    weights = [np.stack(list(weightings(len(values), n_resamples))) for values in chosen]
    weights[1] = weights[1][::-1]  # the two kinds are drawn independently
    resampled = []
    for added in (0.0, 1.0):
        padded = np.pad(wins, (0, 1), constant_values=added)
        total = weights[0].sum(1) * weights[1].sum(1)
        resampled.append(100 * np.minimum(((weights[0] @ padded) * weights[1]).sum(1) / total, 1.0))
    low, high = outer_interval(value, resampled)
    signature = "|".join([f"in:{len(chosen[0])}|out:{len(chosen[1])}|resamples:{n_resamples}", *details])
    return Score(name, value, low, high, signature, len(chosen[0]) + len(chosen[1]))


def _spread(values: Sequence[float]) -> Sequence[float]:
    """Return at most `_MAX_TEXTS` values, evenly spread over all."""
    return values[:: -(-len(values) // _MAX_TEXTS)] if len(values) > _MAX_TEXTS else values
