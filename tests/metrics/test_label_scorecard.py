"""The scorecard of labels agrees with slow counting."""

import json
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pytest

from manyheads.errors import DataError
from manyheads.metrics import NO_LABEL, LabelCard, label_card

LABELS = ["bad", "fair", "good"]


def one_each(*labels: str) -> list[tuple[str, ...]]:
    return [(label,) if label else () for label in labels]


def sure_of(predicted: Sequence[tuple[str, ...]], how: float = 0.9) -> "np.ndarray":
    rest = (1 - how) / 2
    return np.array([[how if (label,) == row else rest for label in LABELS] for row in predicted])


def card_of(gold: list[tuple[str, ...]], predicted: list[tuple[str, ...]], **changes: object) -> LabelCard:
    texts = [f"text {number}" for number in range(len(gold))]
    return label_card(texts, gold, predicted, sure_of(predicted), LABELS, n_resamples=200, **changes)


def value(card: LabelCard, name: str) -> float:
    return next(score.value for score in card.scores if score.name == name)


def slow_f1(gold: list[set[str]], predicted: list[set[str]], label: str) -> float:
    right = sum(label in g and label in p for g, p in zip(gold, predicted, strict=True))
    precision = right / max(1, sum(label in p for p in predicted))
    recall = right / max(1, sum(label in g for g in gold))
    return 200 * precision * recall / (precision + recall) if right else 0.0


def random_answers(n: int, most: int) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    rng = np.random.default_rng(1)

    def draw() -> tuple[str, ...]:
        size = 1 if most == 1 else rng.integers(most + 1)
        return tuple(rng.permutation(LABELS)[:size].tolist())

    gold = [draw() for _ in range(n)]
    return gold, [row if rng.random() < 0.6 else draw() for row in gold]


def test_single_labels_by_hand() -> None:
    gold = one_each("bad", "bad", "bad", "good", "good", "fair")
    predicted = one_each("bad", "bad", "good", "good", "fair", "bad")
    card = card_of(gold, predicted)
    assert value(card, "accuracy") == pytest.approx(50)
    # bad: 2 of 3 and 2 of 3; good: 1 of 2 and 1 of 2; fair: none.
    assert [(row.label, row.support) for row in card.rows] == [("bad", 3), ("fair", 1), ("good", 2)]
    assert [row.f1 for row in card.rows] == pytest.approx([200 / 3, 0, 50])
    assert value(card, "macro-F1") == pytest.approx((200 / 3 + 50) / 3)
    assert card.confusion is not None
    assert card.confusion.labels == LABELS
    assert card.confusion.counts == [[2, 0, 1], [1, 0, 0], [0, 1, 1]]
    assert card.n_abstained == card.n_unknown == 0


@pytest.mark.parametrize("most", [1, 3])
def test_random_answers_agree_with_slow_counting(most: int) -> None:
    gold, predicted = random_answers(300, most)
    card = card_of(gold, predicted, multi_label=most > 1)
    sets = [set(row) for row in gold], [set(row) for row in predicted]
    f1s = {label: slow_f1(*sets, label) for label in LABELS}
    assert {row.label: row.f1 for row in card.rows} == pytest.approx(f1s)
    assert value(card, "macro-F1") == pytest.approx(np.mean(list(f1s.values())))
    same = 100 * np.mean([g == p for g, p in zip(*sets, strict=True)])
    assert value(card, "exact match" if most > 1 else "accuracy") == pytest.approx(same)
    if most > 1:
        right = sum(len(g & p) for g, p in zip(*sets, strict=True))
        assert value(card, "micro-F1") == pytest.approx(200 * right / sum(len(row) for side in sets for row in side))
        assert card.confusion is None


def test_interval_agrees_with_slow_resampling() -> None:
    """Slow reference: draw texts with replacement, and count each draw from scratch."""
    gold, predicted = random_answers(150, 1)
    rng = np.random.default_rng(7)
    accuracies, macros = [], []
    for _ in range(400):
        rows = rng.integers(150, size=150)
        drawn = [{gold[row][0]} for row in rows], [{predicted[row][0]} for row in rows]
        accuracies.append(100 * np.mean([g == p for g, p in zip(*drawn, strict=True)]))
        macros.append(np.mean([slow_f1(*drawn, label) for label in LABELS]))
    card = label_card(["x"] * 150, gold, predicted, sure_of(predicted), LABELS)
    scores = {score.name: score for score in card.scores}
    for name, values in (("accuracy", accuracies), ("macro-F1", macros)):
        assert [scores[name].low, scores[name].high] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=2)
        assert scores[name].low < scores[name].value < scores[name].high
        assert scores[name].signature.startswith("n:150|resamples:1000")


def test_abstaining_counts_as_wrong_and_is_reported() -> None:
    card = card_of(one_each("bad", "good", "good", "fair"), one_each("bad", "", "good", "good"))
    assert value(card, "accuracy") == pytest.approx(50)
    assert value(card, "accuracy where answered") == pytest.approx(200 / 3)
    assert card.n_abstained == 1
    assert card.confusion is not None
    assert card.confusion.labels[-1] == NO_LABEL
    assert [row[-1] for row in card.confusion.counts] == [0, 0, 1, 0]
    assert [mistake.number for mistake in card.worst] == [4]  # a text without an answer is not listed
    answered = card_of(one_each("bad"), one_each("bad"))
    assert "accuracy where answered" not in [score.name for score in answered.scores]
    unanswered = card_of(one_each("bad"), one_each(""))
    assert value(unanswered, "accuracy where answered") == 0


