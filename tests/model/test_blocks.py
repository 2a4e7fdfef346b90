import pytest
import torch

from manyheads.model.blocks import DecoderBlock, EncoderBlock, PostNorm, PreNorm, make_cross_attention, make_sublayer
from manyheads.model.masks import View
from manyheads.model.positions import AlibiPositions, NoRelativePositions
from manyheads.model.score_forms import Cosine, DenseSynthesizer, ScaledDot
from manyheads.model.tap import Tap

from model.makers import GAPPED, VIEWS, attention_of, largest_difference, shaken, small, vectors

X, MEMORY = vectors(4, 5, 8), vectors(4, 3, 8, seed=1)
MEMORY_VIEW = View.cross(VIEWS["causal"].query_positions, GAPPED[:, :3])


def test_post_norm_normalizes_the_sum_and_pre_norm_the_input() -> None:
    post, pre = shaken(make_sublayer(small())), shaken(make_sublayer(small(norm_placement="pre")))
    assert (type(post), type(pre)) == (PostNorm, PreNorm)
    assert torch.equal(post(X, GAPPED, torch.sin), post.norm(X + X.sin(), GAPPED))
    assert torch.equal(pre(X, GAPPED, torch.sin), X + pre.norm(X, GAPPED).sin())


@pytest.mark.parametrize("norm_placement", ["post", "pre"])
def test_dropout_applies_to_the_sublayer_and_not_to_the_residual(norm_placement: str) -> None:
    sublayer = make_sublayer(small(norm_placement=norm_placement, dropout=0.999))
    torch.manual_seed(0)
    expected = X if norm_placement == "pre" else sublayer.norm(X, GAPPED)
    # Nearly every element is dropped, so the output is nearly the residual alone.
    kept = (sublayer.train()(X, GAPPED, torch.ones_like) - expected).abs() < 1e-6
    assert kept.float().mean() > 0.9


def test_encoder_block_is_attention_then_feed_forward() -> None:
    block = shaken(EncoderBlock("encoder.0", small()))
    view = VIEWS["bidirectional"]
    attended = block.attention_sublayer.norm(X + block.attention(X, X, view), GAPPED)
    expected = block.feed_forward_sublayer.norm(attended + block.feed_forward(attended), GAPPED)
    assert largest_difference(block(X, GAPPED, view), expected) < 1e-6


def test_decoder_block_has_cross_attention_between_self_attention_and_feed_forward() -> None:
    block = shaken(DecoderBlock("decoder.0", small()))
    view = VIEWS["causal"]
    attended = block.attention_sublayer.norm(X + block.attention(X, X, view), GAPPED)
    crossed = attended + block.cross_attention(attended, MEMORY, MEMORY_VIEW)
    crossed = block.cross_attention_sublayer.norm(crossed, GAPPED)
    expected = block.feed_forward_sublayer.norm(crossed + block.feed_forward(crossed), GAPPED)
    assert largest_difference(block(X, GAPPED, view, MEMORY, MEMORY_VIEW), expected) < 1e-6


def test_decoder_only_block_has_no_cross_attention() -> None:
    block = shaken(DecoderBlock("decoder.0", small(shape="decoder")))
    assert not hasattr(block, "cross_attention")
    tap = Tap()
    block(X, GAPPED, VIEWS["causal"], None, None, tap=tap)
    assert {name.rpartition(".")[0] for name in tap.values} == {"decoder.0.self"}


def test_gates_and_taps_apply_to_each_attention() -> None:
    block, tap = shaken(DecoderBlock("decoder.7", small())), Tap()
    plain = block(X, GAPPED, VIEWS["causal"], MEMORY, MEMORY_VIEW, tap=tap)
    assert {name.rpartition(".")[0] for name in tap.values} == {"decoder.7.self", "decoder.7.cross"}
    for attention in (block.attention, block.cross_attention):
        attention.gate = torch.zeros(2)
        assert largest_difference(block(X, GAPPED, VIEWS["causal"], MEMORY, MEMORY_VIEW), plain) > 1e-3
        attention.gate = None


def test_cross_attention_has_the_score_form_but_no_relative_positions() -> None:
    cross = make_cross_attention("decoder.0.cross", small(scores="cosine", positions="alibi"))
    assert type(cross.scores) is Cosine
    assert type(cross.positions) is NoRelativePositions
    assert type(attention_of(small(positions="alibi")).positions) is AlibiPositions


def test_cross_attention_replaces_a_form_that_reads_no_keys() -> None:
    settings = small(scores="dense-synthesizer")
    assert type(attention_of(settings).scores) is DenseSynthesizer
    assert attention_of(settings).project.key is None
    assert type(attention_of(settings, "cross").scores) is ScaledDot
    assert attention_of(settings, "cross").project.key is not None
