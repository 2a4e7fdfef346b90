"""Encoder–decoders: Marian, BART and mBART, Pegasus, M2M100, T5."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import BundleError
from manyheads.interop.checkpoint_files import Config
from manyheads.interop.encoder_families import ACTIVATIONS
from manyheads.interop.import_plan import Family, Head, Plan
from manyheads.interop.tokenizer_import import Roles
from manyheads.messages import _

_STACKS = (("encoder", "source"), ("decoder", "target"))
_BLOCK = {
    "attention.project.query": "self_attn.q_proj",
    "attention.project.key": "self_attn.k_proj",
    "attention.project.value": "self_attn.v_proj",
    "attention.output": "self_attn.out_proj",
    "attention_sublayer.norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_sublayer.norm": "final_layer_norm",
}
_CROSS = {
    "cross_attention.project.query": "encoder_attn.q_proj",
    "cross_attention.project.key": "encoder_attn.k_proj",
    "cross_attention.project.value": "encoder_attn.v_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "cross_attention_sublayer.norm": "encoder_attn_layer_norm",
}


def _bart_settings(**own: Any) -> Callable[[Config], dict[str, Any]]:
    """The settings of a class of BART's kind; `own` is what its classes differ in."""

    def settings(config: Config) -> dict[str, Any]:
        n_heads, inner = config.integer("encoder_attention_heads"), config.integer("encoder_ffn_dim")
        config.require("decoder_attention_heads", n_heads)
        config.require("decoder_ffn_dim", inner)
        return {
            "shape": "encoder-decoder",
            "width": config.integer("d_model"),
            "n_encoder_layers": config.integer("encoder_layers"),
            "n_decoder_layers": config.integer("decoder_layers"),
            "n_heads": n_heads,
            "feed_forward_width": inner,
            "activation": config.choice("activation_function", known=ACTIVATIONS, default="gelu"),
            "max_length": config.integer("max_position_embeddings"),
            "dropout": config.number("dropout", default=0.1),
            "attention_dropout": config.number("attention_dropout", default=0.0),
            "positions": "learned",
            "attention_bias": True,
            "scale_embedding": config.flag("scale_embedding", default=False),
            "tie_source_target": config.flag("share_encoder_decoder_embeddings", default=True),
            "tie_output": config.flag("tie_word_embeddings", default=True),
            "output_bias": True,
            **own,
        }

    return settings


def _bart_plan(positions: Callable[[Config, int, int], Tensor] | None) -> Callable[[Config, Plan], None]:
    """The plan of a class of BART's kind; its positions are learned unless there is a table of them."""

    def plan_of(config: Config, plan: Plan) -> None:
        settings = plan.settings
        for stack, side in _STACKS:
            if stack == "encoder" or not settings.tie_source_target:
                name = plan.first("shared.weight", f"{stack}.embed_tokens.weight", "decoder.embed_tokens.weight")
                plan.tokens(f"{side}_embedding.token_embedding.weight", name)
            ours = f"{side}_embedding.positions.weight"
            if positions is None:
                shape = (settings.max_length + 2, settings.width)
                plan.put(ours, f"{stack}.embed_positions.weight", shapes=(shape,), make=lambda rows: rows[2:])
            else:
                plan.put(ours, make=lambda: positions(config, settings.max_length, settings.width))
            if settings.embedding_norm:
                plan.pair(f"{side}_embedding.norm", f"{stack}.layernorm_embedding")
            n_layers = settings.n_encoder_layers if stack == "encoder" else settings.n_decoder_layers
            for layer in range(n_layers):
                for name, theirs in (_BLOCK if stack == "encoder" else {**_BLOCK, **_CROSS}).items():
                    plan.pair(f"{stack}.{layer}.{name}", f"{stack}.layers.{layer}.{theirs}")
            if settings.norm_placement == "pre":
                plan.pair(f"{stack}_norm", f"{stack}.layer_norm")
        _output(plan)

    return plan_of


