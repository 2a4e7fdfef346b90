"""`Confidence`: how the log-probability of a translation compares with those of the validation set."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

LOW_CONFIDENCE = 0.05  # below it, a translation is flagged
_N_STEPS = 100  # between the quantiles that are stored
_RANKS = np.linspace(0, 1, _N_STEPS + 1)


@dataclass(frozen=True)
class Confidence:
    """Quantiles of the mean log-probability of a token, over translations of validation rows.

    The confidence of a translation is its rank among them: at 0.05, one in twenty validation translations had a lower
    log-probability. The mean chrF of the low ones, beside that of all, shows what a low rank means.
    """

    quantiles: Sequence[float]
    chrf: float  # mean over all sentences
    low_chrf: float  # mean over those of low confidence
    n_rows: int

    @classmethod
    def fit(cls, log_probabilities: Sequence[float], chrf: Sequence[float]) -> "Confidence":
        """Fit to the translations of validation rows, given the mean log-probability and the chrF of each."""
        quantiles = np.quantile(log_probabilities, _RANKS)
        scores = np.array(chrf)
        is_low = np.array(log_probabilities) <= np.quantile(log_probabilities, LOW_CONFIDENCE)
        return cls(quantiles.tolist(), float(scores.mean()), float(scores[is_low].mean()), len(scores))

    @classmethod
    def restore(cls, metadata: Mapping[str, Any]) -> "Confidence":
        """Return what `metadata` stored; raise ValueError if it was changed into something else."""
        quantiles = [float(value) for value in metadata["quantiles"]]
        found = cls(quantiles, float(metadata["chrf"]), float(metadata["low_chrf"]), int(metadata["n_rows"]))
        are_finite = all(map(math.isfinite, (*quantiles, found.chrf, found.low_chrf)))
        if len(quantiles) != _N_STEPS + 1 or not are_finite or sorted(quantiles) != quantiles:
            raise ValueError(f"metadata.confidence.quantiles are not {_N_STEPS + 1} ascending numbers.")
        return found

    def metadata(self) -> dict[str, Any]:
        """What `restore` needs, as JSON values."""
        return asdict(self)

    def of(self, log_probability: float) -> float:
        """The confidence from 0 to 1 of a translation with this mean log-probability of a token."""
        return self.of_all([log_probability])[0]

    def of_all(self, log_probabilities: Sequence[float]) -> list[float]:
        """The confidences of many translations, in one step."""
        return [float(rank) for rank in np.interp(log_probabilities, self.quantiles, _RANKS)]
