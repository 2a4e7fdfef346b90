"""Batches: examples of similar length within a token budget, in an order that depends on (seed, epoch), padded."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyheads.text.tokens.tokenizer import BOS, EOS, PAD

_WINDOW = 1_000_000  # examples sorted by length at once; sorting more saves no padding and takes more memory

# Rows of (document, start, end): the positions from `start` up to, but not including, `end`.
Windows = NDArray[np.int64]


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


def cut_windows(lengths: NDArray[np.integer], max_length: int, *, seed: int, epoch: int) -> Windows:
    """Cut documents into windows of at most `max_length` that cover every position once; a pure function.

    Longer documents are cut at different positions in each epoch, so that over time the model sees each position with
    both long and short context.
    """
    random = np.random.default_rng([seed, epoch, 2])  # independent of the draws for batches
    sizes = lengths.astype(np.int64)
    # The first window of a longer document has a random length.
    first = np.where(sizes > max_length, random.integers(1, max_length + 1, size=len(sizes)), sizes)
    counts = 1 + -((first - sizes) // max_length)  # the first window, and the rest / max_length rounded up
    counts[sizes == 0] = 0
    documents = np.repeat(np.arange(len(sizes)), counts)
    position = np.arange(len(documents)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.where(position == 0, 0, first[documents] + (position - 1) * max_length)
    ends = np.minimum(first[documents] + position * max_length, sizes[documents])
    return np.stack([documents, starts, ends], axis=1)


def pack(sizes: NDArray[np.integer], capacity: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Pack items of these sizes into rows of `capacity` positions, as lists of indices; a pure function.

    Best-fit decreasing: each row takes the largest remaining item, then the largest that still fits. Items of equal
    size are chosen at random, so rows differ from epoch to epoch. The order of the rows is random.
    """
    if not len(sizes):
        return []
    random = np.random.default_rng([seed, epoch, 3])
    order = random.permutation(len(sizes))
    order = order[np.argsort(sizes[order], kind="stable")]
    distinct, starts = np.unique(sizes[order], return_index=True)
    remaining = {int(size): part.tolist() for size, part in zip(distinct, np.split(order, starts[1:]), strict=True)}
    remaining_sizes = sorted(remaining)
    rows = []
    while remaining_sizes:
        row: list[int] = []
        free = capacity
        while remaining_sizes:
            position = len(remaining_sizes) - 1 if not row else bisect_right(remaining_sizes, free) - 1
            if position < 0:
                break
            size = remaining_sizes[position]
            row.append(remaining[size].pop())
            free -= size
            if not remaining[size]:
                del remaining_sizes[position]
        rows.append(row)
    return [rows[index] for index in random.permutation(len(rows))]
