"""A walk through the whole block: its parts are those of the model, and follow from one another."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.errors import DataError, LensError
from manyheads.model import Tap, Transformer
from manyheads.model.losses import smoothed_cross_entropy
from manyheads.walks import walk
from manyheads.walks.block_walk import Passage, Tokens, walk_model

from lens.makers import ANSWER, KINDS, MODELS, TEXTS, WRITERS, task_of
from model.makers import shaken, small


@pytest.mark.parametrize("layer", ["encoder.0.self", "decoder.0.self", "decoder.0.cross"])
@pytest.mark.parametrize("head", [0, 3])
def test_walk_of_a_bundle_equals_a_tap(untrained: Bundle, layer: str, head: int) -> None:
    one = walk(untrained, "Two cats are sleeping.", answer="两只猫在睡觉。", layer=layer, head=head)
    task = untrained.task
    model_input = task.model_input("Two cats are sleeping.", "两只猫在睡觉。")
    tap = Tap()
    with torch.no_grad():
        task.model(
            *(torch.tensor([[token.id for token in side]]) for side in (model_input.source, model_input.target)),
            tap=tap,
        )
    tapped = {
        what: tap[f"{layer}.{what}"][0].numpy() for what in ("q", "k", "v", "scores", "weights", "heads", "output")
    }
    for ours, theirs in (
        (one.q, tapped["q"][head]),
        (one.k, tapped["k"][head]),
        (one.v, tapped["v"][head]),
        (one.softmax.scores, tapped["scores"][head]),
        (one.softmax.weights, tapped["weights"][head]),
        (one.weighted_sum, tapped["heads"][head]),
        (one.output, tapped["output"]),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    assert len(one.query_names) == len(one.softmax.weights)
    assert one.is_self == layer.endswith("self")
    assert one.visible.all() == (layer != "decoder.0.self")


def test_default_answer_is_the_models_own(untrained: Bundle) -> None:
    text = "Two cats are sleeping."
    (own,) = untrained.predict([text])
    assert walk(untrained, text, layer="decoder.0.self").answer == own
    assert walk(untrained, text).answer == own  # the decoder step after the encoder shows it


def test_walk_leaves_the_model_unchanged(untrained: Bundle) -> None:
    model = untrained.task.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    walk(untrained, "Two cats.", layer="decoder.0.cross")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(value.dtype == torch.float32 for value in model.parameters())
    assert not model.attentions()[0]._forward_hooks


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer": "encoder.9.self"}, r"no layer 'encoder.9.self'. Known: encoder.0.self, decoder.0.self, decoder"),
        ({"head": 4}, "encoder.0.self has heads 0 to 3"),
        ({"head": -1}, "encoder.0.self has heads 0 to 3"),
        ({"query": "dogs"}, "no query 'dogs'"),
    ],
)
def test_unknown_layer_head_and_query_are_refused(untrained: Bundle, changes: dict[str, object], message: str) -> None:
    with pytest.raises(LensError, match=message):
        walk(untrained, "Two cats.", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "message"), [("", "is empty"), ("  ", "is empty"), ("cats " * 60, "at most 39")])
def test_empty_and_long_texts_are_refused(untrained: Bundle, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        walk(untrained, text)


def test_position_names(untrained: Bundle) -> None:
    one = walk(untrained, "Two cats.", answer="猫", layer="decoder.0.cross", query="0")
    assert one.query_names[0] == "<s>"
    assert one.key_names[-1] == "</s>"
    assert json.dumps(one.query_names)  # plain strings
    assert replace(one, head=1).n_heads == 4


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_parts_equal_those_of_the_model(kind: str, model: str) -> None:
    task = task_of(kind, model)
    answer = ANSWER if kind in WRITERS else None
    model_input = task.model_input(TEXTS[kind], answer)
    sides = [
        torch.tensor([[token.id for token in side]]) if side else None
        for side in (model_input.source, model_input.target)
    ]
    tap = Tap()
    with torch.no_grad():
        logits = task.model(*sides, tap=tap)[0]
    settings = task.model.settings
    for name in settings.attention_names():
        stack, layer, _ = name.split(".")
        block = walk(task, TEXTS[kind], answer=answer, layer=name).block
        assert block is not None
        close = {"rtol": 0, "atol": 2e-4}
        np.testing.assert_allclose(block.sublayer.branch, tap[f"{name}.output"][0], **close)
        assert block.feed_forward_sublayer is not None
        is_last = int(layer) == getattr(settings, f"n_{stack}_layers") - 1
        if is_last and settings.norm_placement == "post":
            np.testing.assert_allclose(block.feed_forward_sublayer.output, tap[f"{stack}.hidden"][0], **close)
        assert (block.decoder is None) == (block.output is None) == (not settings.has_decoder)
        if block.output is not None:
            np.testing.assert_allclose(block.output.logits, logits[block.output.position], rtol=0, atol=2e-3)
            np.testing.assert_allclose(block.output.probabilities.sum(), 1.0)
            assert block.loss is not None
            written = model_input.written[block.output.position]
            assert (block.loss.target, block.output.writes) == (written.id, written.text)
            assert written.id in block.output.ids
            expected = smoothed_cross_entropy(
                logits[[block.output.position]], torch.tensor([written.id]), block.loss.smoothing
            )
            assert block.loss.loss == pytest.approx(float(expected), abs=2e-3)
            assert block.loss.smoothing == (0.1 if kind == "seq2seq" else 0.0)


def test_decoder_step_is_at_the_query_of_a_decoder_and_else_the_second(untrained: Bundle) -> None:
    how = {"text": "Two cats.", "answer": "两只猫。"}
    inside = walk(untrained, **how, layer="decoder.0.cross", query="2").block
    outside = walk(untrained, **how, query="2").block
    assert inside is not None and inside.decoder is not None
    assert outside is not None and outside.decoder is not None
    assert (inside.decoder.position, outside.decoder.position) == (2, 1)
    assert inside.decoder.self_attention is not None
    names = inside.decoder.self_attention.query_names
    assert (inside.decoder.reads, inside.decoder.writes) == (names[2], names[3])
    assert inside.decoder.self_attention.query == 2
    np.testing.assert_array_equal(inside.decoder.self_attention.visible, np.tri(len(names), dtype=bool))


def test_last_position_of_a_prompt_has_no_known_next_token() -> None:
    task = task_of("language")
    prompt = task.model_input("the dog ran").target
    walked = walk(task, "the dog ran", query=str(len(prompt) - 1))
    assert walked.block is not None and walked.block.decoder is not None and walked.block.output is not None
    assert walked.block.decoder.writes is walked.block.output.writes is None
    assert walked.block.loss is None
    assert len(walked.written_names) == len(prompt) - 1


def test_attention_without_heads_is_walked_around() -> None:
    settings = small(kept_heads={"decoder.0.cross": (), "decoder.0.self": (1,)})
    model = shaken(Transformer(settings))
    assert isinstance(model, Transformer)
    tokens = Tokens(("a", "b"), (4, 5))
    walked = walk_model(model, Passage(tokens, tokens, tokens, str, 0.1), layer=None, head=1, query=None)
    assert walked.block is not None and walked.block.decoder is not None
    step = walked.block.decoder
    assert step.cross_attention is None
    assert step.cross_sublayer is not None
    assert not step.cross_sublayer.branch.any()
    assert step.self_attention is not None
    assert step.self_attention.head == 0  # the chosen head is not there