def _output(plan: Plan) -> None:
    """The output layer; not every class has final_logits_bias."""
    bias = "final_logits_bias"
    if bias in plan.available:
        shape = (1, len(plan.numbering.ours))
        plan.put_head("output.bias", bias, shapes=(shape,), make=plan.output_bias)
    else:
        plan.put("output.bias", make=plan.output_bias)
    if not plan.settings.tie_output:
        plan.tokens("output.token_embedding.weight", "lm_head.weight", is_full_name=True)


def _marian_positions(config: Config, n_positions: int, width: int) -> Tensor:
    """Sinusoids with all sines before all cosines."""
    pairs = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(n_positions, dtype=torch.float64)[:, None] * pairs
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


def _m2m_positions(config: Config, n_positions: int, width: int) -> Tensor:
    """Sinusoids of fairseq, which numbers positions after the id of the padding token."""
    half, first = width // 2, config.integer("pad_token_id", default=1) + 1
    pairs = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10_000.0) / (half - 1)))
    angles = torch.arange(first, n_positions + first, dtype=torch.float64)[:, None] * pairs
    table = torch.cat([angles.sin(), angles.cos()], dim=1)
    return torch.nn.functional.pad(table, (0, width % 2)).float()


def _roles(config: Config) -> Roles:
    return Roles(
        pad=("pad_token", "pad_token_id"),
        mask=("unk_token", "unk_token_id"),
        bos=("decoder_start_token_id",),
        eos=("eos_token", "eos_token_id"),
        leads=("forced_bos_token_id",),
    )


def _bart_roles(config: Config) -> Roles:
    return replace(_roles(config), opens=("bos_token", "bos_token_id"))


def _t5_roles(config: Config) -> Roles:
    return replace(_roles(config), has_pieces=True)


def _language_roles(config: Config) -> Roles:
    """Of models of many languages: the one to write comes first in every output."""
    if not isinstance(config.table.get("forced_bos_token_id"), int):
        raise BundleError(
            _(
                "{path}: this model writes several languages. Set forced_bos_token_id to the id of the token of the "
                "language to write.",
                path=config.path,
            )
        )
    return _roles(config)


def _t5_settings(config: Config) -> dict[str, Any]:
    feed_forward = config.text("feed_forward_proj", default="relu")
    known = {"relu": "relu", "gated-gelu": "geglu-tanh", "gated-silu": "swiglu", "gelu": "gelu"}
    n_layers = config.integer("num_layers")
    return {
        "shape": "encoder-decoder",
        "width": config.integer("d_model"),
        "n_encoder_layers": n_layers,
        "n_decoder_layers": config.integer("num_decoder_layers", default=n_layers),
        "n_heads": config.integer("num_heads"),
        "head_width": config.integer("d_kv"),
        "feed_forward_width": config.integer("d_ff"),
        "feed_forward_bias": False,
        "activation": config.choice("feed_forward_proj", known=known, default=feed_forward),
        "max_length": config.integer("n_positions", default=512),
        "norm": "rms",
        "norm_placement": "pre",
        "norm_epsilon": config.number("layer_norm_epsilon", default=1e-6),
        "dropout": config.number("dropout_rate", default=0.1),
        "positions": "none",
        "scores": "dot",
        "distance_buckets": config.integer("relative_attention_num_buckets", default=32),
        "max_distance": config.integer("relative_attention_max_distance", default=128),
        "scale_embedding": False,
        "tie_output": "lm_head.weight" not in config.tensors,  # tie_word_embeddings has meant two things
        "output_bias": True,
    }


