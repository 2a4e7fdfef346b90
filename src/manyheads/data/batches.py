"""Batches: examples of similar length within a token budget, in an order that depends on (seed, epoch), padded."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyheads.text.tokens.tokenizer import BOS, EOS, PAD

_WINDOW = 1_000_000  # examples sorted by length at once; sorting more saves no padding and takes more memory


def plan_batches(
    lengths: NDArray[np.integer], budget: int, *, seed: int, epoch: int, chosen: NDArray[np.int64] | None = None
) -> list[NDArray[np.int64]]:
    """Return batches of indices that contain every example, or every `chosen` one, once; a pure function.

    `lengths` is N × 1 or N × 2 (source and target). The padded size of a batch, rows × longest length, is at most
    `budget` on each side; an example longer than the budget gets a batch of its own.
    """
    if (count := len(lengths) if chosen is None else len(chosen)) <= 1:  # as often in a service: no generator is needed
        return [np.arange(1) if chosen is None else chosen.copy()] if count else []
    random = np.random.default_rng([seed, epoch])
    # Examples of equal length are in a new order in every epoch.
    order: NDArray[np.int64] = random.permutation(len(lengths) if chosen is None else chosen)
    batches = []
    for start in range(0, len(order), _WINDOW):
        window = order[start : start + _WINDOW]
        inside = lengths[window]
        by_length = _by_length(inside)
        window[:] = window[by_length]
        batches += _cut(window, inside.max(axis=1)[by_length], budget)
    return [batches[index] for index in random.permutation(len(batches))]


def choose_examples(
    boundaries: Sequence[int], weights: Sequence[float], *, seed: int, epoch: int
) -> NDArray[np.int64] | None:
    """Return the examples of an epoch of weighted corpora, or None if each example occurs once.

    Corpus i consists of the examples from boundaries[i] up to boundaries[i + 1]. In each epoch an example of weight w
    occurs ⌊w⌋ times, and once more with probability w - ⌊w⌋.
    """
    if all(weight == 1.0 for weight in weights):
        return None
    random = np.random.default_rng([seed, epoch, 1])  # independent of `plan_batches`
    parts = []
    for start, end, weight in zip(boundaries[:-1], boundaries[1:], weights, strict=True):
        whole = int(weight)
        examples = np.arange(start, end, dtype=np.int64)
        parts += [examples] * whole
        parts.append(examples[random.random(end - start) < weight - whole])
    chosen = np.concatenate(parts)
    # Small weights may choose no example at all; an epoch needs at least one.
    return chosen if len(chosen) or not boundaries[-1] else random.integers(boundaries[-1], size=1)


def _by_length(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the order by longer side, then by the difference of the sides, alternately ascending and descending.

    On Multi30k with 3,000 tokens per batch, padding is 4.4 % of the source and 2.5 % of the target; sorting by target,
    then source, gave 9.2 % and 0.4 %.
    """
    longest, difference = lengths.max(axis=1), lengths[:, 0] - lengths[:, -1]
    return np.lexsort((np.where(longest % 2 == 0, difference, -difference), longest))


def _cut(order: NDArray[np.int64], widest: NDArray[np.integer], budget: int) -> list[NDArray[np.int64]]:
    batches, start, longest = [], 0, 0
    for position, length in enumerate(widest.tolist()):
        longest = max(longest, length)
        if longest * (position - start + 1) > budget and position > start:
            batches.append(order[start:position])
            start, longest = position, length
    if len(order):
        batches.append(order[start:])
    return batches


@dataclass(frozen=True)
class PairBatch:
    """Padded token ids of sentence pairs. Sources end with EOS; the decoder input is the target shifted by BOS."""

    source: NDArray[np.int64]  # B × S
    target_input: NDArray[np.int64]  # B × T: BOS y_1 … y_n
    target_output: NDArray[np.int64]  # B × T: y_1 … y_n EOS

    @property
    def n_tokens(self) -> int:
        """The number of target tokens that are not padding; the loss is averaged over them."""
        return int((self.target_output != PAD).sum())


def make_batch(sources: Sequence[ArrayLike], targets: Sequence[ArrayLike]) -> PairBatch:
    """Return a padded batch of token ids, with BOS and EOS added."""
    return PairBatch(
        source=pad(sources, after=EOS),
        target_input=pad(targets, before=BOS),
        target_output=pad(targets, after=EOS),
    )


def pad(sequences: Sequence[ArrayLike], *, before: int | None = None, after: int | None = None) -> NDArray[np.int64]:
    """Return token ids as one array, padded with PAD; `before` and `after` are added to each sequence."""
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
