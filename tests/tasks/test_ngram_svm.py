"""The linear classifier of n-grams, compared with scikit-learn's own pipeline."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion

from manyheads import corpora
from manyheads.tasks.classify.ngram_svm import NgramSVM, _count, one_in

from text.test_ngram_hashes import slow_ngrams

ROWS = list(corpora.rows("classify", "en", "train", 300, 1))
LABELS = sorted({label for _, label in ROWS})
TARGETS = np.array([[label == own for own in LABELS] for _, label in ROWS])


def ngrams_of(kind: str, text: str) -> list[str]:
    return [ngram for (own, ngram), count in slow_ngrams(text).items() if own == kind for _ in range(count)]


def test_features_are_those_of_scikit_learn() -> None:
    """TF-IDF of the same n-grams: the dot products of all pairs of texts agree."""
    texts = [text for text, _ in ROWS]
    ours = NgramSVM.fit(texts, TARGETS)._features(_count(texts), len(texts))
    parts = [
        (kind, TfidfVectorizer(analyzer=partial(ngrams_of, kind), sublinear_tf=True, min_df=2))
        for kind in ("words", "characters")
    ]
    theirs = FeatureUnion(parts).fit_transform(texts)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose((ours @ ours.T).toarray(), (theirs @ theirs.T).toarray(), atol=1e-4)


def test_learns_the_built_in_corpus() -> None:
    texts = [text for text, _ in ROWS]
    fitted = NgramSVM.fit(texts, TARGETS)
    assert np.mean(fitted.decide(texts).argmax(1) == TARGETS.argmax(1)) > 0.98
    unseen = list(corpora.rows("classify", "en", "test", 100, 1))
    found = [LABELS[best] for best in fitted.decide([text for text, _ in unseen]).argmax(1)]
    assert np.mean([one == label for one, (_, label) in zip(found, unseen, strict=True)]) > 0.8


def test_texts_are_decided_alike_alone_and_together() -> None:
    fitted = NgramSVM.fit([text for text, _ in ROWS], TARGETS)
    texts = [ROWS[0][0], "", "?", ROWS[1][0] * 50, "完全不同"]
    alone = np.concatenate([fitted.decide([text]) for text in texts])
    np.testing.assert_allclose(fitted.decide(texts), alone, atol=1e-6)
    np.testing.assert_allclose(alone[1], fitted.bias)  # a blank text has no n-grams


def test_labels_that_all_or_no_texts_have_are_constants() -> None:
    targets = np.array([[True, False, index % 2 == 0] for index in range(10)])
    fitted = NgramSVM.fit([f"number {index}" for index in range(10)], targets)
    assert fitted.decide(["number 3"])[0, :2].tolist() == [1.0, -1.0]


def test_texts_without_common_ngrams() -> None:
    fitted = NgramSVM.fit(["甲", "乙"], np.array([[True, False], [False, True]]))
    assert fitted.decide(["甲"]).shape == (1, 2)


def test_very_many_texts_are_sampled() -> None:
    assert one_in(1000, 2) == 1
    assert one_in(5_000_000, 2) == 25
    assert one_in(100_000, 1000) == 5


@pytest.mark.parametrize("name", ["hashes", "idf", "weights", "bias"])
def test_arrays_are_restored(name: str) -> None:
    fitted = NgramSVM.fit([text for text, _ in ROWS], TARGETS)
    again = NgramSVM.from_arrays(fitted.arrays, len(LABELS))
    assert np.array_equal(getattr(again, name), getattr(fitted, name))
    with pytest.raises(ValueError, match="expected int64 hashes"):
        NgramSVM.from_arrays({key: array for key, array in fitted.arrays.items() if key != name}, len(LABELS))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("hashes", lambda hashes: hashes[[0, 0, *range(2, len(hashes))]], "not sorted"),  # one of them twice
        ("hashes", lambda hashes: hashes[::-1].copy(), "not sorted"),
        ("weights", lambda weights: weights[:, :-1], "weights has the shape"),
        ("bias", lambda bias: bias * np.float32("nan"), "bias has values that are not finite"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(name: str, change: Callable[[Any], Any], message: str) -> None:
    fitted = NgramSVM.fit([text for text, _ in ROWS], TARGETS)
    with pytest.raises(ValueError, match=message):
        NgramSVM.from_arrays({**fitted.arrays, name: change(fitted.arrays[name])}, len(LABELS))
