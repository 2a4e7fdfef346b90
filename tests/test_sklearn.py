"""`TransformerClassifier` behaves as scikit-learn's classifiers do."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

from manyheads.sklearn import TransformerClassifier

SMALL = {"steps": 12, "width": 16, "n_heads": 2, "n_layers": 1}
WORDS = {3: ("fine", "lovely", "great"), 7: ("awful", "dull", "poor")}
TEXTS = [f"the {noun} is {word}" for words in WORDS.values() for word in words for noun in "abcdefghijklmnop"]
LABELS = np.repeat(list(WORDS), len(TEXTS) // 2)

# What the common checks ask of every estimator and what does not hold for one of texts; the reason of each.
EXPECTED_FAILURES: dict[str, str] = {}


class OfNumbers(TransformerClassifier):
    """The classifier of texts as one of numbers, which the common checks need: each row is a text of its numbers."""

    def fit(self, X: Any, y: Any) -> "OfNumbers":  # noqa: N803
        rows, labels = validate_data(self, X, y)
        super().fit(_as_texts(rows), labels)
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        check_is_fitted(self)
        return super().predict_proba(_as_texts(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        return tags


def _as_texts(rows: Any) -> list[str]:
    return [" ".join(f"{chr(97 + column)}{value:.1f}" for column, value in enumerate(row)) for row in rows]


@pytest.mark.proof
@parametrize_with_checks([OfNumbers(**SMALL)], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_common_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def fitted() -> TransformerClassifier:
    return TransformerClassifier(**SMALL).fit(TEXTS, LABELS)


def test_classes_keep_their_type_and_order(fitted: TransformerClassifier) -> None:
    assert fitted.classes_.tolist() == [3, 7]
    found = fitted.predict(np.array(TEXTS, dtype=object))
    assert found.dtype == LABELS.dtype
    assert (found == LABELS).mean() == fitted.score(TEXTS, LABELS) > 0.9


def test_probabilities(fitted: TransformerClassifier) -> None:
    texts = [TEXTS[0], TEXTS[-1], "", " "]
    found = fitted.predict_proba(texts)
    assert found.shape == (4, 2)
    assert np.allclose(found.sum(axis=1), 1)
    assert np.allclose(found[2:], 0.5)  # the shares of the classes
    assert (found.argmax(axis=1)[:2] == [0, 1]).all()
    assert np.allclose(fitted.predict_proba(texts[:1]), found[:1], atol=1e-5)


def test_clone_pipeline_and_grid_search() -> None:
    model = Pipeline([("lower", FunctionTransformer(_lower)), ("model", TransformerClassifier(**SMALL))])
    search = GridSearchCV(clone(model), {"model__steps": [2]}, cv=2).fit(TEXTS, LABELS)
    assert search.best_params_ == {"model__steps": 2}
    assert set(search.predict(TEXTS[:3])) <= {3, 7}
    assert model.get_params()["model__steps"] == SMALL["steps"]
    assert not hasattr(model["model"], "bundle_")


def _lower(texts: Any) -> list[str]:
    return [text.lower() for text in texts]


def test_a_copy_by_pickle_predicts_the_same(fitted: TransformerClassifier) -> None:
    copy = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - what joblib does between processes
    assert np.array_equal(copy.predict_proba(TEXTS[:4]), fitted.predict_proba(TEXTS[:4]))


def test_parameters_reach_the_model(fitted: TransformerClassifier) -> None:
    settings = fitted.bundle_.task.model.settings
    assert (settings.width, settings.n_encoder_layers, settings.feed_forward_width) == (16, 1, 64)
    assert fitted.bundle_.recipe["train"]["steps"] == SMALL["steps"]


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("one text", [1], "X is one text"),
        ([], [], "X has 0 texts"),
        ([1.5, 2.5], [1, 2], r"X\[0\] is of type float, not a text"),
        (np.zeros((2, 3)), [1, 2], r"X has the shape \(2, 3\)"),
        (["a", "b"], None, "requires y to be passed"),
        (["a", "b"], [1], "There are 2 texts, but 1 labels"),
        (["a", "b"], [1, 1], "at least two classes"),
        (["a", "b"], [0.5, 1.7], "Unknown label type: continuous"),
    ],
)
def test_wrong_input(texts: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TransformerClassifier().fit(texts, labels)
