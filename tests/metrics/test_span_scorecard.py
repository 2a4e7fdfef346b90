"""The scorecard of spans agrees with the definition of conlleval, by hand and by slow counting."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from manyheads.errors import DataError
from manyheads.metrics import NO_LABEL, SpanCard, span_card
from manyheads.metrics.card_sections import Note
from manyheads.text.reading.tag_schemes import Span

TEXTS = ["John Smith went to New York", "the U.N. met", "nothing here", "Paris"]
GOLD = [[Span(0, 2, "PER"), Span(4, 6, "LOC")], [Span(1, 2, "ORG")], [], [Span(0, 1, "LOC")]]
PREDICTED = [[Span(0, 2, "PER"), Span(5, 6, "LOC")], [Span(1, 2, "LOC")], [], [Span(0, 1, "LOC")]]


def value(card: SpanCard, name: str) -> float:
    return next(score.value for score in card.scores if score.name == name)


def test_by_hand() -> None:
    card = span_card(TEXTS, GOLD, PREDICTED)
    # Right: John Smith, Paris. Gold 4, predicted 4. "York" for "New York" is wrong, and so is the U.N. as a location.
    for name in ("precision", "recall", "F1"):
        assert value(card, name) == pytest.approx(50)
    assert value(card, "exact sentences") == pytest.approx(50)
    assert {row.label: (row.precision, row.recall, row.support) for row in card.rows} == {
        "LOC": (pytest.approx(100 / 3), 50, 2),
        "ORG": (0, 0, 1),
        "PER": (100, 100, 1),
    }
    assert card.confusion.labels == ["LOC", "ORG", "PER", NO_LABEL]
    assert card.confusion.counts == [[1, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]
    assert (card.n_texts, card.n_spans, card.n_predicted) == (4, 4, 4)
    assert [(one.number, one.n_wrong) for one in card.worst] == [(1, 2), (2, 1)]
    assert card.worst[0].gold == ("John Smith (PER)", "New York (LOC)")
    assert card.worst[0].predicted == ("John Smith (PER)", "York (LOC)")
    assert card.scores[0].signature == "n:4|resamples:1000|spans:exact"


def test_documented_cases_of_other_tools() -> None:
    """A truncated span counts as wrong; extra spans reduce precision only."""
    one = [[Span(3, 6, "MISC")], [Span(0, 2, "PER")]]
    cut = [[Span(2, 6, "MISC")], [Span(0, 2, "PER")]]
    assert value(span_card(["a b c d e f g", "a b c"], one, cut), "F1") == pytest.approx(50)
    more = [[Span(3, 6, "MISC"), Span(0, 1, "PER")], [Span(0, 2, "PER")]]
    card = span_card(["a b c d e f g", "a b c"], one, more)
    assert value(card, "precision") == pytest.approx(200 / 3)
    assert value(card, "recall") == pytest.approx(100)
    assert value(card, "F1") == pytest.approx(80)


def random_spans(n: int) -> tuple[list[str], list[list[Span]], list[list[Span]]]:
    rng = np.random.default_rng(5)

    def draw() -> list[Span]:
        ends = np.flatnonzero(rng.random(12) < 0.3)
        spans = [Span(int(max(end - 1, 0)), int(end) + 1, str(rng.choice(["A", "B", "C"]))) for end in ends[::2]]
        return [span for at, span in enumerate(spans) if not at or span.start >= spans[at - 1].end]

    gold = [draw() for _ in range(n)]
    return ["w " * 12 + "w"] * n, gold, [row if rng.random() < 0.7 else draw() for row in gold]


def slow_f1(gold: list[list[Span]], predicted: list[list[Span]]) -> float:
    tagged = [{(i, s.start, s.end, s.label) for i, row in enumerate(side) for s in row} for side in (gold, predicted)]
    right = len(tagged[0] & tagged[1])
    precision, recall = right / len(tagged[1]), right / len(tagged[0])
    return 200 * precision * recall / (precision + recall)


def test_random_spans_and_their_interval_agree_with_slow_counting() -> None:
    texts, gold, predicted = random_spans(200)
    card = span_card(texts, gold, predicted)
    assert value(card, "F1") == pytest.approx(slow_f1(gold, predicted))
    rng = np.random.default_rng(0)
    draws = [rng.integers(200, size=200) for _ in range(300)]
    values = [slow_f1([gold[i] for i in draw], [predicted[i] for i in draw]) for draw in draws]
    score = card.scores[0]
    assert [score.low, score.high] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=1.5)
    assert score.low < score.value < score.high
    assert sum(map(sum, card.confusion.counts[:-1])) == card.n_spans
    assert sum(sum(row[:-1]) for row in card.confusion.counts) == card.n_predicted


def test_intents_of_joint_models_strict_and_any() -> None:
    gold, predicted = ["flight#airfare", "flight", "city", "city"], ["flight", "flight", "city", "flight"]
    strict = span_card(TEXTS, GOLD, GOLD, gold, predicted)
    assert value(strict, "intent accuracy") == pytest.approx(50)
    assert value(strict, "exact sentences") == pytest.approx(50)
    assert value(strict, "F1") == pytest.approx(100)
    assert [(one.number, one.n_wrong, one.gold_label, one.predicted_label) for one in strict.worst] == [
        (1, 1, "flight#airfare", "flight"),
        (4, 1, "city", "flight"),
    ]
    either = span_card(TEXTS, GOLD, GOLD, gold, predicted, intents="any")
    assert value(either, "intent accuracy") == pytest.approx(75)
    assert "intents:any" in next(score.signature for score in either.scores if score.name == "intent accuracy")
    whole = span_card(TEXTS[:1], GOLD[:1], GOLD[:1], gold[:1], ["flight#airfare"], intents="any")
    assert value(whole, "intent accuracy") == pytest.approx(100)
    assert "intent accuracy" not in [score.name for score in span_card(TEXTS, GOLD, GOLD).scores]


def test_unknown_labels_are_counted() -> None:
    assert span_card(TEXTS, GOLD, PREDICTED, known={"PER", "LOC"}).n_unknown == 1
    assert span_card(TEXTS, GOLD, PREDICTED).n_unknown == 0


def test_chinese_spans_are_written_without_spaces() -> None:
    card = span_card(["李 明 在 北 京"], [[Span(0, 2, "人名"), Span(3, 5, "地名")]], [[]])
    assert card.worst[0].gold == ("李明 (人名)", "北京 (地名)")
    assert card.worst[0].n_wrong == 2
    mixed = span_card(["在 iPhone 15 上"], [[Span(0, 4, "物"), Span(1, 3, "")]], [[]])
    assert mixed.worst[0].gold == ("在iPhone 15上 (物)", "iPhone 15")


def test_no_spans_at_all_and_json() -> None:
    card = span_card(["a", "b"], [[], []], [[], []], n_resamples=5)
    assert value(card, "F1") == 0
    assert value(card, "exact sentences") == 100
    assert json.loads(json.dumps(asdict(card), allow_nan=False))["rows"] == []
    json.dumps(asdict(span_card(TEXTS, GOLD, PREDICTED)), allow_nan=False)


def test_bad_input() -> None:
    with pytest.raises(DataError, match="the test set is empty"):
        span_card([], [], [])
    with pytest.raises(ValueError, match="not of the same sentences"):
        span_card(TEXTS, GOLD, PREDICTED[:2])
    with pytest.raises(ValueError, match="not of the same sentences"):
        span_card(TEXTS, GOLD, PREDICTED, ["a"] * 4)


def test_signatures_name_the_size_the_resamples_and_the_rules() -> None:
    labels = ["a", "b", "c", "d"]
    card = span_card(TEXTS, GOLD, PREDICTED, labels, labels, intents="any", n_resamples=20)
    assert {score.name: score.signature for score in card.scores} == {
        "F1": "n:4|resamples:20|spans:exact",
        "precision": "n:4|resamples:20|spans:exact",
        "recall": "n:4|resamples:20|spans:exact",
        "intent accuracy": "n:4|resamples:20|intents:any",
        "exact sentences": "n:4|resamples:20|intents:any",
    }


@pytest.mark.parametrize(("known", "n_notes"), [({"PER", "LOC"}, 1), ({"PER", "LOC", "ORG"}, 0)])
def test_unknown_labels_are_noted(known: set[str], n_notes: int) -> None:
    sections = span_card(TEXTS, GOLD, PREDICTED, known=known).sections()
    notes = [section for section in sections if isinstance(section, Note)]
    assert [str(note.text) for note in notes] == [
        "1 span with a label that is not in the training data: no answer can be correct."
    ] * n_notes
