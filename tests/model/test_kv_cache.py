import torch

from manyheads.model.kv_cache import CrossAttentionCache, KeyValueCache

from model.makers import vectors

FIRST = vectors(3, 2, 1, 4), vectors(3, 2, 1, 5)
SECOND = vectors(3, 2, 2, 4, seed=1), vectors(3, 2, 2, 5, seed=1)


def test_cache_appends_new_positions() -> None:
    cache = KeyValueCache()
    assert all(torch.equal(held, new) for held, new in zip(cache.update(lambda: FIRST), FIRST, strict=True))
    both = cache.update(lambda: SECOND)
    assert [tuple(part.shape) for part in both] == [(3, 2, 3, 4), (3, 2, 3, 5)]
    for held, first, second in zip(both, FIRST, SECOND, strict=True):
        assert torch.equal(held, torch.cat([first, second], dim=2))


def test_cross_attention_cache_projects_once() -> None:
    cache = CrossAttentionCache()
    calls = []

    def project() -> tuple[torch.Tensor, torch.Tensor]:
        calls.append("now")
        return FIRST

    assert cache.update(project) is cache.update(project)
    assert calls == ["now"]


def test_select_reorders_and_repeats_rows() -> None:
    cache = KeyValueCache()
    cache.select(torch.tensor([0]))  # the cache is still empty
    cache.update(lambda: FIRST)
    cache.select(torch.tensor([2, 0, 0, 2]))
    assert cache.keys_values is not None
    for held, first in zip(cache.keys_values, FIRST, strict=True):
        assert torch.equal(held, torch.stack([first[2], first[0], first[0], first[2]]))
