"""Export to Hugging Face: a folder that `transformers` loads with a class of its own, computing the same function.

`FAMILIES` holds the name of every tensor of each class. Where a class computes something else, the weights are
rewritten if an exact rewriting exists: √width is multiplied into the embedding, sinusoids become a table, rotary pairs
become halves, temperatures are divided out of the output layer. All other differences are refused together.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from manyheads.bundle import Bundle
from manyheads.errors import BundleError
from manyheads.interop.ctranslate2_export import attention_projections
from manyheads.interop.tokenizer_json import Frame, tokenizer_files
from manyheads.messages import _
from manyheads.metrics import format_score
from manyheads.model import ModelSettings, Transformer
from manyheads.storage import atomic_folder
from manyheads.tasks.classify.classify_task import Classify
from manyheads.tasks.tag.tag_task import Tag
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK

Tensors = dict[str, Tensor]
_ABSOLUTE = ("sinusoidal", "learned", "none")
_TINY = 1e-4  # tanh(x · 1e-4) = x · 1e-4 in single precision, for every component of a normalized vector
_BERT_BLOCK = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "inner": "intermediate.dense",
    "outer": "output.dense",
}
_BART_BLOCK = {
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "attention_output": "self_attn.out_proj",
    "attention_norm": "self_attn_layer_norm",
    "cross_query": "encoder_attn.q_proj",
    "cross_key": "encoder_attn.k_proj",
    "cross_value": "encoder_attn.v_proj",
    "cross_output": "encoder_attn.out_proj",
    "cross_norm": "encoder_attn_layer_norm",
    "inner": "fc1",
    "outer": "fc2",
    "feed_forward_norm": "final_layer_norm",
}


@dataclass(frozen=True)
class Family:
    """A family of classes: the names of its tensors and the settings that it can express."""

    model_type: str  # of config.json
    classes: Mapping[str, str]  # by task
    known: Mapping[str, tuple[Any, ...]]  # allowed values of model settings
    block: Mapping[str, str]  # our module of a block: theirs
    blocks: Mapping[str, str]  # our stack: the prefix of their blocks
    final_norms: Mapping[str, str]  # our stack: their last norm
    embeddings: tuple[str, ...]  # all names of the token embedding
    position_tables: tuple[str, ...] = ()
    is_transposed: bool = False  # GPT-2 stores the matrices of its linear layers transposed
    config: Mapping[str, str] = field(default_factory=dict)  # their names of sizes, where they are not BERT's


_ENCODER = {"norm": ("layer",), "norm_placement": ("pre",)}
_BART_CLASS = {"norm": ("layer",), "positions": _ABSOLUTE, "activation": ("relu", "gelu"), "tie_source_target": (True,)}
_BART_NAMES: dict[str, Any] = {
    "block": _BART_BLOCK,
    "blocks": {"encoder": "model.encoder.layers", "decoder": "model.decoder.layers"},
    "embeddings": ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens"),
    "position_tables": ("model.encoder.embed_positions", "model.decoder.embed_positions"),
}
FAMILIES = {
    "megatron-bert": Family(
        model_type="megatron-bert",
        classes={
            "classify": "MegatronBertForSequenceClassification",
            "tag": "MegatronBertForTokenClassification",
            "masked": "MegatronBertForMaskedLM",
        },
        known={**_ENCODER, "positions": _ABSOLUTE, "activation": ("relu", "gelu")},
        block={**_BERT_BLOCK, "attention_norm": "attention.ln", "feed_forward_norm": "ln"},
        blocks={"encoder": "bert.encoder.layer"},
        final_norms={"encoder": "bert.encoder.ln"},
        embeddings=("bert.embeddings.word_embeddings",),
        position_tables=("bert.embeddings.position_embeddings",),
    ),
    "esm": Family(
        model_type="esm",
        classes={
            "classify": "EsmForSequenceClassification",
            "tag": "EsmForTokenClassification",
            "masked": "EsmForMaskedLM",
        },
        known={**_ENCODER, "positions": ("rotary",), "activation": ("gelu",)},
        block={**_BERT_BLOCK, "attention_norm": "attention.LayerNorm", "feed_forward_norm": "LayerNorm"},
        blocks={"encoder": "esm.encoder.layer"},
        final_norms={"encoder": "esm.encoder.emb_layer_norm_after"},
        embeddings=("esm.embeddings.word_embeddings",),
    ),
    "gpt2": Family(
        model_type="gpt2",
        classes={"language": "GPT2LMHeadModel"},
        known={**_ENCODER, "positions": _ABSOLUTE, "activation": ("relu", "gelu")},
        block={
            "query_key_value": "attn.c_attn",
            "attention_output": "attn.c_proj",
            "inner": "mlp.c_fc",
            "outer": "mlp.c_proj",
            "attention_norm": "ln_1",
            "feed_forward_norm": "ln_2",
        },
        blocks={"decoder": "transformer.h"},
        final_norms={"decoder": "transformer.ln_f"},
        embeddings=("transformer.wte",),
        position_tables=("transformer.wpe",),
        is_transposed=True,
        config={
            "hidden_size": "n_embd",
            "num_hidden_layers": "n_layer",
            "num_attention_heads": "n_head",
            "intermediate_size": "n_inner",
            "max_position_embeddings": "n_positions",
            "hidden_act": "activation_function",
            "layer_norm_eps": "layer_norm_epsilon",
        },
    ),
    "gpt_neox": Family(
        model_type="gpt_neox",
        classes={"language": "GPTNeoXForCausalLM"},
        known={**_ENCODER, "positions": ("rotary",), "activation": ("relu", "gelu")},
        block={
            "query_key_value": "attention.query_key_value",
            "attention_output": "attention.dense",
            "inner": "mlp.dense_h_to_4h",
            "outer": "mlp.dense_4h_to_h",
            "attention_norm": "input_layernorm",
            "feed_forward_norm": "post_attention_layernorm",
        },
        blocks={"decoder": "gpt_neox.layers"},
        final_norms={"decoder": "gpt_neox.final_layer_norm"},
        embeddings=("gpt_neox.embed_in",),
    ),
    "llama": Family(
        model_type="llama",
        classes={"language": "LlamaForCausalLM"},
        known={"norm": ("rms",), "norm_placement": ("pre",), "positions": ("rotary",), "activation": ("swiglu",)},
        block={
            "query": "self_attn.q_proj",
            "key": "self_attn.k_proj",
            "value": "self_attn.v_proj",
            "attention_output": "self_attn.o_proj",
            "gate": "mlp.gate_proj",
            "inner": "mlp.up_proj",
            "outer": "mlp.down_proj",
            "attention_norm": "input_layernorm",
            "feed_forward_norm": "post_attention_layernorm",
        },
        blocks={"decoder": "model.layers"},
        final_norms={"decoder": "model.norm"},
        embeddings=("model.embed_tokens",),
        config={"layer_norm_eps": "rms_norm_eps"},
    ),
    "pegasus": Family(
        model_type="pegasus",
        classes={"seq2seq": "PegasusForConditionalGeneration"},
        known={**_BART_CLASS, "norm_placement": ("pre",)},
        final_norms={"encoder": "model.encoder.layer_norm", "decoder": "model.decoder.layer_norm"},
        **_BART_NAMES,
    ),
    "marian": Family(
        model_type="marian",
        classes={"seq2seq": "MarianMTModel"},
        known={**_BART_CLASS, "norm_placement": ("post",)},
        final_norms={},
        **_BART_NAMES,
    ),
}


def export_huggingface(bundle: Bundle, path: Path | str) -> None:
    """Write a bundle as a folder that `transformers` loads; every difference that its class has is refused at once."""
    family = family_of(bundle.task.model.settings)
    if found := differences(bundle, family):
        name = family.classes[bundle.kind]
        raise BundleError(
            _("{name} cannot express this bundle: {differences}.", name=name, differences="; ".join(found))
        )
    frame: Frame = "eos" if bundle.kind == "seq2seq" else "bos"
    settings = bundle.task.model.settings
    files: dict[str, Any] = tokenizer_files(
        bundle.task.tokenizer, frame=frame, max_length=settings.max_length, mask_text=bundle.task.mask_text
    )
    files["config.json"] = _config(bundle, family)
    if settings.has_decoder:
        files["generation_config.json"] = _generation_config(bundle)
    with torch.no_grad():
        tensors = {name: each.float().cpu().contiguous().clone() for name, each in _tensors(bundle, family).items()}
    with atomic_folder(Path(path)) as folder:
        for name, content in files.items():
            text = json.dumps(content, ensure_ascii=False, indent=2)
            (folder / name).write_text(text + "\n", encoding="utf-8")
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "README.md").write_text(model_card(bundle, family.classes[bundle.kind]), encoding="utf-8")


def family_of(settings: ModelSettings) -> Family:
    """The family whose classes are nearest to a model."""
    is_rotary = settings.positions == "rotary"
    if settings.shape == "encoder":
        return FAMILIES["esm" if is_rotary else "megatron-bert"]
    if settings.shape == "decoder":
        return FAMILIES["llama" if settings.norm == "rms" else "gpt_neox" if is_rotary else "gpt2"]
    return FAMILIES["pegasus" if settings.norm_placement == "pre" else "marian"]


def differences(bundle: Bundle, family: Family) -> list[str]:
    """What the classes of a family cannot express, each with what they can."""
    settings, tokenizer = bundle.task.model.settings, bundle.task.tokenizer
    known = {"scores": ("scaled-dot",), "projections": ("separate",), **family.known}
    found = [
        _(
            "{setting} (only {known})",
            setting=f"model.{name} = {json.dumps(getattr(settings, name))}",
            known=", ".join(map(json.dumps, values)),
        )
        for name, values in known.items()
        if getattr(settings, name) not in values
    ]
    found += settings.extensions
    heads = settings.heads
    if heads.n_heads * heads.head_width != settings.width or heads.value_width != heads.head_width:
        found.append(_("heads whose widths do not add up to model.width"))
    if settings.kept_heads:
        found.append(_("model.kept_heads (pruned heads)"))
    if bundle.task.model.is_gated:
        found.append(_("heads that are switched off (save the bundle first)"))
    if tokenizer.folds_case:
        found.append(_("tokenizer.lowercase = true (only false)"))
    if tokenizer.placeholder_ids:
        found.append(_("tokenizer.placeholders (only 0)"))
    return [*found, *_task_differences(bundle)]


def _task_differences(bundle: Bundle) -> Iterator[str]:
    task = bundle.task
    if isinstance(task, Classify):
        if task.settings.pooling != "first":
            yield _('task.pooling = "{pooling}" (only "first")', pooling=task.settings.pooling)
        if task.settings.hidden != "none":
            yield _('task.hidden = "{activation}" (only "none")', activation=task.settings.hidden)
        if task.settings.convolution:
            yield _("task.convolution = {size} (only 0)", size=task.settings.convolution)
        if task.linear is not None and task.mixture.share:
            yield _("the answer is mixed with a linear model (train with task.baseline = false)")
    if isinstance(task, Tag):
        if task.settings.decoder == "crf":
            yield _('task.decoder = "crf" (only "constrained")')
        if task.settings.word_vector != "mean":
            yield _('task.word_vector = "{which}" (only "mean")', which=task.settings.word_vector)
        if task.settings.ngrams:
            yield _("task.ngrams = {size} (only 0)", size=task.settings.ngrams)
        if task.settings.intents:
            yield _("task.intents = true (only false)")
        if task.linear is not None and task.shares.tags:
            yield _("the answer is mixed with a linear model (train with task.baseline = false)")


def _config(bundle: Bundle, family: Family) -> dict[str, Any]:
    settings, task = bundle.task.model.settings, bundle.task
    sizes: dict[str, Any] = {
        "hidden_size": settings.width,
        "num_attention_heads": settings.n_heads,
        "intermediate_size": settings.feed_forward_width,
        "max_position_embeddings": settings.max_length,
        "hidden_act": "silu" if settings.activation == "swiglu" else settings.activation,
        "layer_norm_eps": settings.norm_epsilon,
        "num_hidden_layers": settings.n_encoder_layers if settings.has_encoder else settings.n_decoder_layers,
    }
    if settings.has_cross_attention:
        sizes = {
            "d_model": settings.width,
            "max_position_embeddings": settings.max_length,
            "activation_function": settings.activation,
            "scale_embedding": settings.scale_embedding,
            "decoder_start_token_id": BOS,
            "forced_eos_token_id": None,
            "is_encoder_decoder": True,
            "num_hidden_layers": settings.n_encoder_layers,
        }
        for stack, n_layers in (("encoder", settings.n_encoder_layers), ("decoder", settings.n_decoder_layers)):
            sizes[f"{stack}_layers"], sizes[f"{stack}_attention_heads"] = n_layers, settings.n_heads
            sizes[f"{stack}_ffn_dim"] = settings.feed_forward_width
    by_family: dict[str, dict[str, Any]] = {
        "esm": {
            "position_embedding_type": "rotary",
            "emb_layer_norm_before": False,
            "token_dropout": False,
            "mask_token_id": UNK,
        },
        "gpt_neox": {
            "use_parallel_residual": False,
            "attention_bias": True,
            "rotary_pct": 1.0,
            "rotary_emb_base": 10_000,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0},
        },
        "llama": {
            "mlp_bias": True,
            "attention_bias": True,
            "num_key_value_heads": settings.n_heads,
            "head_dim": settings.heads.head_width,
            "rope_theta": 10_000.0,
        },
    }
    own = by_family.get(family.model_type, {})
    labels = task.labels if isinstance(task, Classify) else task.states.names if isinstance(task, Tag) else ()
    if labels:
        own["id2label"] = {str(number): label for number, label in enumerate(labels)}
        own["label2id"] = {label: number for number, label in enumerate(labels)}
    if isinstance(task, Classify):
        own["problem_type"] = f"{'multi' if task.settings.multi_label else 'single'}_label_classification"
    return {
        "architectures": [family.classes[bundle.kind]],
        "model_type": family.model_type,
        "vocab_size": settings.vocab_size,
        **{family.config.get(name, name): value for name, value in sizes.items()},
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "tie_word_embeddings": _is_tied(settings),
        "dtype": "float32",
        **own,
    }


def _is_tied(settings: ModelSettings) -> bool:
    """Whether their output layer is their embedding: only BART's classes scale the embedding by √width themselves."""
    return settings.tie_output and (settings.has_cross_attention or not settings.scale_embedding)


