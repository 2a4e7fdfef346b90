"""The worked example, the untrained model of width 4, and saturation with and without √d_k."""

import numpy as np
import pytest
import torch

from manyheads.errors import DataError, LensError
from manyheads.walks.toy_model import measure_saturation, walk_sentence, worked_example


def test_worked_example_is_exact() -> None:
    one = worked_example()
    np.testing.assert_array_equal(one.queries_from, [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    np.testing.assert_array_equal(one.q, [[30, 36, 42], [66, 81, 96], [102, 126, 150]])
    np.testing.assert_array_equal(one.k, [[14, 32, 50], [32, 77, 122], [50, 122, 194]])
    np.testing.assert_array_equal(one.v, [[14, 50, 32], [32, 122, 77], [50, 194, 122]])
    np.testing.assert_array_equal(one.products, one.q @ one.k.T)
    np.testing.assert_allclose(one.softmax.scores, one.q @ one.k.T / np.sqrt(3), rtol=1e-14)
    np.testing.assert_array_equal(one.softmax.weights, [[0, 0, 1]] * 3)
    np.testing.assert_array_equal(one.output, [[50, 194, 122]] * 3)
    assert one.contrast is not None
    np.testing.assert_array_equal(one.contrast.weights, [[0, 0, 1]] * 3)
    assert not one.softmax.slopes.any()
    assert worked_example("x3").query == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我爱水课", "我 爱 水 课"),
        ("猫在睡觉", "猫 在 睡 觉"),
        ("I love cats", "I love cats"),
        ("Mr. 王 can't.", "Mr. 王 ca n't ."),
    ],
)
def test_tokens_are_words_or_characters(text: str, words: str) -> None:
    one = walk_sentence(text)
    assert one.query_names == one.key_names == tuple(words.split())
    assert (one.attention, one.head, one.query, one.n_heads) == ("encoder.0.self", 0, 1, 2)
    assert one.queries_from.shape == (len(words.split()), 4)
    np.testing.assert_allclose(one.softmax.weights.sum(-1), 1)


def test_weights_are_reproducible_and_leave_the_random_state_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first = walk_sentence("我爱水课")
    assert torch.rand(1) == expected
    np.testing.assert_array_equal(first.output, walk_sentence("我爱水课").output)


def test_weights_have_one_decimal() -> None:
    block = walk_sentence("I love cats").block
    assert block is not None and block.weights is not None
    for name, value in block.weights.items():
        np.testing.assert_allclose(value * 10, np.round(value * 10), rtol=0, atol=1e-12, err_msg=name)
    assert block.weights["output.weight"].shape == (5, 4)  # I, love, cats, BOS, EOS
    np.testing.assert_array_equal(
        block.weights["output.weight"], block.weights["source_embedding.token_embedding.weight"]
    )


def test_embedding_is_scaled_and_has_the_sinusoids_added() -> None:
    block = walk_sentence("I love cats").block
    assert block is not None and block.source_embedding is not None
    embedding = block.source_embedding
    assert embedding.scale == 2.0
    expected = [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)]
    assert embedding.positions is not None and embedding.position_lengths is not None
    np.testing.assert_allclose(embedding.positions[1], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(embedding.output, 2 * embedding.vectors + embedding.positions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(embedding.position_lengths, np.sqrt(2))
    np.testing.assert_allclose(embedding.scaled_lengths, 2 * embedding.word_lengths)


def test_words_that_are_read_and_written() -> None:
    walked = walk_sentence("I love cats", answer="猫正在睡", layer="decoder.0.cross", query="猫")
    assert walked.query_names == ("<s>", "猫", "正", "在", "睡")
    assert walked.written_names == ("猫", "正", "在", "睡", "</s>")
    assert walked.block is not None and walked.block.decoder is not None and walked.block.loss is not None
    assert (walked.block.decoder.reads, walked.block.decoder.writes) == ("猫", "正")
    assert walked.block.loss.smoothing == 0.1
    assert len(walked.block.loss.targets) == 9


def test_worked_example_has_a_residual_and_norms() -> None:
    block = worked_example().block
    assert block is not None
    np.testing.assert_array_equal(block.sublayer.residual, [[51, 196, 125], [54, 199, 128], [57, 202, 131]])
    assert block.norms["layer"].shift == 0.0
    assert block.norms["sample"].shift > 0.5
    assert (block.feed_forward, block.decoder, block.output, block.loss, block.source_embedding) == (None,) * 5


def test_decoder_is_causal() -> None:
    own = walk_sentence("我爱水课", layer="decoder.0.self")
    assert own.query_names == ("<s>", "我", "爱", "水", "课")
    np.testing.assert_array_equal(own.visible, np.tri(5, dtype=bool))
    assert (own.softmax.weights[~own.visible] == 0).all()
    across = walk_sentence("我爱水课", answer="I love it", layer="decoder.0.cross", head=1, query="love")
    assert (across.query_names, across.key_names, across.query) == (("<s>", "I", "love", "it"), tuple("我爱水课"), 2)
    assert across.answer == "I love it"
    assert across.visible.all()


@pytest.mark.parametrize(("text", "message"), [("", "The text is empty"), (" \n", "empty"), ("a " * 13, "13 words")])
def test_empty_and_long_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        walk_sentence(text)


def test_empty_answer_and_unknown_head_are_refused() -> None:
    with pytest.raises(DataError, match="The answer is empty"):
        walk_sentence("我爱水课", answer=" ", layer="decoder.0.self")
    with pytest.raises(LensError, match="has heads 0 to 1"):
        walk_sentence("我爱水课", head=2)


def test_median_slope_vanishes_without_the_scale() -> None:
    saturations = measure_saturation()
    for plain, scaled in zip(saturations[::2], saturations[1::2], strict=True):
        assert (plain.head_width, plain.is_scaled) == (scaled.head_width, not scaled.is_scaled)
        assert plain.spread == pytest.approx(plain.head_width**0.5, rel=0.05)
        assert scaled.spread == pytest.approx(1.0, rel=0.05)
        assert scaled.largest_weight < 0.4
        assert plain.mean_slope > scaled.mean_slope
    widest, widest_scaled = saturations[-2:]
    assert widest.largest_weight > 0.999
    assert widest.slope < 1e-12 < 1e-3 < widest_scaled.slope
