"""Export to CTranslate2: the weights of a model in CTranslate2's format, computing the same function.

Weights are written as float32; CTranslate2 can quantize them when it loads them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.bundle import Bundle
from manyheads.decode import SpecialTokens
from manyheads.errors import BundleError, EngineError
from manyheads.messages import _
from manyheads.model import ModelSettings, MultiHeadAttention, Transformer
from manyheads.model.blocks import DecoderBlock, EncoderBlock
from manyheads.model.embedding import Embedding
from manyheads.model.feed_forward import FeedForward, GatedFeedForward
from manyheads.model.norms import LayerNorm, RMSNorm
from manyheads.model.projections import SeparateProjections
from manyheads.storage import atomic_folder
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK

Linear = tuple[Tensor, Tensor | None]  # weight and bias

# Supported by both the encoder and the decoder of CTranslate2; ALiBi, for example, is decoder-only there.
_KNOWN = {
    "shape": ("encoder-decoder",),
    "scores": ("scaled-dot",),
    "projections": ("separate",),
    "positions": ("sinusoidal", "learned", "rotary", "none"),
    "norm": ("layer", "rms"),
    "activation": ("relu", "gelu", "swiglu"),
}


def find_unsupported(settings: ModelSettings) -> list[str]:
    """The settings that CTranslate2 does not support."""
    unknown = [
        f'model.{name} = "{getattr(settings, name)}"'
        for name, known in _KNOWN.items()
        if getattr(settings, name) not in known
    ]
    if settings.heads.value_width != settings.heads.head_width:
        unknown.append(
            _(
                "model.value_width = {value_width} with model.head_width = {head_width}",
                value_width=settings.heads.value_width,
                head_width=settings.heads.head_width,
            )
        )
    unknown += settings.extensions
    if settings.kept_heads:
        unknown.append(_("model.kept_heads (pruned heads)"))
    return unknown


def export_bundle(bundle: Bundle, path: Path | str) -> None:
    """Write a bundle as a CTranslate2 model with its SentencePiece model, atomically.

    The model appends EOS to every source, so the tokens of `SentencePieceProcessor.encode(text, out_type=str)` can be
    passed to `Translator.translate_batch` as they are.
    """
    if bundle.task.shape != "encoder-decoder":
        raise BundleError(
            _("Only seq2seq bundles can be exported to CTranslate2; this bundle is of task {kind}.", kind=bundle.kind)
        )
    tokenizer = bundle.task.tokenizer
    special_tokens = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK, BOS))
    tokens = [tokenizer.id_to_token(token_id) for token_id in range(tokenizer.vocab_size)]
    with atomic_folder(Path(path)) as folder:
        export_ctranslate2(bundle.task.model, special_tokens, folder, tokens, add_source_eos=True)
        (folder / "tokenizer.model").write_bytes(tokenizer.to_bytes())


def export_ctranslate2(
    model: Transformer,
    special_tokens: SpecialTokens,
    folder: Path,
    tokens: Sequence[str],
    *,
    add_source_eos: bool = False,
) -> None:
    """Write model.bin, config.json and the vocabularies into a folder; `tokens` are the texts of the ids."""
    try:
        from ctranslate2 import __version__
        from ctranslate2.specs import TransformerSpec
    except ImportError as error:
        raise EngineError(
            _(
                "The package ctranslate2 is not installed ({error}). Install it: pip install 'manyheads[ctranslate2]'",
                error=error,
            )
        ) from None
    settings = model.settings
    if unknown := find_unsupported(settings):
        raise EngineError(_("CTranslate2 does not support {settings}.", settings=", ".join(unknown)))
    try:
        specification = TransformerSpec(*_make_stacks(settings))
    except TypeError as error:  # older versions have fewer options
        raise EngineError(
            _(
                'ctranslate2 {version} does not support model.positions = "{positions}" with a head width of '
                "{head_width} ({error}). Upgrade: pip install -U ctranslate2",
                version=__version__,
                positions=settings.positions,
                head_width=settings.heads.head_width,
                error=error,
            )
        ) from None
    with torch.no_grad():
        _fill_encoder(specification.encoder, model)
        _fill_decoder(specification.decoder, model)

    config = specification.config
    config.layer_norm_epsilon = settings.norm_epsilon
    config.add_source_eos = add_source_eos
    config.bos_token = config.decoder_start_token = tokens[special_tokens.bos]
    config.eos_token, config.unk_token = tokens[special_tokens.eos], tokens[special_tokens.pad]
    specification.register_source_vocabulary(list(tokens))
    specification.register_target_vocabulary(list(tokens))
    specification.validate()
    specification.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    specification.save(str(folder))


def _make_stacks(settings: ModelSettings) -> list[Any]:
    """The specifications of encoder and decoder, without weights."""
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
        query, key, value, output = attention_projections(block.cross_attention)
        for linear, rows in zip(layer.attention.linear, ([query], [key, value], [output]), strict=True):
            _fill_linear(linear, *rows)
        _fill_norm(layer.attention.layer_norm, block.cross_attention_sublayer.norm)
        _fill_feed_forward(layer.ffn, block)
    if model.settings.norm_placement == "pre":
        _fill_norm(specification.layer_norm, model.decoder_norm)
    specification.projection.weight = _array(model.output.weight)


def _fill_embedding(stack: Any, specification: Any, embedding: Embedding, settings: ModelSettings) -> None:
    specification.weight = _array(embedding.token_embedding.weight)
    stack.scale_embeddings = settings.scale_embedding
    if settings.positions != "rotary":
        # Without a table CTranslate2 adds its own sinusoids, whose columns are in another order.
        positions = torch.arange(settings.max_length, device=embedding.token_embedding.weight.device)[None]
        table = embedding.positions(positions)[0].expand(-1, settings.width)
        # One more position: CTranslate2's scoring also reads the last id of a target.
        stack.position_encodings.encodings = _array(nn.functional.pad(table, (0, 0, 0, 1)))


def _fill_self_attention(specification: Any, block: EncoderBlock | DecoderBlock) -> None:
    *inputs, output = attention_projections(block.attention)
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


def attention_projections(attention: nn.Module) -> list[Linear]:
    """W^Q, W^K, W^V and W^O with their biases; key heads that several heads share are repeated for each."""
    assert isinstance(attention, MultiHeadAttention) and isinstance(attention.output, nn.Linear)
    project = attention.project
    assert isinstance(project, SeparateProjections) and project.query is not None and project.key is not None
    linears = (project.query, project.key, project.value, attention.output)
    query, key, value, output = ((linear.weight, linear.bias) for linear in linears)
    return [query, _repeat_for_heads(key, attention), _repeat_for_heads(value, attention), output]


def _repeat_for_heads(linear: Linear, attention: MultiHeadAttention) -> Linear:
    weight, bias = (
        None
        if rows is None
        else rows.unflatten(0, (len(attention.groups), -1)).repeat_interleave(attention.groups, dim=0).flatten(0, 1)
        for rows in linear
    )
    assert weight is not None
    return weight, bias


def _fill_linear(specification: Any, *parts: Linear) -> None:
    """Concatenate the rows of several projections into one."""
    specification.weight = _array(torch.cat([weight for weight, _ in parts]))
    biases = [bias for _, bias in parts if bias is not None]
    if biases:
        specification.bias = _array(torch.cat(biases))


def _fill_norm(specification: Any, norm: nn.Module) -> None:
    assert isinstance(norm, LayerNorm | RMSNorm)
    specification.gamma = _array(norm.weight)
    if isinstance(norm, LayerNorm):
        specification.beta = _array(norm.bias)


def _array(values: Tensor) -> Any:
    return values.detach().float().cpu().contiguous().numpy()