def _generation_config(bundle: Bundle) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "suppress_tokens": [PAD, UNK, BOS],
        "max_length": bundle.task.model.settings.max_length,
        "num_beams": 1,
        "do_sample": False,
    }
    if bundle.task.model.settings.has_cross_attention:
        config["decoder_start_token_id"] = BOS
    return config


def _tensors(bundle: Bundle, family: Family) -> Tensors:
    model = bundle.task.model
    settings = model.settings
    embedding = model.source_embedding if settings.has_encoder else model.target_embedding
    scale = 1.0 if settings.has_cross_attention else embedding.scale
    tensors = {f"{name}.weight": scale * embedding.token_embedding.weight for name in family.embeddings}
    positions = torch.arange(settings.max_length, device=model.device)[None]
    for name in family.position_tables:
        learned = model.target_embedding if "decoder" in name else embedding
        tensors[f"{name}.weight"] = learned.positions(positions)[0].expand(-1, settings.width)
    for stack, prefix in family.blocks.items():
        for number, block in enumerate(getattr(model, stack)):
            for module, linear in _block_parts(block, family, is_rotary=settings.positions == "rotary"):
                _put(tensors, f"{prefix}.{number}.{family.block[module]}", *linear, family=family)
    for stack, name in family.final_norms.items():
        _put_norm(tensors, name, getattr(model, f"{stack}_norm"))
    return _HEADS[bundle.kind](bundle, family, tensors)


