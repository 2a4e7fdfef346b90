"""The frozen-features probe: logistic regression, folds, and logits of rows that were not fitted."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from manyheads.tasks.classify.logistic_probe import (
    LogisticProbe,
    OutOfFold,
    assign_folds,
    fit_probe,
    label_loss,
    one_in,
    out_of_fold,
)


def clusters(n_rows: int, n_labels: int, width: int = 8) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Vectors around one center for each label."""
    rng = np.random.default_rng(1)
    labels = np.arange(n_rows) % n_labels
    vectors = rng.normal(size=(n_labels, width))[labels] + 0.3 * rng.normal(size=(n_rows, width))
    return vectors.astype(np.float32), np.eye(n_labels, dtype=np.bool_)[labels]


@pytest.mark.parametrize("n_labels", [2, 3, 7])
def test_the_logits_are_those_of_scikit_learn(n_labels: int) -> None:
    from sklearn.linear_model import LogisticRegression

    vectors, targets = clusters(70, n_labels)
    scale = np.sqrt((vectors**2).sum(1).mean())
    probe = LogisticProbe.fit(vectors, targets, 10.0)
    theirs = LogisticRegression(C=10.0, max_iter=300).fit(vectors / scale, targets.argmax(1))
    found = torch.from_numpy(probe.logits(vectors)).softmax(-1).numpy()
    np.testing.assert_allclose(found, theirs.predict_proba(vectors / scale), atol=1e-4)


def test_a_label_without_a_row_is_never_predicted() -> None:
    vectors, targets = clusters(40, 2)
    wider = np.concatenate([targets, np.zeros((40, 1), np.bool_)], axis=1)
    assert (LogisticProbe.fit(vectors, wider, 1.0).logits(vectors).argmax(1) == targets.argmax(1)).all()
    only = wider[targets[:, 0]]
    assert (LogisticProbe.fit(vectors[targets[:, 0]], only, 1.0).logits(vectors).argmax(1) == 0).all()


def test_several_labels_are_fitted_one_by_one() -> None:
    vectors, targets = clusters(60, 3)
    several = np.stack([targets[:, 0] | targets[:, 1], targets[:, 2], np.ones(60, np.bool_)], axis=1)
    logits = LogisticProbe.fit(vectors, several, 100.0, multi_label=True).logits(vectors)
    assert ((logits > 0) == several).mean() > 0.97


def test_folds_spread_every_label_and_leave_a_single_row_out() -> None:
    targets = np.eye(3, dtype=np.bool_)[[0] * 10 + [1] * 7 + [2]]
    folds = assign_folds(targets)
    assert np.bincount(folds[:10]).tolist() == [2] * 5
    assert set(folds[10:17]) == set(range(5))
    assert folds[17] == -1


def test_a_row_is_answered_by_what_was_fitted_without_it() -> None:
    folds = np.array([0, 1, 0, -1, 1])
    calls = []

    def answer(fitted: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float32]:
        calls.append((fitted.tolist(), others.tolist()))
        return np.full((len(others), 2), len(calls), np.float32)

    found = out_of_fold(folds, 2, answer)
    assert calls == [([1, 3, 4], [0, 2]), ([0, 2, 3], [1, 4])]
    assert found[:, 0].tolist() == [1, 2, 1, 0, 2]


def test_random_labels_are_not_predicted_out_of_fold_although_they_can_be_fitted() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(80, 60)).astype(np.float32)
    targets = np.eye(2, dtype=np.bool_)[rng.integers(0, 2, 80)]
    probe, logits = fit_probe(vectors, targets, assign_folds(targets), multi_label=False)
    out = (logits.argmax(1) == targets.argmax(1)).mean()
    inside = (LogisticProbe.fit(vectors, targets, 100.0).logits(vectors).argmax(1) == targets.argmax(1)).mean()
    assert out < 0.7 < inside
    assert probe.weights.shape == (2, 60)


def test_the_scale_of_the_probe_fits_rows_out_of_fold() -> None:
    vectors, targets = clusters(200, 4, width=3)
    folds = assign_folds(targets)
    _probe, logits = fit_probe(vectors, targets, folds, multi_label=False)
    wanted = torch.from_numpy(targets).float()
    loss = label_loss(torch.from_numpy(logits), wanted, multi_label=False)
    for factor in (0.5, 2.0):
        assert loss < label_loss(factor * torch.from_numpy(logits), wanted, multi_label=False)


def test_lookup_answers_known_texts_out_of_fold_and_others_by_the_model() -> None:
    known = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    folds = OutOfFold({"a": 0, "b": 1}, known, known)
    found = folds.lookup(known, ["b", "c", "a"], lambda texts: torch.full((len(texts), 2), 9.0))
    assert found[:, 0].tolist() == [2.0, 9.0, 1.0]
    assert folds.lookup(known, ["a"], lambda texts: pytest.fail("all are known")).tolist() == [[1.0, 0.0]]


def test_of_very_many_texts_a_part_is_fitted() -> None:
    assert one_in(1000, 2) == 1
    assert one_in(100_000, 1000) == 5
