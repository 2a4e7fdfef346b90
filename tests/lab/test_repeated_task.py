import torch
from torch import Generator

from manyheads.lab.lab_tasks import Lookup, Repeated


def test_training_repeats_few_batches_and_their_noise() -> None:
    task = Repeated(Lookup(noise=0.5), n_batches=3)
    seen = set()
    for seed in range(40):
        batch = task.batch(2, Generator().manual_seed(seed))
        assert batch.source is not None
        seen.add((tuple(batch.source.flatten().tolist()), tuple(batch.expected.flatten().tolist())))
    assert len(seen) == 3


def test_tests_are_drawn_from_the_task_itself() -> None:
    lookup = Lookup(noise=0.5)
    one = Repeated(lookup, n_batches=3).batch(8, Generator().manual_seed(5), split="test")
    other = lookup.batch(8, Generator().manual_seed(5), split="test")
    assert torch.equal(one.expected, other.expected)
