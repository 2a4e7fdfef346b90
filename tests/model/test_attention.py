import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from manyheads.model import ModelSettings, Tap, attention, attention_weights
from manyheads.model.attention import masked_softmax
from manyheads.model.masks import View
from manyheads.model.transformer import DecoderState

from model.makers import (
    VIEWS,
    attention_of,
    choices,
    describe,
    largest_difference,
    passes,
    product_of,
    random_ids,
    small,
    small_model,
    vectors,
)

X = torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])

ANY: dict[str, Any] = {
    "scores": choices("scores"),
    "projections": choices("projections"),
    "positions": ["none", "rotary", "alibi"],
    "n_heads": [4],
}
# Head widths as usual; then d_k ≠ d_v and h·d_v ≠ width; then grouped queries.
EVERY_KIND = [
    *product_of(**ANY),
    *product_of(**ANY, head_width=[6], value_width=[3]),
    *product_of(**ANY, n_key_heads=[2, 1]),
]


every_kind = pytest.mark.parametrize("settings", EVERY_KIND, ids=describe)


def test_there_are_enough_kinds_to_speak_of_every_kind() -> None:
    assert len(EVERY_KIND) > 100
    for field in ("scores", "projections"):
        assert {getattr(settings, field) for settings in EVERY_KIND} == set(choices(field))
    assert any(s.heads.value_width * s.n_heads != s.width for s in EVERY_KIND)
    assert any(s.heads.value_width != s.heads.head_width for s in EVERY_KIND)


class TestPureFunctions:
    def test_the_worked_example_saturates(self) -> None:
        q, k, v = X @ X, X @ X.T, X @ torch.tensor([[1.0, 7, 4], [2, 8, 5], [3, 9, 6]])
        assert q.tolist() == [[30, 36, 42], [66, 81, 96], [102, 126, 150]]
        assert k.tolist() == [[14, 32, 50], [32, 77, 122], [50, 122, 194]]
        assert v.tolist() == [[14, 50, 32], [32, 122, 77], [50, 194, 122]]
        assert attention_weights(q, k).tolist() == [[0, 0, 1]] * 3
        assert attention(q, k, v).tolist() == [[50, 194, 122]] * 3

    def test_two_sentences_of_four_words_walk_through(self) -> None:
        x = vectors(2, 4, 8)
        assert attention_weights(x, x).shape == (2, 4, 4)
        assert attention(x, x, x).shape == (2, 4, 8)

    def test_weights_are_a_softmax_over_keys_of_scaled_products(self) -> None:
        q, k = vectors(3, 5), vectors(4, 5, seed=1)
        powers = [
            [math.exp(sum(a * b for a, b in zip(qi, kj, strict=True)) / 5**0.5) for kj in k.tolist()]
            for qi in q.tolist()
        ]
        expected = torch.tensor([[power / sum(row) for power in row] for row in powers])
        assert largest_difference(attention_weights(q, k), expected) < 1e-6

    def test_what_is_hidden_does_not_exist(self) -> None:
        q, k, v = vectors(2, 3), vectors(5, 3, seed=1), vectors(5, 4, seed=2)
        visible = torch.tensor([[True, False, True, True, False]])
        seen = visible[0]
        assert torch.allclose(attention(q, k, v, visible), attention(q, k[seen], v[seen]), atol=1e-6)

    def test_a_query_that_sees_nothing_gets_zeros_and_no_nan_flows_back(self) -> None:
        q, k, v = (vectors(2, 3, seed=seed).requires_grad_() for seed in range(3))
        output = attention(q, k, v, torch.tensor([[False, False], [True, True]]))
        assert output[0].tolist() == [0, 0, 0]
        assert output[1].abs().sum() > 0
        output.sum().backward()
        assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in (q, k, v))


@every_kind
def test_the_fused_path_equals_the_explicit_one(settings: ModelSettings) -> None:
    for module, x, y, view in passes(settings):
        fast, explicit = module(x, y, view), module(x, y, view, tap=Tap())
        assert fast.isfinite().all()
        assert largest_difference(fast, explicit) <= 1e-5


@every_kind
def test_a_row_of_weights_sums_to_one_or_sees_nothing(settings: ModelSettings) -> None:
    for module, x, y, view in passes(settings):
        tap = Tap()
        module(x, y, view, tap=tap)
        weights = tap[f"{module.name}.weights"]
        visible = view.visible.expand_as(weights)
        assert weights.shape == (4, settings.n_heads, 5, y.size(1))
        assert torch.allclose(weights.sum(-1), visible.any(-1).float(), atol=1e-5)
        assert (weights[~visible] == 0).all()
        assert (tap[f"{module.name}.scores"][~visible] == -math.inf).all()
        assert torch.equal(tap[f"{module.name}.heads"], weights @ tap[f"{module.name}.v"])


