"""Windows of documents, and their packing into rows."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data import cut_windows, pack

lengths = st.lists(st.integers(0, 60), max_size=12)


@settings(max_examples=200, deadline=None)
@given(lengths=lengths, max_length=st.integers(1, 20), epoch=st.integers(0, 3))
def test_every_position_is_in_one_window(lengths: list[int], max_length: int, epoch: int) -> None:
    windows = cut_windows(np.array(lengths, dtype=np.int64), max_length, seed=1, epoch=epoch)
    positions = Counter(
        (document, position) for document, start, end in windows.tolist() for position in range(start, end)
    )
    assert positions == Counter(
        (document, position) for document, length in enumerate(lengths) for position in range(length)
    )
    assert all(0 < end - start <= max_length for _, start, end in windows.tolist())


def test_short_documents_are_not_cut_and_cuts_vary_by_epoch() -> None:
    sizes = np.array([10, 1000])
    by_epoch = [cut_windows(sizes, 10, seed=1, epoch=epoch).tolist() for epoch in range(5)]
    assert by_epoch == [cut_windows(sizes, 10, seed=1, epoch=epoch).tolist() for epoch in range(5)]
    assert all(windows[0] == [0, 0, 10] for windows in by_epoch)
    assert len({str(windows) for windows in by_epoch}) > 1


@settings(max_examples=200, deadline=None)
@given(sizes=st.lists(st.integers(1, 20), max_size=60), epoch=st.integers(0, 3))
def test_every_window_is_in_one_row_within_capacity(sizes: list[int], epoch: int) -> None:
    rows = pack(np.array(sizes, dtype=np.int64), 20, seed=1, epoch=epoch)
    assert sorted(index for row in rows for index in row) == list(range(len(sizes)))
    assert all(sum(sizes[index] for index in row) <= 20 for row in rows)


def test_packing_wastes_little() -> None:
    sizes = np.random.default_rng(3).integers(20, 120, size=5000)
    rows = pack(sizes, 256, seed=1, epoch=0)
    assert sizes.sum() / (256 * len(rows)) > 0.98
    assert pack(sizes, 256, seed=1, epoch=0) == rows
    assert pack(sizes, 256, seed=1, epoch=1) != rows
