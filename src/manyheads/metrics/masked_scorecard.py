"""The scorecard of a masked language model: how many hidden tokens it finds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyheads.errors import DataError
from manyheads.metrics.bootstrap import Count, sum_resamples
from manyheads.metrics.score import Score

_RIGHT, _MASKED, _NATS = range(3)  # columns of counts
_MOST_NATS = 700.0  # e to the power of more is no number


@dataclass(frozen=True)
class MaskedCard:
    """How well a model finds what is hidden in a test set. `asdict` makes it JSON."""

    scores: Sequence[Score]
    n_texts: int
    n_masked: int


def masked_card(
    n_right: Sequence[float],
    n_masked: Sequence[float],
    nats: Sequence[float],
    *,
    how: str = "",
    n_resamples: int = 1000,
) -> MaskedCard:
    """Of each text: how many of its hidden tokens were found, how many there were, −ln p of all of them together."""
    if not sum(n_masked):
        raise DataError("There is nothing to score: the test set is empty.")
    columns = (n_right, n_masked, nats)
    counts: list[Count] = [
        (text, column, float(amount)) for column, amounts in enumerate(columns) for text, amount in enumerate(amounts)
    ]
    sums = sum_resamples(counts, len(n_masked), len(columns), n_resamples, "documents")
    how_told = [how] if how else []
    return MaskedCard(
        scores=[
            sums.score(
                "accuracy of masked tokens",
                lambda sums: np.asarray(100.0 * sums[..., _RIGHT] / np.maximum(sums[..., _MASKED], 1.0)),
                *how_told,
            ),
            sums.score(
                "perplexity of masked tokens",
                lambda sums: np.exp(np.minimum(sums[..., _NATS] / np.maximum(sums[..., _MASKED], 1.0), _MOST_NATS)),
                *how_told,
            ),
        ],
        n_texts=len(n_masked),
        n_masked=round(sum(n_masked)),
    )
