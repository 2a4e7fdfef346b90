"""The smallest threshold that reaches a precision, by hand-made decisions."""

import numpy as np
import pytest

from manyheads.metrics import choose_threshold, label_decisions, span_decisions
from manyheads.metrics.thresholds import SPANS, Decisions


def decisions(rows: list[tuple[float, bool]], n_texts: int | None = None) -> Decisions:
    probabilities, are_correct = zip(*rows, strict=True)
    return Decisions(np.arange(len(rows)), np.array(probabilities), np.array(are_correct), n_texts or len(rows))


MIXED = [(0.95, True)] * 60 + [(0.9, False)] * 2 + [(0.8, True)] * 20 + [(0.6, False)] * 10 + [(0.4, True)] * 8


def test_smallest_threshold_that_reaches_the_precision() -> None:
    choice = choose_threshold(decisions(MIXED, n_texts=125), 97.0)
    assert choice.chosen is not None and choice.precision is not None
    assert choice.chosen.threshold == 0.8  # 80 of 82: at 0.9 it would be 60 of 62, less
    assert choice.chosen.n_answers == 82
    assert choice.chosen.precision == choice.precision.value == pytest.approx(100 * 80 / 82)
    assert choice.chosen.coverage == pytest.approx(100 * 82 / 125)
    assert choice.precision.low < choice.precision.value < choice.precision.high <= 100
    assert [row.threshold for row in choice.rows] == [0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    assert [row.n_answers for row in choice.rows] == [100, 92, 92, 82, 82, 62, 60]
    notes = [str(note) for note in choice.notes()]
    assert notes[0] == "Only 82 answers carry this precision; to know it well would take 167."
    assert "check it on others" in notes[1]


def test_no_threshold_is_needed_where_all_answers_have_the_precision() -> None:
    choice = choose_threshold(decisions([(0.9, True)] * 190 + [(0.3, False)] * 10), 80.0)
    assert choice.chosen is not None
    assert (choice.chosen.threshold, choice.chosen.n_answers) == (0.0, 200)
    assert len(list(choice.notes())) == 1  # enough answers


def test_a_precision_that_cannot_be_reached() -> None:
    choice = choose_threshold(decisions([(0.9, True)] * 50 + [(0.9, False)] * 50 + [(0.2, False)] * 9), 95.0)
    assert choice.chosen is choice.precision is None
    assert [str(note) for note in choice.notes()] == [
        "No threshold reaches a precision of 95 % on these rows. The highest is 50.0 %, of 100 answers at 0.9."
    ]
    nothing = choose_threshold(Decisions(np.array([], int), np.array([]), np.array([], bool), 3), 95.0)
    assert (nothing.chosen, nothing.best, list(nothing.rows)) == (None, None, [])
    assert [str(note) for note in nothing.notes()] == ["The model gave no answer at all."]


def test_certainty_is_never_well_known() -> None:
    choice = choose_threshold(decisions([(0.9, True)] * 5000), 100.0)
    assert str(next(choice.notes())) == "5,000 correct answers do not show that there are no errors elsewhere."


def test_a_threshold_can_be_typed() -> None:
    """Six digits, rounded down, so that the answer it was chosen by is kept."""
    choice = choose_threshold(decisions([(0.87654321, True)] * 9 + [(0.5, False)]), 99.0)
    assert choice.chosen is not None
    assert (choice.chosen.threshold, choice.chosen.n_answers) == (0.876543, 9)
    assert f"{choice.chosen.threshold:g}" == "0.876543"


def test_single_labels_answer_every_text_that_is_not_blank() -> None:
    probabilities = np.array([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]])
    found = label_decisions([False, False, True], [{"a"}, {"a"}, {"a"}], probabilities, ["a", "b"], multi_label=False)
    assert found.texts.tolist() == [0, 1]
    assert found.probabilities.tolist() == [0.7, 0.8]
    assert found.are_correct.tolist() == [True, False]
    assert found.coverage(np.array([True, False])) == pytest.approx(100 / 3)


def test_several_labels_of_a_text_are_several_answers() -> None:
    probabilities = np.array([[0.7, 0.9, 0.01], [0.2, 0.01, 0.01]])
    found = label_decisions([False, False], [{"a", "c"}, set()], probabilities, ["a", "b", "c"], multi_label=True)
    assert list(zip(found.texts.tolist(), found.are_correct.tolist(), strict=True)) == [
        (0, True),
        (0, False),
        (1, False),
    ]
    assert found.coverage(np.array([True, True, False])) == 50.0
    choice = choose_threshold(found, 30.0)
    assert choice.chosen is not None and choice.chosen.threshold == 0.05  # 0 would stand for ½
    assert choice.rows[0].threshold == 0.5


def test_spans_are_counted_one_by_one() -> None:
    found = span_decisions([{"x", "y"}, set(), {"z"}], [[("x", 0.9), ("q", 0.4)], [], [("z", 0.8)]])
    assert found.coverage_of == SPANS
    choice = choose_threshold(found, 100.0)
    assert choice.chosen is not None
    assert (choice.chosen.threshold, choice.chosen.n_answers) == (0.8, 2)
    assert choice.chosen.coverage == pytest.approx(100 * 2 / 3)
    assert len(span_decisions([set()], [[]]).texts) == 0
