"""Decoders: GPT-2, and Llama with its relatives Mistral, Qwen 2 and Qwen 3."""

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


def _gpt2_settings(config: Config) -> dict[str, Any]:
    config.require("scale_attn_weights", True)
    config.require("scale_attn_by_inverse_layer_idx", False)
    config.require("add_cross_attention", False)
    width = config.integer("n_embd")
    return {
        "shape": "decoder",
        "width": width,
        "n_decoder_layers": config.integer("n_layer"),
        "n_heads": config.integer("n_head"),
        "feed_forward_width": config.integer("n_inner", default=4 * width),
        "activation": config.choice("activation_function", known=ACTIVATIONS, default="gelu_new"),
        "max_length": config.integer("n_positions", "n_ctx", default=1024),
        "norm_epsilon": config.number("layer_norm_epsilon", default=1e-5),
        "dropout": config.number("resid_pdrop", default=0.1),
        "attention_dropout": config.number("attn_pdrop", default=0.1),
        "positions": "learned",
        "norm_placement": "pre",
        "attention_bias": True,
        "scale_embedding": False,
        "tie_output": config.flag("tie_word_embeddings", default=True),
        "output_bias": True,
    }


def _gpt2_plan(config: Config, plan: Plan) -> None:
    width = plan.settings.width
    plan.tokens("target_embedding.token_embedding.weight", "wte.weight")
    plan.put("target_embedding.positions.weight", "wpe.weight")
    for layer in range(plan.settings.n_decoder_layers):
        ours, theirs = f"decoder.{layer}", f"h.{layer}"
        for number, name in enumerate(("query", "key", "value")):
            for part, shape in (("weight", (width, 3 * width)), ("bias", (3 * width,))):
                plan.put(
                    f"{ours}.attention.project.{name}.{part}",
                    f"{theirs}.attn.c_attn.{part}",
                    shapes=(shape,),
                    make=_third(number),
                )
        inner = plan.settings.feed_forward_width
        for name, other, sizes in (
            ("attention.output", "attn.c_proj", (width, width)),
            ("feed_forward.inner", "mlp.c_fc", (width, inner)),
            ("feed_forward.outer", "mlp.c_proj", (inner, width)),
        ):
            plan.put(f"{ours}.{name}.weight", f"{theirs}.{other}.weight", shapes=(sizes,), make=_transpose)
            plan.put(f"{ours}.{name}.bias", f"{theirs}.{other}.bias")
        plan.pair(f"{ours}.attention_sublayer.norm", f"{theirs}.ln_1")
        plan.pair(f"{ours}.feed_forward_sublayer.norm", f"{theirs}.ln_2")
    plan.pair("decoder_norm", "ln_f")
    _output(plan)


def _third(number: int) -> Callable[[Tensor], Tensor]:
    """Queries, keys or values of a matrix that has them side by side; GPT-2 stores its matrices transposed."""
    return lambda rows: rows.T.chunk(3)[number] if rows.dim() == 2 else rows.chunk(3)[number]


def _transpose(matrix: Tensor) -> Tensor:
    return matrix.T


def _output(plan: Plan) -> None:
    """The output layer: its own matrix unless it is the embedding, and a bias for ids that are never generated."""
    plan.put("output.bias", make=plan.output_bias)
    if not plan.settings.tie_output:
        plan.tokens("output.token_embedding.weight", "lm_head.weight", is_full_name=True)


