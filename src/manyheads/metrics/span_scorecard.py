"""The scorecard of a tagger: which spans are found, exactly and with the right label, as conlleval counts them."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from manyheads.errors import DataError
from manyheads.metrics.bootstrap import Count, ResampledSums, f1, percentage, sum_resamples
from manyheads.metrics.label_tables import N_WORST, NOTHING, Confusion, LabelRow, label_rows, shortened
from manyheads.metrics.score import Score
from manyheads.text.tag_schemes import Span

Spans = Sequence[Sequence[Span]]  # of each sentence
IntentRule = Literal["strict", "any"]

_EXACT, _INTENT, _SENTENCES, _FIRST = 0, 1, 2, 3  # columns of counts; from _FIRST on three for each label
_WIDE = "[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"  # Chinese and Japanese, which set no spaces
_UNWRITTEN_SPACE = re.compile(f"(?<={_WIDE}) | (?={_WIDE})")


@dataclass(frozen=True)
class WorstSentence:
    """One sentence whose spans were not found as they are."""

    number: int  # in the test set, from 1
    text: str  # shortened
    gold: tuple[str, ...]  # as in "New York (LOC)"
    predicted: tuple[str, ...]
    n_wrong: int  # places that are missed, invented or mislabelled, and one for a wrong intent
    gold_label: str = ""  # of a joint model: the intent
    predicted_label: str = ""


@dataclass(frozen=True)
class SpanCard:
    """How well the spans of a test set were found. Figures are in per cent; `asdict` makes it JSON."""

    scores: Sequence[Score]
    n_texts: int
    n_spans: int  # in the gold answers
    n_predicted: int
    rows: Sequence[LabelRow]  # labels that are neither in the gold answers nor predicted are left out
    confusion: Confusion  # of spans that agree in where they are; NOTHING: missed (column), invented (row)
    n_unknown: int  # gold spans with a label that was not in the training data, which no answer can match
    worst: Sequence[WorstSentence]  # the most wrong first


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
    n_resamples: int = 1000,
) -> SpanCard:
    """Compare predicted with gold spans, which count the words of texts whose words are joined by one space.

    A span is right if start, end and label are; precision, recall and F1 are taken over all spans together. Labels
    of whole sentences, given for joint models, are their intents. Where the gold intent is several, as "a#b", the
    prediction has to be "a#b" as a whole (strict) or may also be one of them (any): papers do the one or the other.
    """
    intended = _Intents(gold_labels, predicted_labels, intents, separator)
    _check(texts, gold_spans, predicted_spans, intended)
    names = sorted({span.label for spans in (*gold_spans, *predicted_spans) for span in spans})
    counts = _count(gold_spans, predicted_spans, intended, names)
    sums = sum_resamples(counts, len(texts), _FIRST + 3 * len(names), n_resamples)
    gold = [span for spans in gold_spans for span in spans]
    return SpanCard(
        scores=_scores(sums, len(names), intended),
        n_texts=len(texts),
        n_spans=len(gold),
        n_predicted=sum(map(len, predicted_spans)),
        rows=label_rows(names, *sums.total[_FIRST:].reshape(3, len(names))),
        confusion=_confuse(gold_spans, predicted_spans, names),
        n_unknown=sum(known is not None and span.label not in known for span in gold),
        worst=_worst(texts, gold_spans, predicted_spans, intended),
    )


@dataclass(frozen=True)
class _Intents:
    """The labels of whole sentences, if there are any, and when one is right."""

    gold: Sequence[str] | None
    predicted: Sequence[str] | None
    rule: IntentRule
    separator: str

    @property
    def are_given(self) -> bool:
        return self.gold is not None

    def pair(self, sentence: int) -> tuple[str, str]:
        """Gold and predicted; nothing and nothing where there are no intents."""
        return (self.gold[sentence], self.predicted[sentence]) if self.gold and self.predicted else ("", "")

    def is_right(self, sentence: int) -> bool:
        gold, predicted = self.pair(sentence)
        return predicted == gold or (self.rule == "any" and predicted in gold.split(self.separator))


def _check(texts: Sequence[str], gold: Spans, predicted: Spans, intents: _Intents) -> None:
    if not texts:
        raise DataError("There is nothing to score: the test set is empty.")
    lengths = {len(texts), len(gold), len(predicted)}
    lengths |= {len(labels) for labels in (intents.gold, intents.predicted) if labels is not None}
    if len(lengths) > 1 or (intents.gold is None) != (intents.predicted is None):
        raise ValueError("Texts, gold and predicted answers are not of the same sentences.")


def _count(gold: Spans, predicted: Spans, intents: _Intents, names: Sequence[str]) -> Iterator[Count]:
    """What each sentence adds: whether it is all right; for each label, spans that are right, predicted, gold."""
    columns = {name: column for column, name in enumerate(names)}
    for sentence, (wanted, given) in enumerate(zip(map(set, gold), map(set, predicted), strict=True)):
        yield sentence, _SENTENCES, 1.0
        yield sentence, _INTENT, float(intents.is_right(sentence))
        yield sentence, _EXACT, float(wanted == given and intents.is_right(sentence))
        for kind, found in enumerate((wanted & given, given, wanted)):
            for span in found:
                yield sentence, _FIRST + kind * len(names) + columns[span.label], 1.0


def _scores(sums: ResampledSums, n_labels: int, intents: _Intents) -> list[Score]:
    def spans(kind: int) -> slice:
        return slice(_FIRST + kind * n_labels, _FIRST + (kind + 1) * n_labels)

    right, predicted, gold = map(spans, range(3))
    scores = [
        sums.score(
            "F1", lambda s: f1(s[..., right].sum(-1), s[..., predicted].sum(-1), s[..., gold].sum(-1)), "spans:exact"
        ),
        sums.score("precision", lambda s: percentage(s[..., right].sum(-1), s[..., predicted].sum(-1)), "spans:exact"),
        sums.score("recall", lambda s: percentage(s[..., right].sum(-1), s[..., gold].sum(-1)), "spans:exact"),
    ]
    how = [f"intents:{intents.rule}"] if intents.are_given else []
    if intents.are_given:
        scores.append(sums.score("intent accuracy", lambda s: percentage(s[..., _INTENT], s[..., _SENTENCES]), *how))
    scores.append(sums.score("exact sentences", lambda s: percentage(s[..., _EXACT], s[..., _SENTENCES]), *how))
    return scores


def _by_place(spans: Sequence[Span]) -> dict[tuple[int, int], str]:
    return {(span.start, span.end): span.label for span in spans}


def _confuse(gold: Spans, predicted: Spans, names: Sequence[str]) -> Confusion:
    columns = {name: column for column, name in enumerate(names)}
    counts = [[0] * (len(names) + 1) for _ in range(len(names) + 1)]
    for wanted, given in zip(map(_by_place, gold), map(_by_place, predicted), strict=True):
        for place in wanted.keys() | given.keys():
            row, column = (columns[found[place]] if place in found else -1 for found in (wanted, given))
            counts[row][column] += 1
    return Confusion([*names, NOTHING], counts)


def _worst(texts: Sequence[str], gold: Spans, predicted: Spans, intents: _Intents) -> list[WorstSentence]:
    found = [
        WorstSentence(
            sentence + 1,
            shortened(text),
            _readable(text, wanted),
            _readable(text, given),
            len({(span.start, span.end) for span in set(wanted) ^ set(given)}) + (not intents.is_right(sentence)),
            *intents.pair(sentence),
        )
        for sentence, (text, wanted, given) in enumerate(zip(texts, gold, predicted, strict=True))
        if set(wanted) != set(given) or not intents.is_right(sentence)
    ]
    return sorted(found, key=lambda one: -one.n_wrong)[:N_WORST]


def _readable(text: str, spans: Sequence[Span]) -> tuple[str, ...]:
    words = text.split(" ")
    return tuple(
        _UNWRITTEN_SPACE.sub("", " ".join(words[span.start : span.end])) + (f" ({span.label})" if span.label else "")
        for span in sorted(spans)
    )
