"""`NgramSVM`: a linear classifier of word and character n-grams, fitted in seconds.

It is what many people would use instead of a neural network: TF-IDF of n-grams and a linear support vector machine
for each label. A run shows its score beside the Transformer's, and mixes the two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch.nn.functional as F
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from manyheads.tasks.calibration import Calibration
from manyheads.text.tokens.ngram_hashes import NgramCounts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_CHUNK = 1000  # texts
_MIN_TEXTS = 2  # an n-gram of fewer texts is left out
_MAX_WEIGHTS = 1 << 23  # of all labels together; beyond, the rarest n-grams are left out
_MAX_TEXTS = 200_000  # fitted on; of more texts, every second or third …
_MAX_DECISIONS = 20_000_000  # texts × labels: about a minute and a half
_PENALTY = 0.5  # scikit-learn's C
_MAX_CHARACTERS = 20_000  # of a text


def one_in(n_texts: int, n_labels: int) -> int:
    """Fit every n-th text only: of very many texts or labels, as many texts as take a minute or two."""
    return -(-n_texts // max(1, min(_MAX_TEXTS, _MAX_DECISIONS // n_labels)))


@dataclass(frozen=True, eq=False)
class NgramSVM:
    """A weight for each known n-gram and label. N-grams are known by their hashes."""

    hashes: NDArray[np.uint64]  # sorted
    idf: NDArray[np.float32]
    weights: NDArray[np.float32]  # one row for each n-gram, one column for each label
    bias: NDArray[np.float32]

    @classmethod
    def fit(cls, texts: Sequence[str], targets: NDArray[np.bool_]) -> "NgramSVM":
        """Fit the classifier; `targets` has a row for each text and a column for each label."""
        n_labels = targets.shape[1]
        counted = _count(texts)
        hashes, n_texts = np.unique(counted.hashes, return_counts=True)
        most = max(1, _MAX_WEIGHTS // n_labels)
        rarest = max(_MIN_TEXTS, int(np.partition(n_texts, -most)[-most]) + 1 if len(n_texts) > most else 0)
        is_known = n_texts >= rarest
        idf = np.log((1 + len(texts)) / (1 + n_texts[is_known])) + 1
        empty = cls(
            hashes[is_known],
            idf.astype(np.float32),
            np.zeros((int(is_known.sum()), n_labels), np.float32),
            np.zeros(n_labels, np.float32),
        )
        features = empty._features(counted, len(texts))
        for label in range(n_labels):
            empty.weights[:, label], empty.bias[label] = _fit_label(features, targets[:, label])
        return empty

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]], n_labels: int) -> "NgramSVM":
        """The inverse of `arrays`; ValueError if they do not fit together."""
        expected = {
            name: np.dtype(kind)
            for name, kind in (("hashes", "int64"), ("idf", "float32"), ("weights", "float32"), ("bias", "float32"))
        }
        if {name: array.dtype for name, array in arrays.items()} != expected:
            raise ValueError("expected int64 hashes and float32 idf, weights and bias.")
        n_ngrams = len(arrays["hashes"])
        shapes = {"hashes": (n_ngrams,), "idf": (n_ngrams,), "weights": (n_ngrams, n_labels), "bias": (n_labels,)}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise ValueError(f"{name} has the shape {arrays[name].shape}, not {shape}.")
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} has values that are not finite.")
        hashes = arrays["hashes"].view(np.uint64)
        if np.any(hashes[1:] <= hashes[:-1]):
            raise ValueError("hashes are not sorted.")
        return cls(hashes, *(arrays[name].astype(np.float32) for name in ("idf", "weights", "bias")))

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """What a bundle stores; hashes as signed integers, which every version of torch can store."""
        return {
            "hashes": self.hashes.view(np.int64),
            "idf": self.idf,
            "weights": self.weights,
            "bias": self.bias,
        }

    def decide(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The decision values of each text and label: the label is likely if its value is above 0."""
        values = np.tile(self.bias, (len(texts), 1))
        for start in range(0, len(texts), _CHUNK):
            part = texts[start : start + _CHUNK]
            values[start : start + len(part)] += self._features(_count(part), len(part)) @ self.weights
        return values

    def _features(self, counted: NgramCounts, n_texts: int) -> "csr_matrix":
        """TF-IDF of the known n-grams; the words and the characters of a text each have the norm 1."""
        from scipy.sparse import csr_matrix

        columns = np.minimum(np.searchsorted(self.hashes, counted.hashes), max(0, len(self.hashes) - 1))
        is_known = self.hashes[columns] == counted.hashes if len(self.hashes) else np.zeros(len(columns), np.bool_)
        rows, columns = counted.texts[is_known], columns[is_known]
        values = (1 + np.log(counted.counts[is_known])) * self.idf[columns]
        groups = 2 * rows + counted.are_words[is_known]
        norms = np.sqrt(np.bincount(groups, values**2, minlength=2 * n_texts))
        values = (values / norms[groups]).astype(np.float32)
        return csr_matrix((values, (rows, columns)), shape=(n_texts, len(self.hashes)))


def _count(texts: Sequence[str]) -> NgramCounts:
    """The n-grams of texts, counted in chunks, since a chunk takes some kilobytes for each text."""
    parts = [
        (start, NgramCounts.of([text[:_MAX_CHARACTERS] for text in texts[start : start + _CHUNK]]))
        for start in range(0, len(texts), _CHUNK)
    ]
    return NgramCounts(
        np.concatenate([start + part.texts for start, part in parts]),
        np.concatenate([part.hashes for _, part in parts]),
        np.concatenate([part.counts for _, part in parts]),
        np.concatenate([part.are_words for _, part in parts]),
    )