def _llama_settings(config: Config) -> dict[str, Any]:
    n_heads, width = config.integer("num_attention_heads"), config.integer("hidden_size")
    head_width = config.integer("head_dim", default=width // max(1, n_heads))
    config.require("hidden_act", "silu", "swish")
    max_length = config.integer("max_position_embeddings", default=2048)
    window = config.table.get("sliding_window")
    if isinstance(window, int) and config.flag("use_sliding_window", default=True):
        max_length = min(max_length, window)  # within one window, every position sees all before it
    base, scaling = rotary(config, head_width)
    kind = config.text("model_type")
    return {
        "shape": "decoder",
        "width": width,
        "n_decoder_layers": config.integer("num_hidden_layers"),
        "n_heads": n_heads,
        "n_key_heads": config.integer("num_key_value_heads", default=n_heads),
        "head_width": head_width,
        "feed_forward_width": config.integer("intermediate_size"),
        "activation": "swiglu",
        "feed_forward_bias": config.flag("mlp_bias", default=False),
        "max_length": max_length,
        "norm": "rms",
        "norm_placement": "pre",
        "norm_epsilon": config.number("rms_norm_eps", default=1e-6),
        "dropout": 0.0,
        "attention_dropout": config.number("attention_dropout", default=0.0),
        "positions": "rotary",
        "rotary_base": base,
        "rotary_scaling": scaling,
        "attention_bias": kind == "qwen2" or config.flag("attention_bias", default=False),
        "query_key_norm": kind == "qwen3",
        "scale_embedding": False,
        "tie_output": config.flag("tie_word_embeddings", default=False),
        "output_bias": True,
    }


def rotary(config: Config, head_width: int) -> tuple[float, tuple[float, ...]]:
    """The base of the rotary angles, and the factor of each pair's angle."""
    table = config.table.get("rope_parameters") or config.table.get("rope_scaling") or {}
    if not isinstance(table, dict):
        raise BundleError(_("{path}: rope_scaling is not an object.", path=config.path))
    own = Config(config.path, table)
    base = own.number("rope_theta", default=config.number("rope_theta", default=10_000.0))
    kind = own.text("rope_type", "type", default="default")
    config.require("partial_rotary_factor", 1.0, 1)
    pairs = torch.arange(0, head_width, 2, dtype=torch.float64)
    frequencies = base ** (-pairs / head_width)
    if kind == "default":
        return base, ()
    if kind == "linear":
        return base, (1.0 / own.number("factor"),) * len(pairs)
    if kind == "llama3":
        factor, low, high = (own.number(name) for name in ("factor", "low_freq_factor", "high_freq_factor"))
        length = own.number("original_max_position_embeddings")
        wavelengths = 2 * math.pi / frequencies
        # Between the two wavelengths the factor goes over smoothly from 1 / factor to 1.
        smooth = ((length / wavelengths - low) / (high - low)).clamp(0.0, 1.0)
        return base, tuple(((1 - smooth) / factor + smooth).tolist())
    raise BundleError(
        _(
            "{path}: rope_type = {kind} cannot be imported: only default, linear and llama3.",
            path=config.path,
            kind=repr(kind),
        )
    )


def _llama_plan(config: Config, plan: Plan) -> None:
    settings, heads = plan.settings, plan.settings.heads
    bias = settings.attention_bias
    plan.tokens("target_embedding.token_embedding.weight", "embed_tokens.weight")
    for layer in range(settings.n_decoder_layers):
        ours, theirs = f"decoder.{layer}", f"layers.{layer}"
        for name, other, n_heads in (
            ("query", "self_attn.q_proj", heads.n_heads),
            ("key", "self_attn.k_proj", heads.n_key_heads),
        ):
            size = n_heads * heads.head_width
            for part, shape in (("weight", (size, settings.width)), ("bias", (size,))):
                if part == "weight" or bias:
                    plan.put(
                        f"{ours}.attention.project.{name}.{part}",
                        f"{theirs}.{other}.{part}",
                        shapes=(shape,),
                        make=neighbors(n_heads),
                    )
        plan.pair(f"{ours}.attention.project.value", f"{theirs}.self_attn.v_proj", bias=bias)
        plan.pair(f"{ours}.attention.output", f"{theirs}.self_attn.o_proj", bias=_has_output_bias(config))
        if bias and not _has_output_bias(config):
            plan.zeros(f"{ours}.attention.output.bias", settings.width)
        if settings.query_key_norm:
            for name, other in (("query_norm", "q_norm"), ("key_norm", "k_norm")):
                plan.put(
                    f"{ours}.attention.project.{name}.weight",
                    f"{theirs}.self_attn.{other}.weight",
                    shapes=((heads.head_width,),),
                    make=neighbors(1),
                )
        for name, other in (("gate", "gate_proj"), ("inner", "up_proj"), ("outer", "down_proj")):
            plan.pair(f"{ours}.feed_forward.{name}", f"{theirs}.mlp.{other}", bias=settings.feed_forward_bias)
        plan.pair(f"{ours}.attention_sublayer.norm", f"{theirs}.input_layernorm", bias=False)
        plan.pair(f"{ours}.feed_forward_sublayer.norm", f"{theirs}.post_attention_layernorm", bias=False)
    plan.pair("decoder_norm", "norm", bias=False)
    _output(plan)


def _has_output_bias(config: Config) -> bool:
    return config.text("model_type") != "qwen2" and config.flag("attention_bias", default=False)


def neighbors(n_heads: int) -> Callable[[Tensor], Tensor]:
    """The rows of each head with its two halves interleaved: they rotate halves, we rotate neighbors."""
    return lambda rows: rows.unflatten(0, (n_heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def _gpt2_roles(config: Config) -> Roles:
    return Roles(
        pad=("pad_token",), mask=("unk_token",), bos=("bos_token", "bos_token_id"), eos=("eos_token", "eos_token_id")
    )


_IGNORED = (r"\.attn\.(masked_)?bias$", r"rotary_emb\.inv_freq$", r"^lm_head\.weight$")


def _llama_roles(config: Config) -> Roles:
    return replace(_gpt2_roles(config), has_pieces=True)


def _llama(name: str) -> Family:
    heads = {f"{name}ForCausalLM": Head("language"), f"{name}Model": Head("language")}
    return Family(heads, "model.", _llama_settings, _llama_plan, _llama_roles, _IGNORED)


DECODERS = {
    "gpt2": Family(
        {"GPT2LMHeadModel": Head("language"), "GPT2Model": Head("language")},
        "transformer.",
        _gpt2_settings,
        _gpt2_plan,
        _gpt2_roles,
        _IGNORED,
    ),
    "llama": _llama("Llama"),
    "mistral": _llama("Mistral"),
    "qwen2": _llama("Qwen2"),
    "qwen3": _llama("Qwen3"),
}
