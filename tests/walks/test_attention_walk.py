"""Each step of a walk follows from the previous one, and the numbers equal the model's own."""

import numpy as np
import pytest
import torch

from manyheads.errors import LensError
from manyheads.model import ModelSettings
from manyheads.model.masks import View
from manyheads.walks import Walk
from manyheads.walks.attention_walk import AttentionCall, capture_calls, choose_position, walk_attention

from model.makers import choices, describe, passes, product_of, small

FORMS = product_of(scores=choices("scores"), projections=choices("projections"), positions=["none", "rotary", "alibi"])
SHAPES = [
    small(head_width=3, value_width=5),
    small(n_heads=4, n_key_heads=2),
    small(attention_bias=True),
    small(attention_bias=True, projections="tied"),
]
CLOSE = {"rtol": 0, "atol": 1e-12}


def row_of(view: View, row: int) -> View:
    one = [
        each[row : row + 1] if each.size(0) > 1 else each
        for each in (view.visible, view.query_positions, view.key_positions)
    ]
    return View(*one)


def each_walk(settings: ModelSettings) -> list[tuple[Walk, AttentionCall]]:
    """Walk every head over a full sequence, one whose first query is fully masked, and an empty one."""
    walks = []
    for attention, x, y, view in passes(settings):
        for row in (0, 2, 3):
            here, there = x[row : row + 1], y[row : row + 1]
            with capture_calls(attention) as calls:
                attention(here, there, row_of(view, row))
            for head in range(settings.n_heads):
                names = [[str(position) for position in range(each.size(1))] for each in (here, there)]
                walked = walk_attention(
                    attention, calls[0], head=head, query=0, query_names=names[0], key_names=names[1]
                )
                walks.append((walked, calls[0]))
    return walks


@pytest.mark.parametrize("settings", [*FORMS, *SHAPES], ids=describe)
def test_each_step_follows_from_the_previous_one(settings: ModelSettings) -> None:
    for one, call in each_walk(settings):
        m = one.matrices
        if one.q.size:
            np.testing.assert_allclose(one.q, one.queries_from @ m.query + _or_zero(m.query_bias), **CLOSE)
        if one.k.size:
            np.testing.assert_allclose(one.k, one.keys_from @ m.key + _or_zero(m.key_bias), **CLOSE)
        np.testing.assert_allclose(one.v, one.keys_from @ m.value + _or_zero(m.value_bias), **CLOSE)
        assert (one.rotated_q is not None) == (settings.positions == "rotary" and not one.attention.endswith("cross"))
        np.testing.assert_allclose(one.terms.sum(-1), one.products, **CLOSE)
        row = one.softmax
        scores = one.products / row.scale + _or_zero(one.distance)
        np.testing.assert_allclose(row.scores, np.where(one.visible, scores, -np.inf), **CLOSE)
        largest = np.where(one.visible.any(-1), row.scores.max(-1), 0)[:, None]
        np.testing.assert_allclose(row.exponentials, np.exp(row.scores - largest), **CLOSE)
        np.testing.assert_allclose(row.exponentials.sum(-1), row.sums, **CLOSE)
        np.testing.assert_allclose(row.weights * row.sums[:, None], row.exponentials, **CLOSE)
        np.testing.assert_allclose(row.weights.sum(-1), one.visible.any(-1), **CLOSE)
        np.testing.assert_allclose(row.weights @ one.v, one.weighted_sum, **CLOSE)
        np.testing.assert_allclose(one.heads @ m.output + _or_zero(m.output_bias), one.output, **CLOSE)
        # The output equals that of the model's fused path, in single precision.
        np.testing.assert_allclose(one.output, call.output[0].detach().numpy(), rtol=0, atol=1e-5)


def _or_zero(values: np.ndarray | None) -> np.ndarray:
    return np.zeros(()) if values is None else values


@pytest.mark.parametrize("settings", SHAPES, ids=describe)
def test_contributions_of_all_heads_sum_to_the_output(settings: ModelSettings) -> None:
    walks = [one for one, _ in each_walk(settings)]
    for first in range(0, len(walks), settings.n_heads):
        heads = walks[first : first + settings.n_heads]
        total = sum(one.contribution for one in heads) + _or_zero(heads[0].matrices.output_bias)
        np.testing.assert_allclose(total, heads[0].output, **CLOSE)


@pytest.mark.parametrize(("scores", "other"), [("scaled-dot", 1.0), ("bilinear", 1.0), ("dot", 2.0)])
def test_contrast_uses_the_other_scale(scores: str, other: float) -> None:
    for one, _ in each_walk(small(scores=scores)):
        assert one.contrast is not None
        assert one.contrast.scale == other
        plain = np.where(one.visible, np.exp(one.products / other), 0)
        expected = plain / np.where(one.visible.any(-1), plain.sum(-1), 1)[:, None]
        np.testing.assert_allclose(one.contrast.weights, expected, **CLOSE)


def test_forms_without_a_scale_have_no_contrast() -> None:
    assert all(one.contrast is None for one, _ in each_walk(small(scores="additive")))


def test_slope_is_the_derivative_of_a_weight_by_its_product() -> None:
    one, _ = each_walk(small())[0]
    products = torch.from_numpy(one.products).requires_grad_()
    weights = (products / one.softmax.scale).softmax(-1)
    for query, key in ((0, 0), (1, 3)):
        slope = torch.autograd.grad(weights[query, key], products, retain_graph=True)[0][query, key]
        assert float(slope) == pytest.approx(one.softmax.slopes[query, key], abs=1e-12)


def test_choose_position() -> None:
    tokens = ["<s>", "▁two", "▁sleep", "ing", "▁cats", "▁7", "这家酒店"]
    assert choose_position(tokens, None, 1) == 1
    assert choose_position(["x"], None, 1) == 0
    assert choose_position(tokens, "cats", 1) == 4
    assert choose_position(tokens, "sleeping", 1) == 2  # a word of several tokens: the first
    assert choose_position(tokens, "7", 1) == 5  # a word has priority over a position
    assert choose_position(tokens, "3", 1) == 3
    assert choose_position(tokens, "酒店", 1) == 6
    assert choose_position(["<s>", "▁", "n", "o", "t"], "not", 1) == 2
    for query in ("at", "9", "-1", "", "茶"):
        with pytest.raises(LensError, match=r"There is no query .* Give a word or its number: 0 <s> · 1 ▁two "):
            choose_position(tokens, query, 1)
