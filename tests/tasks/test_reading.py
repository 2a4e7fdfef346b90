"""Windows of long texts, and temperatures."""

import pytest
import torch

from manyheads.tasks.pooling import Pool, Pooling
from manyheads.tasks.reading import fit_temperature, like_lengths, windows


def test_windows_hold_everything_and_overlap_by_half() -> None:
    assert windows([1] * 8, 8) == [(0, 8)]
    assert windows([], 8) == [(0, 0)]
    assert windows([1] * 20, 8) == [(0, 8), (4, 12), (8, 16), (12, 20)]
    assert windows([3, 3, 3, 3], 7) == [(0, 2), (1, 3), (2, 4)]
    assert windows([1, 9, 1], 4) == [(0, 1), (1, 2), (2, 3)]  # what is too long stands alone


@pytest.mark.parametrize("length", [9, 17, 100, 101])
def test_no_window_is_longer_than_allowed(length: int) -> None:
    found = windows([1] * length, 8)
    assert all(end - start <= 8 for start, end in found)
    assert {place for start, end in found for place in range(start, end)} == set(range(length))


def test_every_text_is_read_once() -> None:
    batches = list(like_lengths([5000, 3, 1, 900, 900, 900, 900, 900]))
    assert sorted(number for batch in batches for number in batch) == list(range(8))


def test_a_temperature_takes_back_what_was_multiplied() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(4000, 3, generator=generator)
    drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    wanted = torch.nn.functional.one_hot(drawn, 3).float()
    assert fit_temperature(5.0 * logits, wanted, several=False) == pytest.approx(5.0, rel=0.1)
    several = torch.bernoulli(logits.sigmoid(), generator=generator)
    assert fit_temperature(3.0 * logits, several, several=True) == pytest.approx(3.0, rel=0.1)
    assert fit_temperature(logits[:0], wanted[:0], several=False) == 1.0


@pytest.mark.parametrize("kind", ["first", "mean", "max", "mean-max", "attention"])
def test_pooling_never_sees_what_is_not_real(kind: Pooling) -> None:
    torch.manual_seed(1)
    pool, x = Pool(kind, 6), torch.randn(2, 5, 6)
    is_real = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    pooled = pool(x, is_real)
    torch.testing.assert_close(pooled[:1], pool(x[:1, :3], is_real[:1, :3]))
    assert pooled.shape == (2, pool.width)
