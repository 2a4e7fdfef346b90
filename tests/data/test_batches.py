"""Batches: every example once, within budget, with little padding, in an order fixed by (seed, epoch)."""

import hashlib
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data import choose_examples, cut_windows, make_batch, pack, pad, plan_batches
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD

lengths_strategy = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=200).map(
    lambda rows: np.array(rows, dtype=np.int64).reshape(-1, 2)
)

lengths = st.lists(st.integers(0, 60), max_size=12)


@given(lengths_strategy, st.integers(10, 500), st.integers(0, 5), st.integers(0, 5))
def test_every_example_is_in_one_batch_within_budget(lengths: np.ndarray, budget: int, seed: int, epoch: int) -> None:
    batches = plan_batches(lengths, budget, seed=seed, epoch=epoch)
    assert sorted(np.concatenate([*batches, []]).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or (lengths[batch].max(axis=0) * len(batch) <= budget).all()


def test_order_is_a_function_of_seed_and_epoch() -> None:
    lengths = np.random.default_rng(1).integers(1, 30, (500, 2))

    def plan(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in plan_batches(lengths, 200, seed=seed, epoch=epoch)]

    assert plan(1, 0) == plan(1, 0)
    assert plan(1, 0) != plan(1, 1)
    assert plan(1, 0) != plan(2, 0)


def test_padding_is_small() -> None:
    # Lengths as in translation: the target is about as long as the source.
    rng = np.random.default_rng(3)
    source = rng.gamma(6.0, 2.0, 20_000).astype(np.int64) + 3
    lengths = np.stack([source, (source * rng.normal(1.1, 0.15, 20_000)).astype(np.int64) + 3], axis=1)
    batches = plan_batches(lengths, 3000, seed=1, epoch=0)
    padded = sum(lengths[batch].max(axis=0) * len(batch) for batch in batches)
    assert 1 - lengths.sum() / padded.sum() < 0.05


@pytest.mark.parametrize(
    ("n", "columns", "budget", "seed", "epoch", "n_batches", "digest"),
    [
        (2000, 2, 500, 3, 4, 112, "753c23c07593e720"),
        (5000, 1, 900, 1, 0, 114, "008809285ca6af40"),
        (17, 2, 60, 2, 1, 11, "9ab545bbb43e0d61"),
    ],
)
def test_batches_match_recorded_digests(
    n: int, columns: int, budget: int, seed: int, epoch: int, n_batches: int, digest: str
) -> None:
    lengths = np.random.default_rng([n, columns]).integers(1, 40, (n, columns))
    for given_lengths in (lengths, lengths.astype(np.int32)):
        batches = plan_batches(given_lengths, budget, seed=seed, epoch=epoch)
        assert len(batches) == n_batches
        text = repr([batch.tolist() for batch in batches])
        assert hashlib.sha256(text.encode()).hexdigest().startswith(digest)


def test_large_corpora_are_sorted_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.random.default_rng(1).integers(1, 30, (500, 2))
    whole = plan_batches(lengths, 200, seed=1, epoch=0)
    monkeypatch.setattr("manyheads.data.batches._WINDOW", 100)
    batches = plan_batches(lengths, 200, seed=1, epoch=0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    windows = np.random.default_rng([1, 0]).permutation(500).reshape(5, 100)
    assert all(any(set(batch.tolist()) <= set(window.tolist()) for window in windows) for batch in batches)
    assert len(batches) > len(whole)


def test_many_examples_are_planned_in_bounded_memory() -> None:
    lengths = np.full((1_500_000, 2), 20, dtype=np.int32)
    tracemalloc.start()
    batches = plan_batches(lengths, 20_000, seed=1, epoch=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(batches) == 1500
    # Eight bytes per example for the order; the rest is for one window and does not grow.
    assert peak < 8 * len(lengths) + 100e6


def test_weights_are_expected_counts() -> None:
    boundaries, weights = [0, 1000, 1500, 1600, 1700], [1.0, 2.25, 0.5, 0.0]
    chosen = choose_examples(boundaries, weights, seed=3, epoch=1)
    assert chosen is not None
    times = np.bincount(chosen, minlength=1700)
    assert set(times[:1000].tolist()) == {1}
    assert set(times[1000:1500].tolist()) == {2, 3}
    assert 80 < (times[1000:1500] == 3).sum() < 170  # 125 expected
    assert 30 < times[1500:1600].sum() < 70
    assert not times[1600:].any()
    for seed, epoch, is_same in ((3, 1, True), (3, 2, False), (4, 1, False)):
        again = choose_examples(boundaries, weights, seed=seed, epoch=epoch)
        assert again is not None
        assert np.array_equal(chosen, again) is is_same
    lengths = np.random.default_rng(1).integers(1, 30, (1700, 2))
    batches = plan_batches(lengths, 200, seed=3, epoch=1, chosen=chosen)
    assert sorted(np.concatenate(batches).tolist()) == sorted(chosen.tolist())


def test_weights_of_one_choose_everything() -> None:
    assert choose_examples([0, 5, 9], [1.0, 1.0], seed=1, epoch=0) is None


def test_epoch_with_small_weights_is_not_empty() -> None:
    for epoch in range(20):
        chosen = choose_examples([0, 30], [0.001], seed=1, epoch=epoch)
        assert chosen is not None
        assert 1 <= len(chosen) <= 3
        assert 0 <= chosen.min() <= chosen.max() < 30


def test_batch_is_padded_and_shifted() -> None:
    batch = make_batch([[7, 8], [9]], [[5], [4, 6, 7]])
    assert batch.source.tolist() == [[7, 8, EOS], [9, EOS, PAD]]
    assert batch.target_input.tolist() == [[BOS, 5, PAD, PAD], [BOS, 4, 6, 7]]
    assert batch.target_output.tolist() == [[5, EOS, PAD, PAD], [4, 6, 7, EOS]]
    assert batch.n_tokens == 6


def test_padding_no_sequences_gives_no_rows() -> None:
    assert pad([], after=EOS).shape == (0, 1)


def test_one_example_or_none_is_planned_as_any_other_number_is() -> None:
    lengths = np.array([[5, 3], [2, 9]])
    assert plan_batches(lengths[:0], 10, seed=1, epoch=0) == []
    assert [batch.tolist() for batch in plan_batches(lengths[:1], 10, seed=1, epoch=0)] == [[0]]
    assert [batch.tolist() for batch in plan_batches(lengths[:1], 1, seed=1, epoch=0)] == [[0]]
    chosen = np.array([1])
    (batch,) = plan_batches(lengths, 10, seed=1, epoch=0, chosen=chosen)
    assert batch.tolist() == [1] and batch is not chosen
    assert batch.dtype == np.int64


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
