"""A logistic regression on the vectors of an encoder that is not trained: the frozen-features probe.

With few rows it is the whole model. With more rows, training begins with it, so that the first gradients do not distort
a pretrained encoder for the sake of a random output layer (LP-FT, Kumar 2022).
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

# scikit-learn's C for vectors of length 1; many labels need a large one.
PENALTIES = (0.1, 1.0, 10.0, 100.0)
_SCALES = np.geomspace(0.3, 30.0, 21).tolist()
N_FOLDS = 5
_MAX_ITERATIONS = 300
_MAX_FITTED = 20_000_000  # texts × labels; of more texts, every second or third …

Vectors = NDArray[np.float32]
Targets = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LogisticProbe:
    """The weights and biases of a linear layer."""

    weights: NDArray[np.float32]  # labels × width
    bias: NDArray[np.float32]

    @classmethod
    def fit(cls, vectors: Vectors, targets: Targets, penalty: float, *, multi_label: bool = False) -> "LogisticProbe":
        """Fit a softmax over labels; if multi_label, a sigmoid for each."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        n_labels = targets.shape[1]
        # The penalty is for vectors of length 1.
        scale = float(np.sqrt((vectors.astype(np.float64) ** 2).sum(1).mean())) or 1.0
        weights, bias = np.zeros((n_labels, vectors.shape[1])), np.zeros(n_labels)
        columns = [targets[:, [label]] for label in range(n_labels)] if multi_label else [targets]
        for label, column in enumerate(columns):
            classes = column[:, 0].astype(int) if multi_label else column.argmax(1)
            found = np.unique(classes)
            if len(found) < 2:  # a constant
                if multi_label:
                    bias[label] = 5.0 if found.any() else -5.0
                else:
                    bias[found] = 5.0
                continue
            with warnings.catch_warnings():  # nearly converged is good enough, since folds compare the results
                warnings.simplefilter("ignore", ConvergenceWarning)
                fitted = LogisticRegression(C=penalty, max_iter=_MAX_ITERATIONS).fit(vectors / scale, classes)
            own, shift = fitted.coef_ / scale, fitted.intercept_
            if multi_label:
                weights[label], bias[label] = own[0], shift[0]
            elif len(found) == 2:  # scikit-learn has one row for two classes
                bias[:] = -10.0
                weights[found], bias[found] = (
                    np.concatenate([-own, own]) / 2,
                    np.concatenate([-shift, shift]) / 2,
                )
            else:
                bias[:] = shift.min() - 10.0  # a label without a row
                weights[found], bias[found] = own, shift
        return cls(weights.astype(np.float32), bias.astype(np.float32))

    def logits(self, vectors: Vectors) -> NDArray[np.float32]:
        """The logits of each vector and label."""
        return np.asarray(vectors @ self.weights.T + self.bias, np.float32)


def one_in(n_texts: int, n_labels: int) -> int:
    """Fit every n-th text only, if there are very many."""
    return -(-n_texts * n_labels // _MAX_FITTED) or 1


def assign_folds(targets: Targets, n_folds: int = N_FOLDS) -> Indices:
    """The fold of each row: the rows of a label are spread over all folds. A label's only row is in none: −1."""
    keys = [row.tobytes() for row in targets]
    order = sorted(range(len(keys)), key=lambda row: (keys[row], row))
    folds = np.empty(len(keys), np.int64)
    folds[order] = np.arange(len(keys)) % n_folds
    n_rows = targets.sum(0)
    folds[(targets & (n_rows < 2)).any(1)] = -1
    return folds


def out_of_fold(
    folds: Indices, n_labels: int, answer: Callable[[Indices, Indices], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """The logits of each row by what was fitted without it; `answer` fits some rows and answers others.

    Rows in no fold have zeros.
    """
    found = np.zeros((len(folds), n_labels), np.float32)
    for fold in range(int(folds.max(initial=-1)) + 1):
        held_out = np.flatnonzero(folds == fold)
        if len(held_out) and len(held_out) < len(folds):
            found[held_out] = answer(np.flatnonzero(folds != fold), held_out)
    return found


def fit_probe(
    vectors: Vectors, targets: Targets, folds: Indices, *, multi_label: bool
) -> tuple[LogisticProbe, NDArray[np.float32]]:
    """Fit all rows with the penalty that is best for rows that were not fitted; also the logits of these rows.

    A strong penalty makes small logits, whose order may still be the best. Therefore penalties are compared, and the
    weights scaled, by the factor that fits rows out of fold.
    """
    is_scored = folds >= 0
    wanted = torch.from_numpy(targets[is_scored]).float()

    def fitted(rows: Indices, penalty: float) -> LogisticProbe:
        return LogisticProbe.fit(vectors[rows], targets[rows], penalty, multi_label=multi_label)

    def loss(logits: NDArray[np.float32], scale: float) -> float:
        return label_loss(scale * torch.from_numpy(logits[is_scored]), wanted, multi_label=multi_label)

    def answers(penalty: float) -> NDArray[np.float32]:
        def answer(rows: Indices, others: Indices) -> NDArray[np.float32]:
            return fitted(rows, penalty).logits(vectors[others])

        return out_of_fold(folds, targets.shape[1], answer)

    found = {penalty: answers(penalty) for penalty in PENALTIES}
    _loss, penalty, scale = min(
        (loss(logits, scale), penalty, scale) for penalty, logits in found.items() for scale in _SCALES
    )
    probe = fitted(np.arange(len(vectors)), penalty)
    scaled = LogisticProbe((scale * probe.weights).astype(np.float32), (scale * probe.bias).astype(np.float32))
    return scaled, (scale * found[penalty]).astype(np.float32)


def label_loss(logits: Float[Tensor, "N C"], targets: Float[Tensor, "N C"], *, multi_label: bool) -> float:
    """The mean cross-entropy of rows; 0 if there are none."""
    if not len(logits):
        return 0.0
    if multi_label:
        return float(F.binary_cross_entropy_with_logits(logits, targets))
    return float(F.cross_entropy(logits, targets.argmax(-1)))


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """The logits of rows by models that were fitted without them, to score a model that was fitted on all of them."""

    rows: Mapping[str, int]  # the index of each text
    transformer: Float[Tensor, "N C"]
    linear: Float[Tensor, "N C"]

    def lookup(
        self, part: Float[Tensor, "N C"], texts: Sequence[str], answer: Callable[[Sequence[str]], Float[Tensor, "M C"]]
    ) -> Float[Tensor, "M C"]:
        """The logits of these texts by one part; of texts that were not fitted, those of `answer`."""
        unknown = [text for text in texts if text not in self.rows]
        known = part[[self.rows[text] for text in texts if text in self.rows]]
        if not unknown:
            return known
        found = torch.empty(len(texts), part.size(1))
        is_known = torch.tensor([text in self.rows for text in texts])
        found[is_known], found[~is_known] = known, answer(unknown)
        return found
