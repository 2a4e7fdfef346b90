"""Out of scope: whether a text is unlike all texts that a classifier was trained on.

A classifier knows its labels only, and gives one of them to any text. Three features show that none may fit: the
entropy of the labels' probabilities, the share of the text's character trigrams that no training text has, and the same
share of its pairs of tokens. Their weights are fitted on the validation rows against texts made from them: shuffled
letters, random letters, random words. Decision 0024 compares the features with others on real texts.
"""

import base64
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from manyheads import corpora
from manyheads.text.tokens.tokenizer import BOS

THRESHOLD = 0.5  # a text with a score above it is out of scope
FALSE_ALARMS = 0.02  # share of the validation rows above the threshold

_MIN_ROWS = 10  # validation rows, to fit the weights
_MAX_ROWS = 300
_LONGEST = 100  # characters of a story
_BITS = (1 << 12, 1 << 21)  # of the filter: at most 256 KiB
_BITS_PER_NGRAM = 16
_SHRINKAGE = 1.0  # L2 penalty of the weights
_N_STEPS = 2000  # of the regression
_CHARACTERS, _TOKENS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # odd numbers, so that the two kinds hash differently

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SeenNgrams:
    """A Bloom filter with one hash of the character trigrams and pairs of tokens of all training texts."""

    bits: NDArray[np.bool_]  # 2ᵏ of them

    @classmethod
    def of(cls, texts: Iterable[tuple[str, Sequence[int]]]) -> "SeenNgrams":
        """Return the n-grams of texts and their token ids."""
        seen, batch = np.empty(0, np.uint64), []
        for text, ids in texts:
            batch += [_trigrams(text), _pairs(ids)]
            if len(batch) >= 10_000:
                seen, batch = np.unique(np.concatenate([seen, *batch])), []
        seen = np.unique(np.concatenate([seen, *batch]))
        size = min(max(1 << (_BITS_PER_NGRAM * len(seen)).bit_length(), _BITS[0]), _BITS[1])
        bits = np.zeros(size, np.bool_)
        bits[_places(seen, size)] = True
        return cls(bits)

    def unseen_shares(self, text: str, ids: Sequence[int]) -> tuple[float, float]:
        """Return the share of the text's character trigrams, and of its pairs of tokens, that are new."""
        both = (_trigrams(text), _pairs(ids))
        trigrams, pairs = (1.0 - self.bits[_places(hashes, len(self.bits))] for hashes in both)
        return _mean(trigrams), _mean(pairs)

    def to_text(self) -> str:
        """Return the filter as base64."""
        return base64.b64encode(np.packbits(self.bits).tobytes()).decode()

    @classmethod
    def from_text(cls, text: str) -> "SeenNgrams":
        """Return the filter that `to_text` wrote."""
        packed = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
        bits = np.unpackbits(packed).astype(np.bool_)
        if len(bits) & (len(bits) - 1) or not _BITS[0] <= len(bits) <= _BITS[1]:
            raise ValueError(f"A filter of n-grams has {len(bits):,} bits, which is not a power of two in range.")
        return cls(bits)


