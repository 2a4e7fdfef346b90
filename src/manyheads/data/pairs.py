"""Padded batches of ids, and those of pairs with what begins and ends a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyheads.text.tokenizer import BOS, EOS, PAD


@dataclass(frozen=True)
class PairBatch:
    """Padded ids of some pairs. Each source ends with EOS; targets are shifted by BOS for what the decoder reads."""

    source: NDArray[np.int64]  # B × S
    target_input: NDArray[np.int64]  # B × T: BOS y_1 … y_n
    target_output: NDArray[np.int64]  # B × T: y_1 … y_n EOS

    @property
    def n_tokens(self) -> int:
        """Real target tokens: what the loss is averaged over."""
        return int((self.target_output != PAD).sum())


def make_batch(sources: Sequence[ArrayLike], targets: Sequence[ArrayLike]) -> PairBatch:
    """Sequences of ids as a padded batch, with the ids that begin and end a sentence."""
    return PairBatch(
        source=pad(sources, after=EOS),
        target_input=pad(targets, before=BOS),
        target_output=pad(targets, after=EOS),
    )


def pad(sequences: Sequence[ArrayLike], *, before: int | None = None, after: int | None = None) -> NDArray[np.int64]:
    """Sequences of ids as rows of one array, filled up with PAD; `before` and `after` are put around each."""
    arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    start = 0 if before is None else 1
    extra = start + (0 if after is None else 1)
    rows = np.full((len(arrays), max((len(array) for array in arrays), default=0) + extra), PAD, dtype=np.int64)
    for row, array in zip(rows, arrays, strict=True):
        if before is not None:
            row[0] = before
        row[start : start + len(array)] = array
        if after is not None:
            row[start + len(array)] = after
    return rows
