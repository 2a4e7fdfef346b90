"""The whole model compared with `torch.nn.Transformer`, with the same weights."""

import pytest
import torch
from torch import Tensor, nn

from manyheads.model import MultiHeadAttention, Transformer, smoothed_cross_entropy

from model.makers import largest_difference, random_ids, real, shaken, small, vectors

SOURCE, TARGET = random_ids(3, 7), random_ids(3, 5, seed=1)
SOURCE_REAL, TARGET_REAL = real("xxxxxxx", "xxxx...", "x......"), real("xxxxx", "xxx..", "xxxx.")


def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    parts = ours.project.query, ours.project.key, ours.project.value
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_norm(theirs: nn.LayerNorm, ours: nn.Module) -> None:
    theirs.load_state_dict({"weight": ours.weight, "bias": ours.bias})


@torch.no_grad()
def reference_of(model: Transformer) -> nn.Transformer:
    settings = model.settings
    reference = nn.Transformer(
        settings.width,
        settings.n_heads,
        settings.n_encoder_layers,
        settings.n_decoder_layers,
        settings.feed_forward_width,
        dropout=0.0,
        activation=settings.activation,
        batch_first=True,
        norm_first=settings.norm_placement == "pre",
    )
    for theirs, ours in [
        *zip(reference.encoder.layers, model.encoder, strict=True),
        *zip(reference.decoder.layers, model.decoder, strict=True),
    ]:
        copy_attention(theirs.self_attn, ours.attention)
        norms = [ours.attention_sublayer.norm, ours.feed_forward_sublayer.norm]
        if hasattr(ours, "cross_attention"):
            copy_attention(theirs.multihead_attn, ours.cross_attention)
            norms.insert(1, ours.cross_attention_sublayer.norm)
        for number, norm in enumerate(norms, start=1):
            copy_norm(getattr(theirs, f"norm{number}"), norm)
        theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
        theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    for stack in ("encoder", "decoder"):
        if settings.norm_placement == "pre":
            copy_norm(getattr(reference, stack).norm, getattr(model, f"{stack}_norm"))
        else:
            getattr(reference, stack).norm = None  # torch adds a final norm, the paper does not
    return reference.train()  # eval mode would use another code path; dropout is 0


def reference_logits(reference: nn.Transformer, model: Transformer) -> Tensor:
    hidden = reference(
        model.source_embedding(SOURCE, torch.arange(7)[None]),
        model.target_embedding(TARGET, torch.arange(5)[None]),
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        src_key_padding_mask=~SOURCE_REAL,
        tgt_key_padding_mask=~TARGET_REAL,
        memory_key_padding_mask=~SOURCE_REAL,
    )
    return hidden @ model.output.weight.T


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but:UserWarning")
@pytest.mark.parametrize("norm_placement", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_logits_and_gradients_equal_those_of_torch(norm_placement: str, activation: str) -> None:
    settings = small(
        width=32,
        n_heads=4,
        feed_forward_width=48,
        attention_bias=True,
        norm_placement=norm_placement,
        activation=activation,
    )
    torch.manual_seed(0)
    model = shaken(Transformer(settings))
    reference = reference_of(model)
    ours = model(SOURCE, TARGET, source_is_real=SOURCE_REAL, target_is_real=TARGET_REAL)[TARGET_REAL]
    theirs = reference_logits(reference, model)[TARGET_REAL]
    assert theirs.std() > 1
    assert largest_difference(ours, theirs) <= 1e-5

    matrix = model.output.weight
    ours_back, theirs_back = (torch.autograd.grad(logits.logsumexp(-1).mean(), matrix)[0] for logits in (ours, theirs))
    assert largest_difference(ours_back, theirs_back) <= 1e-5


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_label_smoothing_equals_that_of_torch_with_its_own_epsilon(smoothing: float) -> None:
    logits, targets = vectors(6, 5), torch.tensor([0, 1, 2, 3, 4, 4])
    theirs = nn.CrossEntropyLoss(label_smoothing=smoothing * 5 / 4)(logits, targets)
    assert torch.allclose(smoothed_cross_entropy(logits, targets, smoothing), theirs)
