"""Our weights in CTranslate2's model format: the same function, number for number.

Everything is written as float32; what is to be
computed in int8 is quantised when it is loaded.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.decode.engines import SpecialTokens
from manyheads.errors import EngineError
from manyheads.model import ModelSettings, MultiHeadAttention, Transformer
from manyheads.model.blocks import DecoderBlock, EncoderBlock
from manyheads.model.embedding import Embedding
from manyheads.model.feed_forward import FeedForward, GatedFeedForward
from manyheads.model.norms import LayerNorm, RMSNorm
from manyheads.model.projections import SeparateProjections

Linear = tuple[Tensor, Tensor | None]  # weight and bias

FORMAT = 1  # raised when the same model would be written differently

# What CTranslate2's encoder and decoder can both do; ALiBi, for instance, only its decoder can.
_KNOWN = {
    "shape": ("encoder-decoder",),
    "scores": ("scaled-dot",),
    "projections": ("separate",),
    "positions": ("sinusoidal", "learned", "rotary", "none"),
    "norm": ("layer", "rms"),
}


def find_unsupported(settings: ModelSettings) -> list[str]:
    """The settings that CTranslate2 has no counterpart of."""
    unknown = [
        f'model.{name} = "{getattr(settings, name)}"'
        for name, known in _KNOWN.items()
        if getattr(settings, name) not in known
    ]
    if settings.heads.value_width != settings.heads.head_width:
        unknown.append(f"model.value_width = {settings.heads.value_width} beside {settings.heads.head_width} of a key")
    if settings.kept_heads:
        unknown.append("model.kept_heads (pruned heads)")
    return unknown


def source_tokens(vocab_size: int) -> list[str]:
    """The tokens that sources are made of.

    They are not the target's: CTranslate2 would know EOS among them, and not even read a source that is EOS alone.
    """
    return [f"source {number}" for number in range(vocab_size)]


def target_tokens(vocab_size: int) -> list[str]:
    """The tokens that are written."""
    return [str(number) for number in range(vocab_size)]


def export(model: Transformer, special_tokens: SpecialTokens, folder: Path) -> None:
    """Write model.bin, config.json and the vocabulary into a folder."""
    from ctranslate2 import __version__
    from ctranslate2.specs import TransformerSpec

    settings = model.settings
    if unknown := find_unsupported(settings):
        raise EngineError(f"The ctranslate2 engine does not know {', '.join(unknown)}.")
    try:
        specification = TransformerSpec(*_make_stacks(settings))
    except TypeError as reason:  # older ones know less
        raise EngineError(
            f'ctranslate2 {__version__} does not know model.positions = "{settings.positions}" with heads of '
            f"{settings.heads.head_width} ({reason}). Upgrade: pip install -U ctranslate2"
        ) from None
    with torch.no_grad():
        _fill_encoder(specification.encoder, model)
        _fill_decoder(specification.decoder, model)

    config = specification.config
    config.layer_norm_epsilon = settings.norm_epsilon
    config.bos_token = config.decoder_start_token = str(special_tokens.bos)
    config.eos_token, config.unk_token = str(special_tokens.eos), str(special_tokens.pad)
    specification.register_source_vocabulary(source_tokens(settings.vocab_size))
    specification.register_target_vocabulary(target_tokens(settings.vocab_size))
    specification.validate()
    specification.optimize()
    specification.save(str(folder))


def _make_stacks(settings: ModelSettings) -> list[Any]:
    """Encoder and decoder without their weights."""
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec

    activations = {"relu": Activation.RELU, "gelu": Activation.GELU, "swiglu": Activation.SWISH}
    options: dict[str, Any] = {
        "pre_norm": settings.norm_placement == "pre",
        "activation": activations[settings.activation],
        "ffn_glu": settings.activation == "swiglu",
        "rms_norm": settings.norm == "rms",
    }
    if settings.positions == "rotary":
        options |= {"rotary_dim": settings.heads.head_width, "rotary_interleave": True}
    if settings.n_heads * settings.heads.head_width != settings.width:
        options["head_dim"] = settings.heads.head_width
    return [
        TransformerEncoderSpec(settings.n_encoder_layers, settings.n_heads, **options),
        TransformerDecoderSpec(settings.n_decoder_layers, settings.n_heads, **options),
    ]


def _fill_encoder(specification: Any, model: Transformer) -> None:
    _fill_embedding(specification, specification.embeddings[0], model.source_embedding, model.settings)
    for layer, block in zip(specification.layer, model.encoder, strict=True):
        assert isinstance(block, EncoderBlock)
        _fill_self_attention(layer.self_attention, block)
        _fill_feed_forward(layer.ffn, block)
    if model.settings.norm_placement == "pre":
        _fill_norm(specification.layer_norm, model.encoder_norm)


def _fill_decoder(specification: Any, model: Transformer) -> None:
    _fill_embedding(specification, specification.embeddings, model.target_embedding, model.settings)
    for layer, block in zip(specification.layer, model.decoder, strict=True):
        assert isinstance(block, DecoderBlock)
        _fill_self_attention(layer.self_attention, block)
        query, key, value, output = _projections(block.cross_attention)
        for linear, rows in zip(layer.attention.linear, ([query], [key, value], [output]), strict=True):
            _fill_linear(linear, *rows)
        _fill_norm(layer.attention.layer_norm, block.cross_attention_sublayer.norm)
        _fill_feed_forward(layer.ffn, block)
    if model.settings.norm_placement == "pre":
        _fill_norm(specification.layer_norm, model.decoder_norm)
    specification.projection.weight = _numbers(model.output.weight)


def _fill_embedding(stack: Any, specification: Any, embedding: Embedding, settings: ModelSettings) -> None:
    specification.weight = _numbers(embedding.token_embedding.weight)
    stack.scale_embeddings = settings.scale_embedding
    if settings.positions != "rotary":
        # A table always: without one CTranslate2 adds sines of its own, which stand in another order.
        places = torch.arange(settings.max_length, device=embedding.token_embedding.weight.device)[None]
        table = embedding.positions(places)[0].expand(-1, settings.width)
        # One place more: where an answer is scored its last id is read too, though nothing is asked of what follows.
        stack.position_encodings.encodings = _numbers(nn.functional.pad(table, (0, 0, 0, 1)))


def _fill_self_attention(specification: Any, block: EncoderBlock | DecoderBlock) -> None:
    *inputs, output = _projections(block.attention)
    _fill_linear(specification.linear[0], *inputs)
    _fill_linear(specification.linear[1], output)
    _fill_norm(specification.layer_norm, block.attention_sublayer.norm)


def _fill_feed_forward(specification: Any, block: EncoderBlock | DecoderBlock) -> None:
    network = block.feed_forward
    assert isinstance(network, FeedForward | GatedFeedForward)
    first = network.inner
    if isinstance(network, GatedFeedForward):
        _fill_linear(specification.linear_0_noact, (network.inner.weight, network.inner.bias))
        first = network.gate
    _fill_linear(specification.linear_0, (first.weight, first.bias))
    _fill_linear(specification.linear_1, (network.outer.weight, network.outer.bias))
    _fill_norm(specification.layer_norm, block.feed_forward_sublayer.norm)


def _projections(attention: nn.Module) -> list[Linear]:
    """W^Q, W^K, W^V and W^O with their biases; keys and values that several heads read are written once for each."""
    assert isinstance(attention, MultiHeadAttention) and isinstance(attention.output, nn.Linear)
    project = attention.project
    assert isinstance(project, SeparateProjections) and project.query is not None and project.key is not None
    linears = (project.query, project.key, project.value, attention.output)
    query, key, value, output = ((linear.weight, linear.bias) for linear in linears)
    return [query, _for_every_head(key, attention), _for_every_head(value, attention), output]


def _for_every_head(linear: Linear, attention: MultiHeadAttention) -> Linear:
    weight, bias = (
        None
        if rows is None
        else rows.unflatten(0, (len(attention.groups), -1)).repeat_interleave(attention.groups, dim=0).flatten(0, 1)
        for rows in linear
    )
    assert weight is not None
    return weight, bias


def _fill_linear(specification: Any, *parts: Linear) -> None:
    """One matrix of several, their rows one below the other."""
    specification.weight = _numbers(torch.cat([weight for weight, _ in parts]))
    biases = [bias for _, bias in parts if bias is not None]
    if biases:
        specification.bias = _numbers(torch.cat(biases))


def _fill_norm(specification: Any, norm: nn.Module) -> None:
    assert isinstance(norm, LayerNorm | RMSNorm)
    specification.gamma = _numbers(norm.weight)
    if isinstance(norm, LayerNorm):
        specification.beta = _numbers(norm.bias)


def _numbers(values: Tensor) -> Any:
    return values.detach().float().cpu().contiguous().numpy()