def _t5_plan(config: Config, plan: Plan) -> None:
    settings = plan.settings
    plan.tokens("source_embedding.token_embedding.weight", plan.first("shared.weight", "encoder.embed_tokens.weight"))
    for stack in ("encoder", "decoder"):
        n_layers = settings.n_encoder_layers if stack == "encoder" else settings.n_decoder_layers
        for layer in range(n_layers):
            _t5_block(plan, f"{stack}.{layer}", f"{stack}.block.{layer}.layer", has_cross=stack == "decoder")
            plan.put(
                f"{stack}.{layer}.attention.positions.weight",
                f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                shapes=((settings.distance_buckets, settings.n_heads),),
                make=lambda table: table.T,
            )
        # T5 divides the input of its output layer by √width, which the weight of the last norm does here.
        is_scaled = stack == "decoder" and _divides_output(config)
        factor = settings.width**-0.5 if is_scaled else 1.0
        theirs = f"{stack}.final_layer_norm.weight"
        plan.put(f"{stack}_norm.weight", theirs, shapes=((settings.width,),), make=_times(factor))
    _output(plan)


def _divides_output(config: Config) -> bool:
    is_tied = config.flag("tie_word_embeddings", default=True) and config.text("model_type") == "t5"
    return config.flag("scale_decoder_outputs", default=is_tied)


def _t5_block(plan: Plan, ours: str, theirs: str, *, has_cross: bool) -> None:
    uses = [("attention", "SelfAttention"), ("cross_attention", "EncDecAttention")][: 1 + has_cross]
    for number, (name, other) in enumerate(uses):
        for ours_part, part in (("project.query", "q"), ("project.key", "k"), ("project.value", "v"), ("output", "o")):
            plan.pair(f"{ours}.{name}.{ours_part}", f"{theirs}.{number}.{other}.{part}", bias=False)
        plan.pair(f"{ours}.{name}_sublayer.norm", f"{theirs}.{number}.layer_norm", bias=False)
    last = f"{theirs}.{len(uses)}"
    names = {"gate": "wi_0", "inner": "wi_1"} if plan.settings.has_gated_feed_forward else {"inner": "wi"}
    for name, other in {**names, "outer": "wo"}.items():
        plan.pair(f"{ours}.feed_forward.{name}", f"{last}.DenseReluDense.{other}", bias=False)
    plan.pair(f"{ours}.feed_forward_sublayer.norm", f"{last}.layer_norm", bias=False)


def _times(factor: float) -> Callable[[Tensor], Tensor]:
    return lambda weight: weight * factor


def _translation(config: Config) -> dict[str, Any]:
    return {"purpose": "translation"}


def _any_text(config: Config) -> dict[str, Any]:
    return {"purpose": "summary"}  # a text is read as a whole, not sentence by sentence


_IGNORED = (r"embed_positions\.weight$", r"embed_tokens\.weight$", r"^lm_head\.weight$")
_POST: dict[str, Any] = {"norm_placement": "post"}
_PRE: dict[str, Any] = {"norm_placement": "pre"}


def _bart(
    name: str,
    own: dict[str, Any],
    positions: Callable[[Config, int, int], Tensor] | None = None,
    *,
    head: Callable[[Config], dict[str, Any]] = _any_text,
    roles: Callable[[Config], Roles] = _roles,
) -> Family:
    heads = {name: Head("seq2seq", settings=head)}
    return Family(heads, "model.", _bart_settings(**own), _bart_plan(positions), roles, _IGNORED)


_T5 = Head("seq2seq", settings=_any_text)
SEQ2SEQ = {
    "marian": _bart("MarianMTModel", _POST, _marian_positions, head=_translation),
    "bart": _bart("BartForConditionalGeneration", {**_POST, "embedding_norm": True}, roles=_bart_roles),
    "mbart": _bart("MBartForConditionalGeneration", {**_PRE, "embedding_norm": True}, roles=_language_roles),
    "pegasus": _bart("PegasusForConditionalGeneration", _PRE, _marian_positions),
    "m2m_100": _bart("M2M100ForConditionalGeneration", _PRE, _m2m_positions, head=_translation, roles=_language_roles),
    "t5": Family({"T5ForConditionalGeneration": _T5}, "", _t5_settings, _t5_plan, _t5_roles, _IGNORED),
    "mt5": Family({"MT5ForConditionalGeneration": _T5}, "", _t5_settings, _t5_plan, _t5_roles, _IGNORED),
}
