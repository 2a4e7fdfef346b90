"""The scorecard of a tagger: precision, recall and F1 of exact spans, as conlleval counts them."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

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
from manyheads.metrics.label_scorecard import LONGEST_TEXT, N_WORST
from manyheads.metrics.score import Score
from manyheads.text.reading.tag_schemes import Span

Spans = Sequence[Sequence[Span]]  # of each sentence
IntentRule = Literal["strict", "any"]

_EXACT, _INTENT, _SENTENCES, _FIRST_LABEL = 0, 1, 2, 3  # columns of counts; three for each label from _FIRST_LABEL on
_WIDE = "[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"  # Chinese and Japanese, written without spaces
_SUPERFLUOUS_SPACE = re.compile(f"(?<={_WIDE}) | (?={_WIDE})")


@dataclass(frozen=True)
class WorstSentence:
    """One sentence with wrong spans."""

    number: int  # in the test set, from 1
    text: str  # truncated
    gold: tuple[str, ...]  # such as "New York (LOC)"
    predicted: tuple[str, ...]
    n_wrong: int  # spans that are missed, invented or mislabeled, plus one for a wrong intent
    gold_label: str = ""  # of a joint model: the intent
    predicted_label: str = ""


@dataclass(frozen=True)
class SpanCard:
    """How well the spans of a test set were found. Figures are in percent; `asdict` makes it JSON."""

    scores: Sequence[Score]
    n_texts: int
    n_spans: int  # gold
    n_predicted: int
    rows: Sequence[LabelRow]  # without labels that are neither gold nor predicted
    confusion: Confusion  # of spans with equal bounds; NO_LABEL: missed (column), invented (row)
    n_unknown: int  # gold spans with a label that is not in the training data, which no answer can match
    worst: Sequence[WorstSentence]  # most wrong spans first
    baseline: Baseline | None = None

    def sections(self) -> list[Section]:
        """Return the sentences with the most wrong spans, the confusion matrix, the labels and the counts."""
        sections: list[Section] = []
        if self.worst:
            rows = [
                ExampleRow(
                    sentence.number,
                    sentence.text,
                    _join(sentence.predicted_label, sentence.predicted),
                    _join(sentence.gold_label, sentence.gold),
                )
                for sentence in self.worst
            ]
            sections.append(Examples(Message("sentences with the most wrong spans"), rows))
        figures = [
            Figure(Message("number of sentences"), self.n_texts),
            Figure(Message("spans"), self.n_spans),
            Figure(Message("predicted spans"), self.n_predicted),
        ]
        sections += [self.confusion, LabelTable(self.rows), Figures(figures)]
        sections += [self.baseline] if self.baseline else []
        if self.n_unknown:
            note = PluralMessage(
                "1 span with a label that is not in the training data: no answer can be correct.",
                "{n:,} spans with a label that is not in the training data: no answer can be correct.",
                self.n_unknown,
            )
            sections.append(Note(note))
        return sections


def _join(label: str, spans: Sequence[str]) -> str:
    return " · ".join([*([label] if label else []), *spans]) or NO_LABEL


def span_card(
    texts: Sequence[str],
    gold_spans: Spans,
    predicted_spans: Spans,
    gold_labels: Sequence[str] | None = None,
    predicted_labels: Sequence[str] | None = None,
    *,
    known: Collection[str] | None = None,
    intents: IntentRule = "strict",
    separator: str = "#",
    n_resamples: int = N_RESAMPLES,
) -> SpanCard:
    """Compare predicted with gold spans; spans count the words of a text, which are separated by one space.

    A span is correct if its start, end and label are. Precision, recall and F1 are micro-averaged. `gold_labels` and
    `predicted_labels` are the intents of a joint model. Where a gold intent has several parts, as "a#b", the
    prediction must be "a#b" (strict) or may be one of the parts (any). Papers use either rule.
    """
    sentence_intents = _Intents(gold_labels, predicted_labels, intents, separator)
    _check(texts, gold_spans, predicted_spans, sentence_intents)
    names = sorted({span.label for spans in (*gold_spans, *predicted_spans) for span in spans})
    counts = _count(gold_spans, predicted_spans, sentence_intents, names)
    sums = sum_resamples(counts, len(texts), _FIRST_LABEL + 3 * len(names), _extremes, n_resamples)
    gold = [span for spans in gold_spans for span in spans]
    return SpanCard(
        scores=_scores(sums, len(names), sentence_intents),
        n_texts=len(texts),
        n_spans=len(gold),
        n_predicted=sum(map(len, predicted_spans)),
        rows=score_labels(names, *sums.total[_FIRST_LABEL:].reshape(3, len(names))),
        confusion=_confusion(gold_spans, predicted_spans, names),
        n_unknown=sum(known is not None and span.label not in known for span in gold),
        worst=_worst(texts, gold_spans, predicted_spans, sentence_intents),
    )


@dataclass(frozen=True)
class _Intents:
    """The intents of all sentences, if there are any, and the rule by which one is correct."""

    gold: Sequence[str] | None
    predicted: Sequence[str] | None
    rule: IntentRule
    separator: str

    @property
    def exist(self) -> bool:
        return self.gold is not None

    def pair(self, sentence: int) -> tuple[str, str]:
        """Return the gold and the predicted intent; empty strings without intents."""
        return (self.gold[sentence], self.predicted[sentence]) if self.gold and self.predicted else ("", "")

    def is_correct(self, sentence: int) -> bool:
        gold, predicted = self.pair(sentence)
        return predicted == gold or (self.rule == "any" and predicted in gold.split(self.separator))


def _check(texts: Sequence[str], gold: Spans, predicted: Spans, intents: _Intents) -> None:
    if not texts:
        raise DataError(_("There is nothing to score: the test set is empty."))
    lengths = {len(texts), len(gold), len(predicted)}
    lengths |= {len(labels) for labels in (intents.gold, intents.predicted) if labels is not None}
    if len(lengths) > 1 or (intents.gold is None) != (intents.predicted is None):
        raise ValueError("Texts, gold and predicted answers are not of the same sentences.")


def _count(gold: Spans, predicted: Spans, intents: _Intents, names: Sequence[str]) -> Iterator[Count]:
    """Yield the counts of each sentence: exact or not; for each label, spans that are correct, predicted, gold."""
    columns = {name: column for column, name in enumerate(names)}
    for sentence, (true, found) in enumerate(zip(map(set, gold), map(set, predicted), strict=True)):
        yield sentence, _SENTENCES, 1.0
        yield sentence, _INTENT, float(intents.is_correct(sentence))
        yield sentence, _EXACT, float(true == found and intents.is_correct(sentence))
        for kind, spans in enumerate((true & found, found, true)):
            for span in spans:
                yield sentence, _FIRST_LABEL + kind * len(names) + columns[span.label], 1.0


def _extremes(mean: Sums) -> tuple[Sums, Sums]:
    """A sentence with only wrong spans and a wrong intent, and one where all are right."""
    wrong, right = (np.concatenate(counts) for counts in f1_extremes(*np.split(mean[_FIRST_LABEL:], 3)))
    return np.append([0.0, 0.0, 1.0], wrong), np.append([1.0, 1.0, 1.0], right)


def _scores(sums: ResampledSums, n_labels: int, intents: _Intents) -> list[Score]:
    def columns(kind: int) -> slice:
        return slice(_FIRST_LABEL + kind * n_labels, _FIRST_LABEL + (kind + 1) * n_labels)

    correct, predicted, gold = map(columns, range(3))
    scores = [
        sums.score(
            "F1", lambda s: f1(s[..., correct].sum(-1), s[..., predicted].sum(-1), s[..., gold].sum(-1)), "spans:exact"
        ),
        sums.score(
            "precision", lambda s: percentage(s[..., correct].sum(-1), s[..., predicted].sum(-1)), "spans:exact"
        ),
        sums.score("recall", lambda s: percentage(s[..., correct].sum(-1), s[..., gold].sum(-1)), "spans:exact"),
    ]
    rule = [f"intents:{intents.rule}"] if intents.exist else []
    if intents.exist:
        scores.append(sums.score("intent accuracy", lambda s: percentage(s[..., _INTENT], s[..., _SENTENCES]), *rule))
    scores.append(sums.score("exact sentences", lambda s: percentage(s[..., _EXACT], s[..., _SENTENCES]), *rule))
    return scores


def _confusion(gold: Spans, predicted: Spans, names: Sequence[str]) -> Confusion:
    indices = {name: index for index, name in enumerate(names)}
    counts = [[0] * (len(names) + 1) for _ in range(len(names) + 1)]
    for true, found in zip(map(_by_bounds, gold), map(_by_bounds, predicted), strict=True):
        for bounds in true.keys() | found.keys():
            row, column = (indices[spans[bounds]] if bounds in spans else -1 for spans in (true, found))
            counts[row][column] += 1
    return Confusion([*names, NO_LABEL], counts)


def _by_bounds(spans: Sequence[Span]) -> dict[tuple[int, int], str]:
    return {(span.start, span.end): span.label for span in spans}


def _worst(texts: Sequence[str], gold: Spans, predicted: Spans, intents: _Intents) -> list[WorstSentence]:
    wrong = [
        WorstSentence(
            sentence + 1,
            truncate(text, LONGEST_TEXT),
            _format_spans(text, true),
            _format_spans(text, found),
            len({(span.start, span.end) for span in set(true) ^ set(found)}) + (not intents.is_correct(sentence)),
            *intents.pair(sentence),
        )
        for sentence, (text, true, found) in enumerate(zip(texts, gold, predicted, strict=True))
        if set(true) != set(found) or not intents.is_correct(sentence)
    ]
    return sorted(wrong, key=lambda sentence: -sentence.n_wrong)[:N_WORST]


def _format_spans(text: str, spans: Sequence[Span]) -> tuple[str, ...]:
    words = text.split(" ")
    return tuple(
        _SUPERFLUOUS_SPACE.sub("", " ".join(words[span.start : span.end])) + (f" ({span.label})" if span.label else "")
        for span in sorted(spans)
    )