def _block_parts(block: Any, family: Family, *, is_rotary: bool) -> Iterator[tuple[str, tuple[Tensor, Tensor | None]]]:
    """The parts of a block: weight and bias of each, by our name."""
    n_heads = block.attention.heads.n_heads
    query, key, value, output = attention_projections(block.attention)
    if is_rotary:
        query, key = (_halves(part, n_heads) for part in (query, key))
    if "query" in family.block:
        yield from zip(("query", "key", "value"), (query, key, value), strict=True)
    else:
        yield "query_key_value", _fused((query, key, value), n_heads if family.model_type == "gpt_neox" else 1)
    yield "attention_output", output
    if hasattr(block, "cross_attention"):
        names = ("cross_query", "cross_key", "cross_value", "cross_output")
        yield from zip(names, attention_projections(block.cross_attention), strict=True)
        yield "cross_norm", _norm(block.cross_attention_sublayer.norm)
    network = block.feed_forward
    for name in ("gate", "inner", "outer") if hasattr(network, "gate") else ("inner", "outer"):
        linear = getattr(network, name)
        yield name, (linear.weight, linear.bias)
    yield "attention_norm", _norm(block.attention_sublayer.norm)
    yield "feed_forward_norm", _norm(block.feed_forward_sublayer.norm)


