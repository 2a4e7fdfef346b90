"""Out of scope: the features of texts that belong to no label, their weights, and how they are stored."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.metrics import auroc
from manyheads.tasks import Classify, ClassifySettings
from manyheads.tasks.classify.out_of_scope import THRESHOLD, Scope, SeenNgrams, made_up_texts

from tasks.small import make_task

ANY = DecodeSettings()
ROWS = [
    (f"the {noun} was {adjective}{end}", "good" if adjective in ("great", "lovely") else "bad")
    for noun in ("film", "hotel", "meal", "walk")
    for adjective in ("great", "lovely", "awful", "dull")
    for end in ("", " today", " indeed")
]


def ngrams_of(*texts: str) -> SeenNgrams:
    return SeenNgrams.of((text, [ord(letter) for letter in text]) for text in texts)


def test_unseen_shares_of_known_and_unknown_texts() -> None:
    ngrams = ngrams_of("the cat sat", "a dog ran")
    assert ngrams.unseen_shares("The CAT sat", [ord(letter) for letter in "the cat sat"]) == (0.0, 0.0)
    trigrams, pairs = ngrams.unseen_shares("xyz qwv", [1, 2, 3])
    assert trigrams > 0.9 and pairs > 0.9
    assert ngrams.unseen_shares("", [])[1] == 1.0


def test_filter_is_stored_as_text_and_damaged_ones_are_refused() -> None:
    ngrams = ngrams_of("the cat sat")
    again = SeenNgrams.from_text(json.loads(json.dumps(ngrams.to_text())))
    assert np.array_equal(again.bits, ngrams.bits)
    for damaged in ("", "AAAA", "?"):
        with pytest.raises(ValueError):
            SeenNgrams.from_text(damaged)
    for weights, bias in (([1, 2], 0), ([1, 2, float("nan")], 0), ([1, 2, 3], float("inf"))):
        with pytest.raises(ValueError, match=r"out_of_scope\.weights"):
            Scope.restore({"weights": weights, "bias": bias, "ngrams": ngrams.to_text()})


def test_filter_grows_with_the_texts_up_to_a_limit() -> None:
    few, many = ngrams_of("a b"), SeenNgrams.of((f"text {number}", [number, number + 1]) for number in range(3000))
    assert len(few.bits) == 4096 < len(many.bits) <= 1 << 21
    assert many.bits.mean() < 0.13


def test_made_up_texts_have_the_letters_of_the_texts_and_are_the_same_every_time() -> None:
    texts = [row[0] for row in ROWS]
    made = made_up_texts(texts)
    assert made == made_up_texts(texts) != made_up_texts(texts, seed=1)
    assert len(made) == 3 * len(texts)
    assert {letter for text in made for letter in text} <= {letter for text in texts for letter in text}
    assert all(" " not in text for text in made_up_texts(["今天天气好", "我们去公园"]))
    assert made_up_texts([]) == []


def test_weights_are_not_negative_and_few_texts_in_scope_are_above_the_threshold() -> None:
    rng = np.random.default_rng(1)
    inside, outside = rng.normal(0, 1, (200, 3)), rng.normal([2, -2, 0], 1, (300, 3))
    scope = Scope(ngrams_of("a")).fit(inside, outside)
    assert scope.weights[0] > 0.5 and 0 <= scope.weights[1] < 0.01
    assert (scope.scores(inside) > THRESHOLD).mean() <= 0.02
    assert (scope.scores(outside) > THRESHOLD).mean() > 0.3
    assert not scope.fit(inside[:5], outside).is_fitted


@pytest.fixture(scope="module")
def task() -> Classify:
    torch.manual_seed(1)
    return make_task(Classify, ClassifySettings(), ROWS).calibrate(ROWS[::2])


def test_classifier_tells_texts_that_are_unlike_its_own(task: Classify) -> None:
    known, nonsense = task.predict(["the film was lovely", "blah blah blah"], ANY)
    assert known.out_of_scope is not None and nonsense.out_of_scope is not None
    assert known.out_of_scope < THRESHOLD < nonsense.out_of_scope
    assert task.predict(["  "], ANY)[0].out_of_scope is None
    score = next(score for score in task.score(ROWS[1::2], ANY).scores if score.name == "out-of-scope AUROC")
    assert score.value > 90 and score.low < score.value


def test_scope_is_part_of_the_metadata(task: Classify) -> None:
    metadata = json.loads(json.dumps(task.metadata()))
    again = Classify.restore(task.model, task.tokenizer, task.settings, metadata)
    again.module.load_state_dict(task.module.state_dict())
    again.module.eval()
    again = again.with_baseline(task.baseline_tensors())
    texts = ["the meal was dull", "qwertz"]
    first, second = ([one.out_of_scope for one in own.predict(texts, ANY)] for own in (task, again))
    assert first == second
    older = Classify.restore(task.model, task.tokenizer, task.settings, metadata | {"out_of_scope": None})
    older = older.with_baseline(task.baseline_tensors())
    assert older.predict(texts, ANY)[0].out_of_scope is None
    assert "out-of-scope AUROC" not in [score.name for score in older.score(ROWS, ANY).scores]


def test_several_labels(tmp_path: Path) -> None:
    rows = [(text, "food|new" if "meal" in text else "") for text, _ in ROWS]
    task = make_task(Classify, ClassifySettings(multi_label=True), rows).calibrate(rows)
    known, nonsense = task.predict(["the film was lovely", "zzz qqq xxx"], ANY)
    assert (known.out_of_scope or 0) < (nonsense.out_of_scope or 0)


def test_texts_of_the_user_are_scored(task: Classify) -> None:
    area, found, alarms = task.score_out_of_scope(ROWS[1::2], ["blah blah", "12345", "Wo ist der Bahnhof?"], "spam.txt")
    assert area.name == "out-of-scope AUROC (spam.txt)" and area.value > 90
    assert found.name == "out-of-scope found (spam.txt)" and found.value > 60 and found.n == 3
    assert alarms.name == "false alarms" and alarms.n == len(ROWS[1::2])
    assert replace(task, scope=None).score_out_of_scope(ROWS, ["a"], "x") == []


@pytest.mark.parametrize(
    ("inside", "outside", "value"), [([0, 1], [2, 3], 100.0), ([2], [1], 0.0), ([1, 1], [1], 50.0), ([0, 2], [1], 50.0)]
)
def test_auroc_by_hand(inside: list[float], outside: list[float], value: float) -> None:
    score = auroc("AUROC", inside, outside)
    assert score.value == value
    assert score.low <= value <= score.high and score.high - score.low > 30
    assert score.n == len(inside) + len(outside)


def test_auroc_equals_the_share_of_pairs_and_its_interval_covers_the_truth() -> None:
    rng = np.random.default_rng(3)
    n_covered = 0
    for _ in range(40):
        inside, outside = rng.normal(0, 1, 30), rng.normal(1, 1, 40)
        score = auroc("AUROC", inside.tolist(), outside.tolist(), n_resamples=300)
        assert score.value == pytest.approx(100 * np.mean(outside[None] > inside[:, None]))
        n_covered += score.low <= 76.02 <= score.high  # Φ(1/√2)
    assert n_covered >= 36


def test_auroc_of_one_text_of_each_kind_is_at_most_100() -> None:
    score = auroc("AUROC", [0.1], [0.2])
    assert (score.value, score.high) == (100.0, 100.0) and score.low < 5