@dataclass(frozen=True, eq=False)
class Scope:
    """What the training texts of a classifier have in common, and the weights of the features of a text."""

    ngrams: SeenNgrams
    weights: tuple[float, ...] = ()  # of entropy, unseen trigrams, unseen pairs; () until they are fitted
    bias: float = 0.0

    @property
    def is_fitted(self) -> bool:
        """Whether there were enough validation rows to fit the weights."""
        return bool(self.weights)

    def features(
        self, texts: Sequence[str], ids: Sequence[Sequence[int]], logits: Float[Tensor, "N C"], *, multi_label: bool
    ) -> NDArray[np.float64]:
        """Return the three features [texts, 3] of texts."""
        shares = [self.ngrams.unseen_shares(text, own) for text, own in zip(texts, ids, strict=True)]
        return np.column_stack([_entropy(logits, multi_label=multi_label), np.array(shares).reshape(-1, 2)])

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much each text looks out of scope, from 0 to 1."""
        return 1 / (1 + np.exp(-np.clip(features @ np.array(self.weights) + self.bias, -50, 50)))

    def fit(self, inside: NDArray[np.float64], outside: NDArray[np.float64]) -> "Scope":
        """Fit the weights to the features of texts in scope and out of scope: a logistic regression with weights ≥ 0.

        The bias is chosen so that few texts in scope lie above the threshold.
        """
        if len(inside) < _MIN_ROWS:
            return replace(self, weights=(), bias=0.0)
        features = np.concatenate([inside, outside])
        spread = features.std(0) + 1e-6
        is_outside = np.arange(len(features)) >= len(inside)
        weights = _regression((features - inside.mean(0)) / spread, is_outside) / spread
        limit = float(np.quantile(inside @ weights, 1 - FALSE_ALARMS, method="higher"))
        return replace(self, weights=tuple(weights.tolist()), bias=-limit - 1e-9)

    def metadata(self) -> dict[str, Any]:
        """What `restore` needs, as JSON values."""
        return {"weights": list(self.weights), "bias": self.bias, "ngrams": self.ngrams.to_text()}

    @classmethod
    def restore(cls, metadata: Mapping[str, Any]) -> "Scope":
        """Return the scope that returned this `metadata`."""
        weights = tuple(map(float, metadata["weights"]))
        if len(weights) not in (0, 3):
            raise ValueError(f"out_of_scope.weights has {len(weights)} numbers, not 3.")
        bias = float(metadata["bias"])
        if not np.isfinite([*weights, bias]).all():
            raise ValueError("out_of_scope.weights and bias must be finite.")
        return cls(SeenNgrams.from_text(metadata["ngrams"]), weights, bias)


def _regression(x: NDArray[np.float64], y: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weights ≥ 0 of a logistic regression in which both sides count alike (projected gradient descent)."""
    each = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
    x = np.column_stack([x, np.ones(len(x))])
    penalty = np.append(np.full(x.shape[1] - 1, 2 * _SHRINKAGE / len(x)), 0.0)
    rate = 1 / (np.linalg.eigvalsh((x.T * each) @ x)[-1] / 4 + penalty[0])
    weights = np.zeros(x.shape[1])
    for _ in range(_N_STEPS):
        probabilities = 1 / (1 + np.exp(-np.clip(x @ weights, -50, 50)))
        weights = weights - rate * (x.T @ (each * (probabilities - y)) + penalty * weights)
        weights[:-1] = np.maximum(weights[:-1], 0.0)
    return np.asarray(weights[:-1])


def made_up_texts(texts: Sequence[str], seed: int = 0) -> list[str]:
    """Return texts that belong to no label, made from at most 300 texts: shuffled or random letters, random words."""
    rng = random.Random(seed)
    texts = rng.sample(list(texts), min(len(texts), _MAX_ROWS))
    words = [word for text in texts for word in _words(text)]
    letters = [letter for word in words for letter in word]
    made = []
    for text in texts:
        own = _words(text)
        gap = " " if " " in text.strip() else ""
        made.append(gap.join("".join(rng.sample(word, len(word))) for word in rng.sample(own, len(own))))
        made.append(gap.join("".join(rng.choice(letters) for _ in word) for word in own))
        made.append(gap.join(rng.choice(words) for _ in own))
    return made


def stories(n_texts: int) -> list[str]:
    """Return the beginnings of built-in stories, as many in each language."""
    n_each = -(-n_texts // len(corpora.LANGUAGES))
    return [
        row[0][:_LONGEST]
        for language in corpora.LANGUAGES
        for row in corpora.rows("generate", language, "test", n_each, 1)
    ]


def _words(text: str) -> list[str]:
    """Return the words of a text; its characters if it is written without spaces."""
    return text.split() if " " in text.strip() else list(text.strip())


def _entropy(logits: Float[Tensor, "N C"], *, multi_label: bool) -> NDArray[np.float64]:
    logits = logits.double()
    if multi_label:
        p = logits.sigmoid()
        return (F.softplus(logits) - p * logits).mean(-1).numpy()
    return torch.distributions.Categorical(logits=logits).entropy().numpy()


def _mean(is_new: NDArray[Any]) -> float:
    return float(is_new.mean()) if len(is_new) else 1.0


def _trigrams(text: str) -> Hashes:
    codes = np.frombuffer(f" {text.lower()} ".encode("utf-32-le"), np.uint32).astype(np.uint64)
    return _mix((codes[:-2] << np.uint64(42)) ^ (codes[1:-1] << np.uint64(21)) ^ codes[2:], _CHARACTERS)


def _pairs(ids: Sequence[int]) -> Hashes:
    row = np.array([BOS, *ids], np.uint64)
    return _mix((row[:-1] << np.uint64(32)) ^ row[1:], _TOKENS)


def _mix(numbers: Hashes, factor: int) -> Hashes:
    mixed = numbers * np.uint64(factor)
    mixed ^= mixed >> np.uint64(32)
    return mixed * np.uint64(_CHARACTERS)


def _places(hashes: Hashes, size: int) -> NDArray[np.intp]:
    return (hashes >> np.uint64(64 - (size - 1).bit_length())).astype(np.intp)
