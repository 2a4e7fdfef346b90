"""Every step of a walk, held equal to the next one and to the model's own numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.errors import DataError, LensError
from manyheads.lens import Walk, walk
from manyheads.lens.attention_walk import AttentionCall, capture_calls, choose_position, walk_attention
from manyheads.model import ModelSettings, Tap
from manyheads.model.masks import View

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
    """Every head over a whole sentence, one with gaps (so that a first query sees nothing), and an empty one."""
    found = []
    for attention, x, y, view in passes(settings):
        for row in (0, 2, 3):
            here, there = x[row : row + 1], y[row : row + 1]
            with capture_calls(attention) as calls:
                attention(here, there, row_of(view, row))
            for head in range(settings.n_heads):
                names = [[str(place) for place in range(each.size(1))] for each in (here, there)]
                walked = walk_attention(
                    attention, calls[0], head=head, query=0, query_names=names[0], key_names=names[1]
                )
                found.append((walked, calls[0]))
    return found


@pytest.mark.parametrize("settings", [*FORMS, *SHAPES], ids=describe)
def test_each_step_follows_from_the_one_before(settings: ModelSettings) -> None:
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
        # And the whole is what the model itself gave, by its fast path, in single precision.
        np.testing.assert_allclose(one.output, call.output[0].detach().numpy(), rtol=0, atol=1e-5)


def _or_zero(values: np.ndarray | None) -> np.ndarray:
    return np.zeros(()) if values is None else values


@pytest.mark.parametrize("settings", SHAPES, ids=describe)
def test_the_shares_of_all_heads_make_the_output(settings: ModelSettings) -> None:
    walks = [one for one, _ in each_walk(settings)]
    for first in range(0, len(walks), settings.n_heads):
        heads = walks[first : first + settings.n_heads]
        total = sum(one.contribution for one in heads) + _or_zero(heads[0].matrices.output_bias)
        np.testing.assert_allclose(total, heads[0].output, **CLOSE)


@pytest.mark.parametrize(("scores", "other"), [("scaled-dot", 1.0), ("bilinear", 1.0), ("dot", 2.0)])
def test_the_contrast_is_the_same_row_with_the_other_scale(scores: str, other: float) -> None:
    for one, _ in each_walk(small(scores=scores)):
        assert one.contrast is not None
        assert one.contrast.scale == other
        plain = np.where(one.visible, np.exp(one.products / other), 0)
        expected = plain / np.where(one.visible.any(-1), plain.sum(-1), 1)[:, None]
        np.testing.assert_allclose(one.contrast.weights, expected, **CLOSE)


def test_forms_without_a_scale_have_no_contrast() -> None:
    assert all(one.contrast is None for one, _ in each_walk(small(scores="additive")))


def test_a_slope_is_the_derivative_of_a_weight_by_its_product() -> None:
    one, _ = each_walk(small())[0]
    products = torch.from_numpy(one.products).requires_grad_()
    weights = (products / one.softmax.scale).softmax(-1)
    for query, key in ((0, 0), (1, 3)):
        slope = torch.autograd.grad(weights[query, key], products, retain_graph=True)[0][query, key]
        assert float(slope) == pytest.approx(one.softmax.slopes[query, key], abs=1e-12)


@pytest.mark.parametrize("layer", ["encoder.0.self", "decoder.0.self", "decoder.0.cross"])
@pytest.mark.parametrize("head", [0, 3])
def test_a_bundle_gives_the_numbers_a_tap_sees(untrained: Bundle, layer: str, head: int) -> None:
    one = walk(untrained, "Two cats are sleeping.", answer="两只猫在睡觉。", layer=layer, head=head)
    task = untrained.task
    model_input = task.model_input("Two cats are sleeping.", "两只猫在睡觉。")
    tap = Tap()
    with torch.no_grad():
        task.model(
            *(torch.tensor([[token.id for token in side]]) for side in (model_input.source, model_input.target)),
            tap=tap,
        )
    seen = {what: tap[f"{layer}.{what}"][0].numpy() for what in ("q", "k", "v", "scores", "weights", "heads", "output")}
    for ours, theirs in (
        (one.q, seen["q"][head]),
        (one.k, seen["k"][head]),
        (one.v, seen["v"][head]),
        (one.softmax.scores, seen["scores"][head]),
        (one.softmax.weights, seen["weights"][head]),
        (one.weighted_sum, seen["heads"][head]),
        (one.output, seen["output"]),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    assert len(one.query_names) == len(one.softmax.weights)
    assert one.is_self == layer.endswith("self")
    assert one.visible.all() == (layer != "decoder.0.self")


def test_without_an_answer_the_decoder_writes_the_models_own(untrained: Bundle) -> None:
    text = "Two cats are sleeping."
    (own,) = untrained.predict([text])
    assert walk(untrained, text, layer="decoder.0.self").answer == own
    assert walk(untrained, text).answer == ""


def test_a_models_weights_and_mode_are_left_alone(untrained: Bundle) -> None:
    model = untrained.task.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    walk(untrained, "Two cats.", layer="decoder.0.cross")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(value.dtype == torch.float32 for value in model.parameters())
    assert not model.attentions()[0]._forward_hooks


def test_the_place_in_detail() -> None:
    tokens = ["<s>", "▁two", "▁sleep", "ing", "▁cats", "▁7", "这家酒店"]
    assert choose_position(tokens, None, 1) == 1
    assert choose_position(["x"], None, 1) == 0
    assert choose_position(tokens, "cats", 1) == 4
    assert choose_position(tokens, "sleeping", 1) == 2  # a word in several tokens: its first
    assert choose_position(tokens, "7", 1) == 5  # a word that is a number is the word
    assert choose_position(tokens, "3", 1) == 3
    assert choose_position(tokens, "酒店", 1) == 6
    assert choose_position(["<s>", "▁", "n", "o", "t"], "not", 1) == 2
    for wanted in ("at", "9", "-1", "", "茶"):
        with pytest.raises(LensError, match=r"There is no query .* 0 <s> · 1 ▁two .*: give a word or its number"):
            choose_position(tokens, wanted, 1)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"layer": "encoder.9.self"}, r"no layer 'encoder.9.self'. There are encoder.0.self, decoder.0.self, decoder"),
        ({"head": 4}, "encoder.0.self has heads 0 to 3"),
        ({"head": -1}, "encoder.0.self has heads 0 to 3"),
        ({"query": "dogs"}, "no query 'dogs'"),
    ],
)
def test_what_is_not_there_is_refused(untrained: Bundle, changes: dict[str, object], told: str) -> None:
    with pytest.raises(LensError, match=told):
        walk(untrained, "Two cats.", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "told"), [("", "is empty"), ("  ", "is empty"), ("cats " * 60, "at most 39")])
def test_texts_that_cannot_be_read(untrained: Bundle, text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        walk(untrained, text)


def test_places_are_named(untrained: Bundle) -> None:
    one = walk(untrained, "Two cats.", answer="猫", layer="decoder.0.cross", query="0")
    assert one.query_names[0] == "<s>"
    assert one.key_names[-1] == "</s>"
    assert json.dumps(one.query_names)  # plain strings
    assert replace(one, head=1).n_heads == 4