def _fit_label(features: "csr_matrix", target: NDArray[np.bool_]) -> tuple[NDArray[np.float32], float]:
    """The weights and the bias of one label; a label that all or no texts have is a constant."""
    from sklearn.svm import LinearSVC

    if target.all() or not target.any() or not features.shape[1]:
        return np.zeros(features.shape[1], np.float32), 1.0 if target.all() else -1.0
    fitted = LinearSVC(C=_PENALTY, random_state=0).fit(features, target)
    return fitted.coef_[0].astype(np.float32), float(fitted.intercept_[0])


# An SVM's decision values have a margin of 1: times this, they are about as far apart as logits.
DECISION_SCALE = 4.0
_SHARES = np.linspace(0.0, 1.0, 21)
_PRIOR = (0.5, 0.3)  # mean and standard deviation of the share: with few rows it stays near the mean
_CAUTIOUS_PRIOR = (0.2, 0.2)  # beside a pretrained encoder


@dataclass(frozen=True)
class Mixture:
    """A weighted sum of the logits of both parts, each divided by its own temperature.

    They are mixed after training: trained together, they were no better than the better part alone.
    """

    share: float = 0.0  # of the linear classifier: 0 is the Transformer alone, 1 the linear classifier alone
    transformer_temperature: float = 1.0
    linear_temperature: float = 1.0

    @classmethod
    def fit(
        cls,
        transformer: Float[Tensor, "N C"],
        linear: Float[Tensor, "N C"],
        targets: Float[Tensor, "N C"],
        *,
        multi_label: bool = False,
        prior: tuple[float, float] = _PRIOR,
    ) -> "Mixture":
        """Choose the share with the highest likelihood of validation rows, given its mean and deviation before."""
        temperatures = [
            Calibration.fit(logits, targets, multi_label=multi_label).temperature for logits in (transformer, linear)
        ]
        mixture = cls(0.0, *temperatures)
        mean, deviation = prior
        if not len(targets):
            return replace(mixture, share=mean)

        def cost(share: float) -> float:
            losses = replace(mixture, share=share)._losses(transformer, linear, targets, multi_label=multi_label)
            return float(losses.sum()) + 0.5 * ((share - mean) / deviation) ** 2

        return replace(mixture, share=float(min(_SHARES.tolist(), key=cost)))

    @classmethod
    def fit_cautiously(
        cls,
        transformer: Float[Tensor, "N C"],
        linear: Float[Tensor, "N C"],
        targets: Float[Tensor, "N C"],
        *,
        multi_label: bool = False,
    ) -> "Mixture":
        """Like `fit`, for a pretrained encoder, which the linear classifier rarely reaches with few rows.

        Its share is 0 unless the mixture is better by more than one standard error.
        """
        mixture = cls.fit(transformer, linear, targets, multi_label=multi_label, prior=_CAUTIOUS_PRIOR)
        alone, mixed = (
            each._losses(transformer, linear, targets, multi_label=multi_label)
            for each in (replace(mixture, share=0.0), mixture)
        )
        gain = alone - mixed
        is_better = len(gain) > 1 and float(gain.mean()) > float(gain.std()) / len(gain) ** 0.5
        return mixture if is_better else replace(mixture, share=0.0)

    def _losses(
        self,
        transformer: Float[Tensor, "N C"],
        linear: Float[Tensor, "N C"],
        targets: Float[Tensor, "N C"],
        *,
        multi_label: bool,
    ) -> Float[Tensor, " N"]:
        """The negative log-likelihood of each row, after calibration."""
        logits = self.logits(transformer, linear)
        calibration = Calibration.fit(logits, targets, multi_label=multi_label)
        return _negative_log_likelihoods(logits.double() / calibration.temperature, targets, multi_label=multi_label)

    @classmethod
    def restore(cls, metadata: Mapping[str, Any]) -> "Mixture":
        """Return the mixture in a bundle's metadata; without one, the Transformer decides alone."""
        stored = metadata.get("mixture")
        if stored is None:
            return cls()
        share, *temperatures = (float(stored[name]) for name in ("share", "transformer", "linear"))
        if not 0 <= share <= 1 or not all(0 < temperature < np.inf for temperature in temperatures):
            raise ValueError("metadata.mixture must have a share from 0 to 1 and temperatures above 0.")
        return cls(share, *temperatures)

    def metadata(self) -> dict[str, float]:
        """What `restore` needs, as JSON values."""
        return {
            "share": self.share,
            "transformer": self.transformer_temperature,
            "linear": self.linear_temperature,
        }

    def parts(
        self, transformer: Float[Tensor, "N C"], linear: Float[Tensor, "N C"]
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"]]:
        """What each part adds to the logits."""
        return (
            (1 - self.share) * transformer / self.transformer_temperature,
            self.share * linear / self.linear_temperature,
        )

    def logits(self, transformer: Float[Tensor, "N C"], linear: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """The logits of the mixture."""
        own, other = self.parts(transformer, linear)
        return own + other


def _negative_log_likelihoods(
    logits: Float[Tensor, "N C"], targets: Float[Tensor, "N C"], *, multi_label: bool
) -> Float[Tensor, " N"]:
    """Of each row; the labels of one row are hardly independent, so that their mean counts as one decision."""
    if multi_label:
        return F.binary_cross_entropy_with_logits(logits, targets.double(), reduction="none").mean(-1)
    return F.cross_entropy(logits, targets.argmax(-1), reduction="none")
