import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.lens import trace
from manyheads.model import Tap

from lens.makers import KINDS, TEXTS, task_of

BRIEF = DecodeSettings(method="greedy", max_extra=2)


@pytest.mark.parametrize("kind", KINDS)
def test_every_attention_of_every_task_is_traced(kind: str) -> None:
    task = task_of(kind)
    found = trace(task, TEXTS[kind], search=BRIEF)
    assert list(found.attentions) == [attention.name for attention in task.model.attentions()]
    for one in found.attentions.values():
        n_heads, n_queries, n_keys = one.weights.shape
        assert (n_queries, n_keys) == (len(one.queries), len(one.keys))
        assert torch.allclose(one.weights.sum(-1), torch.ones(n_heads, n_queries))


@pytest.mark.parametrize("kind", ["seq2seq", "language"])
def test_a_generation_is_the_pass_over_what_it_wrote(kind: str) -> None:
    task = task_of(kind)
    found = trace(task, TEXTS[kind], search=BRIEF)
    ids = [torch.tensor([[piece.id for piece in side]]) for side in (found.reading.source, found.reading.target)]
    tap = Tap()
    task.model(*(side if side.numel() else None for side in ids), tap=tap)
    for name, one in found.attentions.items():
        assert torch.allclose(one.weights, tap[f"{name}.weights"][0], atol=1e-5)
        assert torch.allclose(one.k, tap[f"{name}.k"][0], atol=1e-5)
