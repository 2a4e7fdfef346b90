import torch
from torch import Generator

from manyheads.lab.lab_tasks import Facts, FewRows, Text

TEXT = Text("causal", n_train=50)


def _batch(task, n_rows, seed, **options):
    return task.batch(n_rows, Generator().manual_seed(seed), **options)


def test_few_rows_draws_from_the_same_rows_every_time():
    batches = [_batch(FewRows(TEXT, 3), 40, seed) for seed in (1, 2)]
    rows = {tuple(row.tolist()) for batch in batches for row in batch.target}
    assert len(rows) == 3
    assert not torch.equal(batches[0].target, batches[1].target)


def test_rows_keep_their_expected_ids():
    batch = _batch(FewRows(TEXT, 5), 20, seed=1)
    inside = batch.is_counted[:, 1:]
    assert torch.equal(batch.target[:, 1:][inside], batch.expected[:, :-1][inside])


def test_held_out_rows_are_those_of_the_task():
    few = FewRows(TEXT, 3)
    one, other = _batch(few, 8, 1, split="test"), _batch(TEXT, 8, 1, split="test")
    assert torch.equal(one.target, other.target)
    assert (few.vocab_size, few.shape) == (TEXT.vocab_size, "decoder")


def test_facts_are_the_same_in_every_batch_and_found_in_the_table():
    task = Facts(n_subjects=5, n_relations=3, n_objects=7)
    batch = _batch(task, 64, seed=1)
    subjects, relations = batch.source[:, 0] - 8, batch.source[:, 1] - 13
    assert subjects.unique().tolist() == list(range(5))
    assert relations.unique().tolist() == list(range(3))
    assert torch.equal(batch.expected[:, 0], 1 + task.table[subjects, relations])
    assert batch.is_counted.tolist() == [[True, False]] * 64
    assert task.vocab_size == 1 + 7 + 5 + 3