def _halves(linear: tuple[Tensor, Tensor | None], n_heads: int) -> tuple[Tensor, Tensor | None]:
    """The rows of each head with its even features before its odd ones: they rotate halves, we rotate neighbors."""
    weight, bias = (
        None if rows is None else rows.unflatten(0, (n_heads, -1, 2)).transpose(1, 2).flatten(0, 2) for rows in linear
    )
    assert weight is not None
    return weight, bias


def _fused(parts: tuple[tuple[Tensor, Tensor | None], ...], n_groups: int) -> tuple[Tensor, Tensor]:
    """Queries, keys and values in one matrix: one after the other, or so within each head."""
    rows = [
        torch.cat([each.unflatten(0, (n_groups, -1)) for each in both], dim=1).flatten(0, 1)
        for both in (
            [weight for weight, _bias in parts],
            [weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in parts],
        )
    ]
    return rows[0], rows[1]


def _norm(norm: nn.Module) -> tuple[Tensor, Tensor | None]:
    bias = getattr(norm, "bias", None)
    weight = norm.weight
    assert isinstance(weight, Tensor) and (bias is None or isinstance(bias, Tensor))
    return weight, bias


def _put(tensors: Tensors, name: str, weight: Tensor, bias: Tensor | None, *, family: Family) -> None:
    """Add a linear layer, whose bias is 0 if it has none, or a norm."""
    is_matrix = weight.dim() == 2
    tensors[f"{name}.weight"] = weight.T if family.is_transposed and is_matrix else weight
    if bias is not None or is_matrix:
        tensors[f"{name}.bias"] = weight.new_zeros(len(weight)) if bias is None else bias


