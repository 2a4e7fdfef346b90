"""Windows: documents cut into windows of a maximum length, and windows packed into rows with little padding."""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

# Rows of (document, start, end): the positions from `start` up to, but not including, `end`.
Windows = NDArray[np.int64]


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
