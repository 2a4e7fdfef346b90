"""Batches: every example once, within budget, little padding, order fixed by (seed, epoch)."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data import plan_batches

lengths_strategy = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=200).map(
    lambda rows: np.array(rows, dtype=np.int64).reshape(-1, 2)
)


@given(lengths_strategy, st.integers(10, 500), st.integers(0, 5), st.integers(0, 5))
def test_every_example_stands_in_one_batch_within_budget(
    lengths: np.ndarray, budget: int, seed: int, epoch: int
) -> None:
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


def test_little_is_padding() -> None:
    # Lengths as translation has them: the target about as long as the source.
    chance = np.random.default_rng(3)
    source = chance.gamma(6.0, 2.0, 20_000).astype(np.int64) + 3
    lengths = np.stack([source, (source * chance.normal(1.1, 0.15, 20_000)).astype(np.int64) + 3], axis=1)
    batches = plan_batches(lengths, 3000, seed=1, epoch=0)
    padded = sum(lengths[batch].max(axis=0) * len(batch) for batch in batches)
    assert 1 - lengths.sum() / padded.sum() < 0.05
