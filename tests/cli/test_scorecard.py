"""Scorecards in a terminal: sections of every type, in one language at a time, within 80 columns."""

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from manyheads import language
from manyheads.cli.rendering.scorecard import difference_lines, score_title, show_cards
from manyheads.metrics import (
    Baseline,
    Card,
    Change,
    Difference,
    GenerationSample,
    LabelCard,
    Score,
    TranslationCard,
    TranslationExample,
    label_card,
    language_card,
    masked_card,
    span_card,
)
from manyheads.text.reading.tag_schemes import Span


def printed(cards: dict[str, Card], width: int = 100) -> str:
    stream = StringIO()
    show_cards(cards, Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


def shown(card: Card, width: int = 100) -> str:
    return "\n".join(" ".join(line.split()) for line in printed({"test": card}, width).splitlines())


def make_label_card(labels: list[str], *, answered: bool = True) -> LabelCard:
    """Ten texts of each label, one of which is predicted as the next label."""
    gold = [(label,) for label in labels for _ in range(10)]
    predicted = [
        (label if n else labels[(index + 1) % len(labels)],) for index, label in enumerate(labels) for n in range(10)
    ]
    probabilities = np.array([[0.9 if (label,) == row else 0.1 for label in labels] for row in predicted])
    answers = predicted if answered else [*predicted[:-1], ()]
    texts = [f"text [b]{number}[/b]" for number in range(len(gold))]
    return label_card(texts, gold, answers, probabilities, labels, n_resamples=20)


def make_translation_card() -> TranslationCard:
    return TranslationCard(
        scores=[Score("BLEU", 41.23, 40.0, 42.5, "tok:13a"), Score("TER", 12.3, 11.0, 13.0, "tok:tercom")],
        n_sentences=200,
        length_ratio=0.87,
        n_copies=3,
        n_wrong_copies=2,
        n_repetitions=10,
        n_empty=0,
        n_empty_references=1,
        n_cut_off=1,
        n_too_long=2,
        worst=[TranslationExample(7, "a [b]", "wrong", "right", 3.0)],
        random=[TranslationExample(9, "c", "same", "same", 100.0)],
    )


def test_classifier() -> None:
    text = shown(make_label_card(["好", "坏", "平"], answered=False))
    assert "held-out test: most confident mistakes (3)\n1 text [b]0[/b]\n→ 坏 90.0 %\n= 好" in text
    assert "好 坏 平 ∅\n好 9 1 · ·\n坏 · 9 1 ·\n平 1 · 8 1\n∅ · · · ·" in text
    assert "好 90.0 90.0 90.0 10" in text
    assert "accuracy 86.7 [" in text
    assert "accuracy where answered 89.7 [" in text
    assert "calibration error ↓" in text
    assert "↓ lower is better" in text
    assert "texts 30" in text
    assert "without an answer 1 (3.3 %)" in text
    assert "n:30|resamples:20" in text


def test_labels_too_wide_for_the_terminal_are_numbered() -> None:
    names = [f"a rather long label {number}" for number in range(5)]
    assert "1 2 3 4 5\n1 a rather long label 0 9 1 · · ·" in shown(make_label_card(names), width=80)


def test_of_many_labels_the_worst_are_shown() -> None:
    text = shown(make_label_card([f"label {number}" for number in range(30)]))
    assert "The 15 labels with the lowest F1 of 30; --json lists all." in text
    assert text.count(" 90.0 90.0 90.0 10\n") == 15
    assert "1 label 3 → label 4 10.0 %" in text


def test_unknown_labels_are_noted() -> None:
    card = label_card(["a", "b"], [("x",), ("y",)], [("x",), ("x",)], np.array([[1.0], [1.0]]), ["x"], n_resamples=5)
    assert "1 text with a label that is not in the training data: no answer can be correct." in shown(card)


@pytest.mark.parametrize(
    ("difference", "low", "high", "verdict"),
    [
        (1.2, 0.6, 1.9, "better than the baseline"),
        (-2.0, -3.0, -1.0, "worse than the baseline"),
        (0.4, -0.7, 1.4, "no clear difference from the baseline"),
    ],
)
def test_a_model_is_compared_with_its_baseline(difference: float, low: float, high: float, verdict: str) -> None:
    change = Change("accuracy", 91.3 + difference, 91.3, difference, low, high, 500)
    card = replace(make_label_card(["a", "b"]), baseline=Baseline("n-gram SVM", change))
    line = f"n-gram SVM 91.3, this model {91.3 + difference:.1f}: {difference:+.1f} [{low:+.1f}, {high:+.1f}] {verdict}"
    assert line in " ".join(shown(card).split())


def test_no_verdict_on_the_set_that_chose_the_mixture_and_no_interval_that_is_a_point() -> None:
    change = Change("accuracy", 100.0, 90.0, 10.0, 4.0, 16.0, 50)
    same = Change("accuracy", 100.0, 100.0, 0.0, 0.0, 0.0, 4)
    for baseline, line in (
        (Baseline("n-gram SVM", change, is_optimistic=True), "+10.0 [+4.0, +16.0] optimistic: the mixture was chosen"),
        (Baseline("n-gram SVM", same), "+0.0 every text is scored alike"),
    ):
        text = " ".join(shown(replace(make_label_card(["a", "b"]), baseline=baseline)).split())
        assert line in text
        assert "better than" not in text


def test_a_baseline_that_is_as_good_is_named_with_its_speed() -> None:
    change = Change("accuracy", 91.7, 91.3, 0.4, -0.7, 1.4, 500)
    for baseline, is_named in (
        (Baseline("n-gram SVM", change, speedup=104.2), True),
        (Baseline("n-gram SVM", change, is_optimistic=True, speedup=104.2), True),  # although the set favors the model
        (Baseline("n-gram SVM", change, speedup=1.5), False),
        (Baseline("n-gram SVM", replace(change, low=0.1), speedup=104.2), False),
    ):
        text = " ".join(shown(replace(make_label_card(["a", "b"]), baseline=baseline)).split())
        assert ("alone, the baseline is 104 × as fast (--baseline-only)" in text) == is_named


def test_tagger() -> None:
    texts, gold = ["John Smith of New York", "Paris"], [[Span(0, 2, "PER"), Span(3, 5, "LOC")], [Span(0, 1, "LOC")]]
    predicted = [[Span(0, 2, "PER"), Span(4, 5, "LOC")], [Span(0, 1, "LOC")]]
    text = shown(span_card(texts, gold, predicted, ["who", "where"], ["where", "where"], known=["PER"], n_resamples=5))
    assert "sentences with the most wrong spans (1)" in text
    assert (
        "1 John Smith of New York\n→ where · John Smith (PER) · York (LOC)\n= who · John Smith (PER) · New York" in text
    )
    assert "LOC PER ∅\nLOC 1 · 1\nPER · 1 ·\n∅ 1 · ·" in text
    assert "F1 66.7 [" in text
    assert "intent accuracy 50.0 [" in text
    assert "2 spans with a label that is not in the training data" in text


def test_unlabeled_spans_and_empty_sentences() -> None:
    text = shown(span_card(["a"], [[]], [[]], n_resamples=5))
    assert "Confusion" not in text
    assert "exact sentences 100.0" in text
    assert "span 100.0 100.0 100.0 1" in shown(span_card(["a"], [[Span(0, 1, "")]], [[Span(0, 1, "")]], n_resamples=5))


def test_language_models() -> None:
    samples = [GenerationSample("Once ", "upon [a] time")]
    text = shown(language_card([300.0, 310.0], [100, 100], [400, 400], [80, 80], [420, 420], samples=samples))
    assert "held-out test: generated samples\nOnce upon [a] time" in text
    assert "nats per character ↓ 0.762 [0.5" in text
    assert "bytes 840" in text
    masked = shown(masked_card([3, 4], [5, 5], [4.0, 3.0], n_resamples=5))
    assert "accuracy of masked tokens 70.0 [" in masked
    assert "masked tokens 10" in masked


def test_translations_with_errors_counted_and_noted() -> None:
    text = shown(make_translation_card())
    assert "held-out test: worst by chrF (1)\n7 a [b]\n→ wrong\n= right" in text
    assert "held-out test: drawn at random (1)\n9 c\n→ same\n✓" in text
    for line in (
        "TER ↓ 12.3 [11.0, 13.0]",
        "number of sentences 200",
        "length ratio to reference 0.87",
        "copies of the source 3 (1.5 %)",
        "wrong copies 2 (1.0 %)",
        "repetitions 10 (5.0 %)",
        "empty translation 0",
        "1 translation cut off at the maximum length.",
        "2 sources too long for the model, scored as empty translations.",
        "1 reference empty: any translation of it is wrong.",
    ):
        assert f"\n{line}\n" in f"\n{text}\n"


def test_several_test_sets_share_one_table() -> None:
    text = printed({"test": make_translation_card(), "compositional": make_translation_card()}, width=80)
    (header,) = (line for line in text.splitlines() if "unseen combinations" in line and "held-out test" in line)
    (row,) = (line for line in text.splitlines() if line.startswith(" repetitions"))
    assert row.count("10 (5.0 %)") == 2
    assert "unseen combinations: 1 translation cut off" in text
    assert header.index("unseen combinations") == row.rindex("10 (5.0 %)")


CARDS: dict[str, Card] = {
    "labels": make_label_card(["good", "bad"]),
    "language": language_card([300.0, 310.0], [100, 100], [400, 400], [80, 80], [420, 420]),
    "translation": make_translation_card(),
}


@pytest.mark.parametrize("kind", CARDS)
def test_output_is_in_one_language_and_fits_into_80_columns(kind: str) -> None:
    for chosen in language.LANGUAGES:
        with language.using(chosen):
            text = printed({"test": CARDS[kind], "compositional": CARDS[kind]}, width=80)
        has_chinese = any("\u4e00" <= character <= "\u9fff" for character in text)
        assert has_chinese is (chosen == "zh")
        lines = [line for line in text.splitlines() if "|" not in line]  # signatures are never wrapped
        assert max(map(cell_len, lines)) <= 80
    with language.using("zh"):
        assert "held-out" not in printed({"test": CARDS[kind]})


@pytest.mark.parametrize(
    ("difference", "p", "verdict"),
    [
        (1.2, 0.01, "better"),
        (-1.2, 0.01, "worse"),
        (1.2, 0.2, "no clear difference"),
        (0.0, 1.0, "no clear difference"),
    ],
)
def test_insignificant_difference_is_not_called_better(difference: float, p: float, verdict: str) -> None:
    name = "BLEU (tokenized, lowercased)"
    interval = (difference - 1, difference + 1)
    first, second = difference_lines(Difference(name, 40 + difference, 40, difference, *interval, 0.0004, p, "tok:13a"))
    assert f"40.0: {difference:+.2f} [{interval[0]:+.2f}, {interval[1]:+.2f}]" in first.plain
    assert verdict in second.plain
    assert f"p = <0.001 bootstrap, {p:.3f} randomization" in second.plain
    assert max(first.cell_len, second.cell_len) <= 80


@pytest.mark.parametrize(("name", "title"), [("BLEU", "BLEU"), ("TER", "TER ↓"), ("recall", "recall")])
def test_titles_of_scores(name: str, title: str) -> None:
    assert score_title(name) == title


def test_titles_of_scores_in_chinese() -> None:
    with language.using("zh"):
        assert score_title("recall") == "召回率"


def test_number_of_texts_and_what_the_set_was_used_for() -> None:
    card = make_label_card(["bad", "good"])
    text = shown(replace(card, scores=[replace(score, used_for=("stopping",)) for score in card.scores]))
    assert "held-out test n = 20 optimistic\n" in text
    assert "n = 20: so few that the interval says little." in text
    assert "The set was also used to choose the checkpoint: its scores are optimistic." in text
    two = printed({"test": make_label_card([f"label {n}" for n in range(9)]), "valid": card})
    assert "  validation: n = 20: so few that the interval says little." in two
    with language.using("zh"):
        assert "n = 20：样本太少，区间参考价值有限。" in shown(card)
