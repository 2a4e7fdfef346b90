"""Which sentences meet in a batch: like lengths together, within a budget of tokens, in an order fixed by the seed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyheads.text.tokenizer import BOS, EOS, PAD

_WINDOW = 1_000_000  # examples sorted by length at once: sorting more pads no less, but needs more memory


def plan_batches(
    lengths: NDArray[np.integer], budget: int, *, seed: int, epoch: int, chosen: NDArray[np.int64] | None = None
) -> list[NDArray[np.int64]]:
    """Every example once, or the `chosen` ones, as batches of indices; a pure function of its arguments.

    `lengths` is N × 1 or N × 2 (source and target). A batch's padded size, rows × its longest length, stays
    within `budget` on each side; an example longer than the budget has a batch of its own.
    """
    random = np.random.default_rng([seed, epoch])
    # Equal lengths meet in a new order every epoch.
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
    """The examples of an epoch when corpora have weights; None is each of them once.

    Corpus i are the examples from boundaries[i] up to boundaries[i + 1]. An example of weight w occurs ⌊w⌋ times,
    and once more with probability w - ⌊w⌋, drawn anew for each epoch.
    """
    if all(weight == 1.0 for weight in weights):
        return None
    random = np.random.default_rng([seed, epoch, 1])  # apart from the draws of `plan_batches`
    parts = []
    for start, end, weight in zip(boundaries[:-1], boundaries[1:], weights, strict=True):
        whole = int(weight)
        examples = np.arange(start, end, dtype=np.int64)
        parts += [examples] * whole
        parts.append(examples[random.random(end - start) < weight - whole])
    chosen = np.concatenate(parts)
    # Small weights of small corpora may choose nothing; an epoch has something to train on all the same.
    return chosen if len(chosen) or not boundaries[-1] else random.integers(boundaries[-1], size=1)


def _by_length(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Sorted by the longer side, then by how the sides differ, up and down in turn so that neighbours stay alike.

    On Multi30k at 3,000 tokens this pads 4.4 % of the source and 2.5 % of the target; sorted by target, then
    source, it was 9.2 % and 0.4 %.
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