def test_unknown_labels_count_as_wrong() -> None:
    card = card_of(one_each("bad", "superb", "superb"), one_each("bad", "good", "good"))
    assert card.n_unknown == 2
    assert value(card, "accuracy") == pytest.approx(100 / 3)
    assert [row.label for row in card.rows] == ["bad", "good", "superb"]
    assert value(card, "macro-F1") == pytest.approx(100 / 3)
    assert card.confusion is not None
    assert card.confusion.counts == [[1, 0, 0], [0, 0, 0], [0, 2, 0]]


def test_calibration_error_by_hand() -> None:
    gold = one_each("bad", "bad", "bad", "bad")
    predicted = one_each("bad", "bad", "good", "bad")
    probabilities = np.array([[0.9, 0.05, 0.05], [0.91, 0.04, 0.05], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]])
    # Bins of 1/15: {0.9, 0.91} all right, {0.8} wrong, {0.5} right.
    expected = 100 * (abs(1.81 - 2) + 0.8 + 0.5) / 4
    card = label_card(["x"] * 4, gold, predicted, probabilities, LABELS)
    assert value(card, "calibration error") == pytest.approx(expected)
    several = label_card(["x"] * 4, gold, predicted, probabilities, LABELS, multi_label=True)
    gaps: dict[int, float] = {}
    for row in probabilities:
        for column, probability in enumerate(row):
            bin_index = int(probability * 15)
            gaps[bin_index] = gaps.get(bin_index, 0.0) + probability - (column == 0)
    assert value(several, "calibration error") == pytest.approx(100 * sum(map(abs, gaps.values())) / 12)


def test_true_probabilities_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([1, 1, 1], size=20_000)
    drawn = (rng.random((20_000, 1)) > probabilities.cumsum(1)).sum(1)
    gold = one_each(*(LABELS[column] for column in drawn))
    predicted = one_each(*(LABELS[column] for column in probabilities.argmax(1)))
    card = label_card(["x"] * len(gold), gold, predicted, probabilities, LABELS, n_resamples=20)
    assert value(card, "calibration error") < 1.5
    sharpened = probabilities**3 / (probabilities**3).sum(1, keepdims=True)
    card = label_card(["x"] * len(gold), gold, predicted, sharpened, LABELS, n_resamples=20)
    assert value(card, "calibration error") > 10


def test_most_confident_mistakes_come_first() -> None:
    rng = np.random.default_rng(3)
    probabilities = rng.dirichlet([1, 1, 1], size=100)
    gold, predicted = one_each(*["bad"] * 100), one_each(*(LABELS[column] for column in probabilities.argmax(1)))
    card = label_card(["long " * 400] * 100, gold, predicted, probabilities, LABELS, n_resamples=5)
    wrong = sorted((row.max() for row in probabilities if row.argmax()), reverse=True)
    assert [mistake.probability for mistake in card.worst] == pytest.approx(wrong[:20])
    assert all(mistake.predicted != ("bad",) == mistake.gold for mistake in card.worst)
    assert len(card.worst[0].text) < 600


def test_mistakes_with_several_labels() -> None:
    probabilities = np.array([[0.9, 0.2, 0.6], [0.1, 0.2, 0.1], [0.9, 0.1, 0.1]])
    gold, predicted = [("bad",), ("fair", "strange"), ("bad",)], [("bad", "good"), (), ("bad",)]
    card = label_card(["a", "b", "c"], gold, predicted, probabilities, LABELS, multi_label=True, n_resamples=5)
    assert [(mistake.number, mistake.probability) for mistake in card.worst] == [(2, 0.8), (1, 0.6)]
    assert card.n_unknown == 1
    assert card.n_abstained == 0  # no label is an answer


def test_card_is_valid_json_without_nan() -> None:
    gold, predicted = random_answers(30, 1)
    text = json.dumps(asdict(card_of(gold, predicted)), allow_nan=False)
    assert json.loads(text)["confusion"]["labels"] == LABELS
    json.dumps(asdict(card_of([("bad",)], [()])), allow_nan=False)
    json.dumps(asdict(card_of([()], [()], multi_label=True)), allow_nan=False)


def test_matrix_too_large_to_read_is_left_out() -> None:
    labels = [f"label {number}" for number in range(250)]
    rows = one_each(*labels)
    card = label_card(labels, rows, rows, np.eye(250), labels, n_resamples=5)
    assert card.confusion is None
    assert len(card.rows) == 250


def test_bad_input() -> None:
    with pytest.raises(DataError, match="the test set is empty"):
        card_of([], [])
    with pytest.raises(ValueError, match="do not match"):
        label_card(["a"], [("bad",)], [], np.ones((1, 3)), LABELS)
    with pytest.raises(ValueError, match="do not match 3 labels"):
        label_card(["a"], [("bad",)], [("bad",)], np.ones((1, 2)), LABELS)
