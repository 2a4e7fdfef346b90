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
# Default head widths; then d_k ≠ d_v and h·d_v ≠ width; then grouped queries.
ALL_SETTINGS = [
    *product_of(**ANY),
    *product_of(**ANY, head_width=[6], value_width=[3]),
    *product_of(**ANY, n_key_heads=[2, 1]),
]


all_settings = pytest.mark.parametrize("settings", ALL_SETTINGS, ids=describe)


def test_settings_cover_every_score_form_and_projection() -> None:
    assert len(ALL_SETTINGS) > 100
    for field in ("scores", "projections"):
        assert {getattr(settings, field) for settings in ALL_SETTINGS} == set(choices(field))
    assert any(s.heads.value_width * s.n_heads != s.width for s in ALL_SETTINGS)
    assert any(s.heads.value_width != s.heads.head_width for s in ALL_SETTINGS)


class TestPureFunctions:
    def test_the_worked_example_saturates_the_softmax(self) -> None:
        q, k, v = X @ X, X @ X.T, X @ torch.tensor([[1.0, 7, 4], [2, 8, 5], [3, 9, 6]])
        assert q.tolist() == [[30, 36, 42], [66, 81, 96], [102, 126, 150]]
        assert k.tolist() == [[14, 32, 50], [32, 77, 122], [50, 122, 194]]
        assert v.tolist() == [[14, 50, 32], [32, 122, 77], [50, 194, 122]]
        assert attention_weights(q, k).tolist() == [[0, 0, 1]] * 3
        assert attention(q, k, v).tolist() == [[50, 194, 122]] * 3

    def test_shapes(self) -> None:
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

    def test_hidden_keys_have_no_influence(self) -> None:
        q, k, v = vectors(2, 3), vectors(5, 3, seed=1), vectors(5, 4, seed=2)
        visible = torch.tensor([[True, False, True, True, False]])
        is_visible = visible[0]
        assert torch.allclose(attention(q, k, v, visible), attention(q, k[is_visible], v[is_visible]), atol=1e-6)

    def test_a_query_that_sees_nothing_outputs_zeros_and_has_finite_gradients(self) -> None:
        q, k, v = (vectors(2, 3, seed=seed).requires_grad_() for seed in range(3))
        output = attention(q, k, v, torch.tensor([[False, False], [True, True]]))
        assert output[0].tolist() == [0, 0, 0]
        assert output[1].abs().sum() > 0
        output.sum().backward()
        assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in (q, k, v))


@all_settings
def test_fused_path_equals_explicit_path(settings: ModelSettings) -> None:
    for module, x, y, view in passes(settings):
        fused, explicit = module(x, y, view), module(x, y, view, tap=Tap())
        assert fused.isfinite().all()
        assert largest_difference(fused, explicit) <= 1e-5


@all_settings
def test_weights_sum_to_one_or_to_zero_if_nothing_is_visible(settings: ModelSettings) -> None:
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


@all_settings
def test_the_output_is_the_sum_over_heads(settings: ModelSettings) -> None:
    for module, x, y, view in passes(settings):
        tap = Tap()
        output = module(x, y, view, tap=tap)
        matrix = torch.eye(8) if settings.projections == "none" else module.output.weight.T
        per_head = matrix.unflatten(0, (settings.n_heads, -1))  # W_i^O
        written = [tap[f"{module.name}.heads"][:, i] @ per_head[i] for i in range(settings.n_heads)]
        assert largest_difference(output, torch.stack(written).sum(0)) <= 1e-5


@pytest.mark.parametrize("tap", [None, Tap()], ids=["fused", "explicit"])
@pytest.mark.parametrize("settings", [kind for kind in ALL_SETTINGS if kind.projections != "none"], ids=describe)
def test_a_gate_of_zero_equals_zeroed_columns_of_the_output_matrix(settings: ModelSettings, tap: Tap | None) -> None:
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
def test_dropout_applies_to_the_weights_in_training(scores: str) -> None:
    module = attention_of(small(attention_dropout=0.5, projections="none", scores=scores))
    x = torch.ones(4, 5, 8)  # the mean of equal values is that value, unless weights are dropped
    view = VIEWS["bidirectional"]
    for tap in (None, Tap()):
        module.eval()
        assert torch.allclose(module(x, x, view, tap=tap)[:3], x[:3])
        module.train()
        torch.manual_seed(0)
        dropped = torch.stack([module(x, x, view, tap=tap)[0] for _ in range(40)])
        assert not torch.allclose(dropped, x[0])
        assert torch.allclose(dropped.mean(), torch.tensor(1.0), atol=0.1)
    # A tap receives the weights before dropout.
    assert torch.allclose(tap["here.self.weights"][0].sum(-1), torch.ones(2, 5))


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
@pytest.mark.parametrize("tap", [None, Tap()], ids=["fused", "explicit"])
def test_gradients_match_finite_differences(settings: ModelSettings, tap: Tap | None) -> None:
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


def test_masked_softmax_masks_before_normalizing() -> None:
    scores = torch.tensor([[0.0, 1.0, 50.0]])
    weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
    assert torch.allclose(weights, torch.tensor([[1 / (1 + math.e), math.e / (1 + math.e), 0.0]]))


def test_a_fully_hidden_row_is_zero_with_zero_gradient() -> None:
    scores = vectors(2, 3).requires_grad_()
    weights = masked_softmax(scores, torch.tensor([[False, False, False], [True, True, False]]))
    assert weights[0].tolist() == [0, 0, 0]
    (weights * vectors(2, 3, seed=1)).sum().backward()
    assert scores.grad is not None
    assert scores.grad[0].tolist() == [0, 0, 0]
    assert scores.grad[1, :2].abs().min() > 0


@pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])
def test_causal_attention_agrees_across_paths(positions: str) -> None:
    """Compares the fused path without a mask, the fused path with a mask, and the explicit path."""
    model = small_model(small(shape="decoder", positions=positions))
    target = random_ids(3, 70)
    view = View.packed(torch.ones_like(target))
    assert view.is_purely_causal

    def hidden(view: View, tap: Tap | None = None) -> torch.Tensor:
        state = DecoderState(None, None, torch.ones(3, 0, dtype=torch.bool), [])
        return model.decode(target, state, view=view, tap=tap)

    without_mask = hidden(view)
    torch.testing.assert_close(without_mask, hidden(replace(view, mask=view.visible)))
    torch.testing.assert_close(without_mask, hidden(view, Tap()))


def test_head_dropout_drops_single_heads_of_single_rows() -> None:
    heads = attention_of(small(n_heads=4, head_dropout=0.5))
    heads.output = torch.nn.Identity()  # so that the output is the heads themselves
    x = vectors(30, 5, 8)
    view = View.bidirectional(torch.ones(30, 5, dtype=torch.bool))
    expected = heads(x, x, view).unflatten(2, (4, 2))
    torch.manual_seed(0)
    found = heads.train()(x, x, view).unflatten(2, (4, 2))
    is_kept = found[:, 0, :, 0] != 0
    torch.testing.assert_close(found, 2 * expected * is_kept[:, None, :, None])
    assert 0.3 < is_kept.float().mean() < 0.7
    assert (is_kept.any(dim=1) & ~is_kept.all(dim=1)).sum() > 15  # most rows lose some heads but not all
    assert not is_kept.all(dim=0).any()  # no head is kept in every row
    assert is_kept.any(dim=0).all()