@every_kind
def test_the_output_is_the_sum_of_what_each_head_writes(settings: ModelSettings) -> None:
    for module, x, y, view in passes(settings):
        tap = Tap()
        output = module(x, y, view, tap=tap)
        matrix = torch.eye(8) if settings.projections == "none" else module.output.weight.T
        per_head = matrix.unflatten(0, (settings.n_heads, -1))  # W_i^O
        written = [tap[f"{module.name}.heads"][:, i] @ per_head[i] for i in range(settings.n_heads)]
        assert largest_difference(output, torch.stack(written).sum(0)) <= 1e-5


@pytest.mark.parametrize("tap", [None, Tap()], ids=["fast", "explicit"])
@pytest.mark.parametrize("settings", [kind for kind in EVERY_KIND if kind.projections != "none"], ids=describe)
def test_a_zero_gate_equals_zeroed_columns_of_the_output_matrix(settings: ModelSettings, tap: Tap | None) -> None:
    for module, x, y, view in passes(settings):
        gates = torch.ones(settings.n_heads).index_fill(0, torch.tensor([1, 2]), 0.0)
        module.gate = gates
        gated = module(x, y, view, tap=tap)
        module.gate = None
        assert largest_difference(gated, module(x, y, view)) > 1e-3
        columns = module.output.weight.data.unflatten(1, (settings.n_heads, -1))
        columns[:, 1:3] = 0.0
        assert largest_difference(gated, module(x, y, view)) <= 1e-5


@pytest.mark.parametrize("scores", ["scaled-dot", "additive"])
def test_dropout_falls_on_the_weights_when_training_with_a_tap_and_without(scores: str) -> None:
    module = attention_of(small(attention_dropout=0.5, projections="none", scores=scores))
    x = torch.ones(4, 5, 8)  # every mix of equal values is that value, unless weights were dropped
    view = VIEWS["bidirectional"]
    for tap in (None, Tap()):
        module.eval()
        assert torch.allclose(module(x, x, view, tap=tap)[:3], x[:3])
        module.train()
        torch.manual_seed(0)
        dropped = torch.stack([module(x, x, view, tap=tap)[0] for _ in range(40)])
        assert not torch.allclose(dropped, x[0])
        assert torch.allclose(dropped.mean(), torch.tensor(1.0), atol=0.1)
    assert torch.allclose(tap["here.self.weights"][0].sum(-1), torch.ones(2, 5))  # a tap sees them whole


@pytest.mark.parametrize(
    "settings",
    [
        *product_of(scores=choices("scores"), width=[4], max_length=[3]),
        *product_of(projections=choices("projections"), width=[4]),
        *product_of(positions=["rotary", "alibi"], width=[4]),
        small(width=4, n_heads=2, n_key_heads=1, head_width=3, value_width=1),
    ],
    ids=describe,
)
@pytest.mark.parametrize("tap", [None, Tap()], ids=["fast", "explicit"])
def test_gradients_are_right(settings: ModelSettings, tap: Tap | None) -> None:
    module = attention_of(settings).double()
    # The second row's first query sees nothing.
    is_real = torch.tensor([[True, True, True], [False, True, True]])
    view = View.causal(is_real, is_real.cumsum(1) - 1 + (~is_real).long(), 3)
    names = [name for name, _ in module.named_parameters()]
    parameters = [value.detach().requires_grad_() for value in module.parameters()]
    x = vectors(2, 3, 4, seed=3).double().requires_grad_()

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (x, x, view), {"tap": tap})

    assert torch.autograd.gradcheck(run, (x, *parameters), fast_mode=True)


def test_softmax_hides_before_and_not_after() -> None:
    scores = torch.tensor([[0.0, 1.0, 50.0]])
    weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
    assert torch.allclose(weights, torch.tensor([[1 / (1 + math.e), math.e / (1 + math.e), 0.0]]))


def test_a_row_that_sees_nothing_is_zeros_with_zero_gradient() -> None:
    scores = vectors(2, 3).requires_grad_()
    weights = masked_softmax(scores, torch.tensor([[False, False, False], [True, True, False]]))
    assert weights[0].tolist() == [0, 0, 0]
    (weights * vectors(2, 3, seed=1)).sum().backward()
    assert scores.grad is not None
    assert scores.grad[0].tolist() == [0, 0, 0]
    assert scores.grad[1, :2].abs().min() > 0


@pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])
def test_a_triangle_is_seen_the_same_whoever_computes_it(positions: str) -> None:
    """By the kernel that need not read it, by the one that does, and explicitly."""
    model = small_model(small(shape="decoder", positions=positions))
    target = random_ids(3, 70)
    view = View.packed(torch.ones_like(target))
    assert view.is_purely_causal

    def hidden(view: View, tap: Tap | None = None) -> torch.Tensor:
        state = DecoderState(None, None, torch.ones(3, 0, dtype=torch.bool), [])
        return model.decode(target, state, view=view, tap=tap)

    unread = hidden(view)
    torch.testing.assert_close(unread, hidden(replace(view, mask=view.visible)))
    torch.testing.assert_close(unread, hidden(view, Tap()))
