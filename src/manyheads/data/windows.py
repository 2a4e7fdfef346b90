"""Documents of any length as windows, and windows packed into rows of a fixed length with next to no padding."""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

# A window is (document, start, end): its positions from start up to end.
Windows = NDArray[np.int64]


def cut_windows(lengths: NDArray[np.integer], longest: int, *, seed: int, epoch: int) -> Windows:
    """Every position of every document once, in windows of at most `longest`; a pure function of its arguments.

    A document that is longer is cut at positions that differ from epoch to epoch, so that in time each position is met
    with much and with little before it.
    """
    random = np.random.default_rng([seed, epoch, 2])  # apart from the draws of other parts of a plan
    sizes = lengths.astype(np.int64)
    # The first window of a document that has to be cut has a random length.
    first = np.where(sizes > longest, random.integers(1, longest + 1, size=len(sizes)), sizes)
    counts = 1 + -((first - sizes) // longest)  # windows of each document: rest / longest, rounded up, and the first
    counts[sizes == 0] = 0
    documents = np.repeat(np.arange(len(sizes)), counts)
    position = np.arange(len(documents)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.where(position == 0, 0, first[documents] + (position - 1) * longest)
    ends = np.minimum(first[documents] + position * longest, sizes[documents])
    return np.stack([documents, starts, ends], axis=1)


def pack(sizes: NDArray[np.integer], capacity: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Which of these sizes share a row of `capacity` positions; a pure function of its arguments.

    Best fit, the longest first: each row takes the longest that is left, then the longest that still fits. Among
    those of one size chance decides, so that rows differ from epoch to epoch; their order is random too.
    """
    if not len(sizes):
        return []
    random = np.random.default_rng([seed, epoch, 3])
    order = random.permutation(len(sizes))
    order = order[np.argsort(sizes[order], kind="stable")]
    distinct, starts = np.unique(sizes[order], return_index=True)
    left = {int(size): part.tolist() for size, part in zip(distinct, np.split(order, starts[1:]), strict=True)}
    known = sorted(left)
    rows = []
    while known:
        row: list[int] = []
        free = capacity
        while known:
            position = len(known) - 1 if not row else bisect_right(known, free) - 1
            if position < 0:
                break
            size = known[position]
            row.append(left[size].pop())
            free -= size
            if not left[size]:
                del known[position]
        rows.append(row)
    return [rows[index] for index in random.permutation(len(rows))]
