"""The whole model compared with `MarianMTModel` of Hugging Face, with the same weights."""

import pytest
import torch
from torch import nn

from manyheads.model import MultiHeadAttention, Transformer

from model.makers import largest_difference, random_ids, real, small

transformers = pytest.importorskip("transformers")

SOURCE, TARGET = random_ids(3, 9), random_ids(3, 6, seed=1)
SOURCE_REAL, TARGET_REAL = real("xxxxxxxxx", "xxxxx....", "xx......."), real("xxxxxx", "xxxx..", "xxxxx.")


def copy_attention(ours: MultiHeadAttention, theirs: nn.Module) -> None:
    for name, part in [("query", theirs.q_proj), ("key", theirs.k_proj), ("value", theirs.v_proj)]:
        getattr(ours.project, name).load_state_dict(part.state_dict())
    ours.output.load_state_dict(theirs.out_proj.state_dict())


def copy_norm(ours: nn.Module, theirs: nn.LayerNorm) -> None:
    ours.load_state_dict({"weight": theirs.weight, "bias": theirs.bias})


@torch.no_grad()
def copy_marian(ours: Transformer, theirs: nn.Module) -> None:
    ours.output.weight.copy_(theirs.model.shared.weight)
    # Marian stores all sines before all cosines, we interleave them; a learned table can hold either.
    ours.source_embedding.positions.weight.copy_(theirs.model.encoder.embed_positions.weight)
    ours.target_embedding.positions.weight.copy_(theirs.model.decoder.embed_positions.weight)
    for our_block, their_layer in [
        *zip(ours.encoder, theirs.model.encoder.layers, strict=True),
        *zip(ours.decoder, theirs.model.decoder.layers, strict=True),
    ]:
        copy_attention(our_block.attention, their_layer.self_attn)
        copy_norm(our_block.attention_sublayer.norm, their_layer.self_attn_layer_norm)
        if hasattr(our_block, "cross_attention"):
            copy_attention(our_block.cross_attention, their_layer.encoder_attn)
            copy_norm(our_block.cross_attention_sublayer.norm, their_layer.encoder_attn_layer_norm)
        our_block.feed_forward.inner.load_state_dict(their_layer.fc1.state_dict())
        our_block.feed_forward.outer.load_state_dict(their_layer.fc2.state_dict())
        copy_norm(our_block.feed_forward_sublayer.norm, their_layer.final_layer_norm)


def test_logits_equal_those_of_marian() -> None:
    config = transformers.MarianConfig(
        vocab_size=13,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=24,
        dropout=0.0,
        init_std=0.3,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    torch.manual_seed(0)
    marian = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, value in marian.named_parameters():  # initial biases of 0 and norm weights of 1 would hide errors
            if "positions" not in name:
                value.add_(0.1 * torch.randn_like(value))
    model = Transformer(
        small(width=32, n_heads=4, feed_forward_width=48, attention_bias=True, positions="learned")
    ).eval()
    copy_marian(model, marian)

    ours = model(SOURCE, TARGET, source_is_real=SOURCE_REAL, target_is_real=TARGET_REAL)
    theirs = marian(
        input_ids=SOURCE,
        attention_mask=SOURCE_REAL.long(),
        decoder_input_ids=TARGET,
        decoder_attention_mask=TARGET_REAL.long(),
        use_cache=False,
    ).logits
    assert theirs.std() > 1
    assert largest_difference(ours[TARGET_REAL], theirs[TARGET_REAL]) <= 1e-4