def _put_norm(tensors: Tensors, name: str, norm: nn.Module) -> None:
    weight, bias = _norm(norm)
    tensors[f"{name}.weight"] = weight
    if bias is not None:
        tensors[f"{name}.bias"] = bias


def _with_encoder_extras(model: Transformer, family: Family, tensors: Tensors) -> Tensors:
    """What the encoders have and we do not: token types, and the contact head of proteins, all 0."""
    settings = model.settings
    if family.model_type == "megatron-bert":
        return tensors | {"bert.embeddings.token_type_embeddings.weight": torch.zeros(2, settings.width)}
    n_maps, pairs = settings.n_encoder_layers * settings.n_heads, torch.arange(0, settings.heads.head_width, 2)
    return tensors | {
        "esm.contact_head.regression.weight": torch.zeros(1, n_maps),
        "esm.contact_head.regression.bias": torch.zeros(1),
        "esm.rotary_embeddings.inv_freq": 1.0 / 10_000.0 ** (pairs / settings.heads.head_width),
    }


def _generator(bundle: Bundle, family: Family, tensors: Tensors) -> Tensors:
    model = bundle.task.model
    tensors["lm_head.weight"] = model.output.weight
    if model.settings.has_cross_attention:
        tensors["final_logits_bias"] = torch.zeros(1, model.settings.vocab_size)
    return tensors


