"""What scorecards of labels, spans and language models look like in a terminal."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from manyheads.cli.scorecard import score_title, show_card
from manyheads.metrics import GenerationSample, LabelCard, label_card, language_card, span_card
from manyheads.tasks import Card
from manyheads.text.tag_schemes import Span


def shown(card: Card, width: int = 100) -> str:
    stream = StringIO()
    show_card("test", card, Console(file=stream, width=width, highlight=False))
    return "\n".join(" ".join(line.split()) for line in stream.getvalue().splitlines())


def card_of(labels: list[str], *, answered: bool = True) -> LabelCard:
    """Ten texts of each label, of which one is taken for the next label."""
    gold = [(label,) for label in labels for _ in range(10)]
    predicted = [
        (label if n else labels[(at + 1) % len(labels)],) for at, label in enumerate(labels) for n in range(10)
    ]
    probabilities = np.array([[0.9 if (label,) == row else 0.1 for label in labels] for row in predicted])
    given = predicted if answered else [*predicted[:-1], ()]
    texts = [f"text [b]{number}[/b]" for number in range(len(gold))]
    return label_card(texts, gold, given, probabilities, labels, n_resamples=20)


def test_a_classifier() -> None:
    found = shown(card_of(["好", "坏", "平"], answered=False))
    assert "held-out test: the most confident mistakes · 最自信的错误 (3)\n1 text [b]0[/b]\n→ 坏 90.0 %\n= 好" in found
    assert "好 坏 平 ∅\n好 9 1 · ·\n坏 · 9 1 ·\n平 1 · 8 1\n∅ · · · ·" in found
    assert "好 90.0 90.0 90.0 10" in found
    assert "accuracy · 准确率 86.7 [" in found
    assert "accuracy where answered · 作答部分的准确率 89.7 [" in found
    assert "calibration error · 校准误差 (lower is better · 越低越好)" in found
    assert "texts · 文本数 30, left open · 未作答 1" in found
    assert "n:30|resamples:20" in found


def test_labels_too_wide_for_the_terminal_are_numbered() -> None:
    names = [f"a rather long label {number}" for number in range(5)]
    assert "1 2 3 4 5\n1 a rather long label 0 9 1 · · ·" in shown(card_of(names), width=80)


def test_of_many_labels_the_worst_are_shown() -> None:
    found = shown(card_of([f"label {number}" for number in range(30)]))
    assert "The 15 worst of 30 labels by F1" in found
    assert found.count(" 90.0 90.0 90.0 10\n") == 15
    assert "1 label 3 → label 4 10.0 %" in found


def test_labels_never_seen_in_training_are_told() -> None:
    card = label_card(["a", "b"], [("x",), ("y",)], [("x",), ("x",)], np.array([[1.0], [1.0]]), ["x"], n_resamples=5)
    assert "1 of the texts has a label never seen in training" in shown(card)


def test_a_tagger() -> None:
    texts, gold = ["John Smith of New York", "Paris"], [[Span(0, 2, "PER"), Span(3, 5, "LOC")], [Span(0, 1, "LOC")]]
    predicted = [[Span(0, 2, "PER"), Span(4, 5, "LOC")], [Span(0, 1, "LOC")]]
    found = shown(span_card(texts, gold, predicted, ["who", "where"], ["where", "where"], known=["PER"], n_resamples=5))
    assert (
        "1 John Smith of New York\n→ where · John Smith (PER) · York (LOC)\n= who · John Smith (PER) · New York"
        in found
    )
    assert "LOC PER ∅\nLOC 1 · 1\nPER · 1 ·\n∅ 1 · ·" in found
    assert "F1 66.7 [" in found
    assert "intent accuracy · 意图准确率 50.0 [" in found
    assert "2 of the spans have labels never seen in training" in found


def test_nothing_found_and_nothing_to_find() -> None:
    found = shown(span_card(["a"], [[]], [[]], n_resamples=5))
    assert "Confusion" not in found
    assert "exact sentences · 整句正确率 100.0" in found


def test_a_language_model() -> None:
    samples = [GenerationSample("Once ", "upon [a] time")]
    found = shown(language_card([300.0, 310.0], [100, 100], [400, 400], [80, 80], [420, 420], samples=samples))
    assert "Once upon [a] time" in found
    assert "nats per character · 每字符奈特 (lower is better · 越低越好) 0.762 [0.750, 0.775]" in found
    assert "bytes · 字节数 840" in found


@pytest.mark.parametrize(
    ("name", "title"),
    [("BLEU", "BLEU"), ("TER", "TER (lower is better · 越低越好)"), ("recall", "recall · 召回率")],
)
def test_titles_of_scores(name: str, title: str) -> None:
    assert score_title(name) == title