def _classifier(bundle: Bundle, family: Family, tensors: Tensors) -> Tensors:
    """Their head is W tanh(D x): D and W make tanh linear, and W divides by the temperatures."""
    task = bundle.task
    assert isinstance(task, Classify)
    width, output = task.model.settings.width, task.module.output
    temperature = task.calibration.temperature * task.mixture.transformer_temperature
    pooler, last = (
        ("bert.pooler.dense", "classifier")
        if family.model_type == "megatron-bert"
        else ("classifier.dense", "classifier.out_proj")
    )
    tensors |= {
        f"{pooler}.weight": _TINY * torch.eye(width),
        f"{pooler}.bias": torch.zeros(width),
        f"{last}.weight": output.weight / (temperature * _TINY),
        f"{last}.bias": output.bias / temperature,
    }
    return _with_encoder_extras(task.model, family, tensors)


def _tagger(bundle: Bundle, family: Family, tensors: Tensors) -> Tensors:
    task = bundle.task
    assert isinstance(task, Tag)
    tensors |= {"classifier.weight": task.module.output.weight, "classifier.bias": task.module.output.bias}
    return _with_encoder_extras(task.model, family, tensors)


def _masked(bundle: Bundle, family: Family, tensors: Tensors) -> Tensors:
    """Their head is a linear layer, the activation and a layer norm, and ours is nothing.

    A constant that makes every component positive passes the activation unchanged, and the layer norm removes it. That
    norm takes the weight and the bias of our last norm, which normalizes only.
    """
    model = bundle.task.model
    width, final = model.settings.width, family.final_norms["encoder"]
    is_bert = family.model_type == "megatron-bert"
    head, norm = ("cls.predictions.transform", "LayerNorm") if is_bert else ("lm_head", "layer_norm")
    tensors |= {f"{head}.{norm}.{part}": tensors[f"{final}.{part}"] for part in ("weight", "bias")}
    tensors |= {f"{final}.weight": torch.ones(width), f"{final}.bias": torch.zeros(width)}
    tensors |= {f"{head}.dense.weight": torch.eye(width), f"{head}.dense.bias": torch.full((width,), width**0.5 + 8)}
    prefix = "cls.predictions" if is_bert else "lm_head"
    tensors[f"{prefix}.decoder.weight"] = model.output.weight
    tensors[f"{prefix}.bias"] = torch.zeros(model.settings.vocab_size)
    if is_bert:
        tensors[f"{prefix}.decoder.bias"] = torch.zeros(model.settings.vocab_size)
    return _with_encoder_extras(model, family, tensors)


_HEADS: dict[str, Callable[[Bundle, Family, Tensors], Tensors]] = {
    "classify": _classifier,
    "tag": _tagger,
    "masked": _masked,
    "language": _generator,
    "seq2seq": _generator,
}
_PIPELINES = {
    "classify": "text-classification",
    "tag": "token-classification",
    "masked": "fill-mask",
    "language": "text-generation",
    "seq2seq": "translation",
}


def model_card(bundle: Bundle, name: str) -> str:
    """README.md: what the model is, its scores with their intervals, and how its answers differ from `predict`."""
    languages = [code for code in bundle.task.languages(bundle.task.settings) if code]
    lines = ["---", "library_name: transformers", f"pipeline_tag: {_PIPELINES[bundle.kind]}"]
    lines += ["language:", *(f"- {code}" for code in languages)] if languages else []
    lines += ["tags:", "- manyheads", "---", "", f"# {name}", ""]
    lines += [f"Exported by manyheads from a bundle of the task `{bundle.kind}`: {bundle!r}.", ""]
    rows = [(test_set, score) for test_set, scores in bundle.scores.items() for score in scores]
    if rows:
        lines += ["| test set | score | value | 95 % interval | texts |", "| --- | --- | --- | --- | --- |"]
    for test_set, score in rows:
        value, low, high = (format_score(score.name, number) for number in (score.value, score.low, score.high))
        lines.append(f"| {test_set} | {score.name} | {value} | {low} – {high} | {score.n or ''} |")
    if bundle.kind == "tag":
        lines += ["", "The score of a word's tag is the mean over its tokens. Tokenize words, not texts:"]
        lines += ["`tokenizer(words, is_split_into_words=True)`."]
    if bundle.kind in ("seq2seq", "language"):
        lines += [
            "",
            "Greedy search generates the tokens of manyheads; beam search is another one.",
        ]
    if bundle.kind == "language":
        lines += ["", "A prompt should not end with a space: the space belongs to the next token."]
    return "\n".join([*lines, ""])
