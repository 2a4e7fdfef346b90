"""Encoders: BERT, RoBERTa and XLM-R, DistilBERT, MPNet."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from manyheads.interop.checkpoint_files import Config
from manyheads.interop.import_heads import classify_head, masked_head, tag_head
from manyheads.interop.import_plan import Family, Head, Plan
from manyheads.interop.tokenizer_import import Roles

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
_ATTENTION = {
    "attention.project.query": "attention.self.query",
    "attention.project.key": "attention.self.key",
    "attention.project.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_sublayer.norm": "attention.output.LayerNorm",
}
_FEED_FORWARD = {
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_forward_sublayer.norm": "output.LayerNorm",
}
_MPNET_ATTENTION = {
    "attention.project.query": "attention.attn.q",
    "attention.project.key": "attention.attn.k",
    "attention.project.value": "attention.attn.v",
    "attention.output": "attention.attn.o",
    "attention_sublayer.norm": "attention.LayerNorm",
}
_DISTILBERT_BLOCK = {
    "attention.project.query": "attention.q_lin",
    "attention.project.key": "attention.k_lin",
    "attention.project.value": "attention.v_lin",
    "attention.output": "attention.out_lin",
    "attention_sublayer.norm": "sa_layer_norm",
    "feed_forward.inner": "ffn.lin1",
    "feed_forward.outer": "ffn.lin2",
    "feed_forward_sublayer.norm": "output_layer_norm",
}
_POST_NORM = {
    "shape": "encoder",
    "positions": "learned",
    "norm_placement": "post",
    "attention_bias": True,
    "scale_embedding": False,
    "embedding_norm": True,
}


def _bert_settings(config: Config) -> dict[str, Any]:
    config.require("position_embedding_type", "absolute")
    config.require("is_decoder", False)
    return {
        **_POST_NORM,
        "width": config.integer("hidden_size"),
        "n_encoder_layers": config.integer("num_hidden_layers"),
        "n_heads": config.integer("num_attention_heads"),
        "feed_forward_width": config.integer("intermediate_size"),
        "activation": config.choice("hidden_act", known=ACTIVATIONS, default="gelu"),
        "max_length": config.integer("max_position_embeddings") - _first_position(config),
        "norm_epsilon": config.number("layer_norm_eps", default=1e-12),
        "dropout": config.number("hidden_dropout_prob", default=0.1),
        "attention_dropout": config.number("attention_probs_dropout_prob", default=0.1),
        "tie_output": config.flag("tie_word_embeddings", default=True),
    }


def _first_position(config: Config) -> int:
    """RoBERTa and its relatives number positions after the id of their padding: PAD is 1, the first position 2."""
    is_counted = config.text("model_type") in ("roberta", "xlm-roberta", "camembert", "mpnet")
    return config.integer("pad_token_id", default=1) + 1 if is_counted else 0


def _mpnet_settings(config: Config) -> dict[str, Any]:
    buckets = config.integer("relative_attention_num_buckets", default=32)
    return {**_bert_settings(config), "distance_buckets": buckets}


def _distilbert_settings(config: Config) -> dict[str, Any]:
    return {
        **_POST_NORM,
        "width": config.integer("dim"),
        "n_encoder_layers": config.integer("n_layers"),
        "n_heads": config.integer("n_heads"),
        "feed_forward_width": config.integer("hidden_dim"),
        "activation": config.choice("activation", known=ACTIVATIONS, default="gelu"),
        "max_length": config.integer("max_position_embeddings"),
        "norm_epsilon": 1e-12,
        "dropout": config.number("dropout", default=0.1),
        "attention_dropout": config.number("attention_dropout", default=0.1),
        "tie_output": config.flag("tie_word_embeddings", default=True),
    }


def _embedding(config: Config, plan: Plan, *, n_types: int) -> None:
    """Token vectors, and those of the positions, to which the vector of the first token type is added."""
    width, first = plan.settings.width, _first_position(config)
    plan.tokens("source_embedding.token_embedding.weight", "embeddings.word_embeddings.weight")
    names = ["embeddings.position_embeddings.weight"]
    shapes = [(plan.settings.max_length + first, width)]
    if n_types:
        names.append("embeddings.token_type_embeddings.weight")
        shapes.append((n_types, width))

    def make(positions: Tensor, types: Tensor | None = None) -> Tensor:
        return positions[first:] if types is None else positions[first:] + types[0]

    plan.put("source_embedding.positions.weight", *names, shapes=shapes, make=make)
    plan.pair("source_embedding.norm", "embeddings.LayerNorm")


def _blocks(plan: Plan, theirs: str, names: Mapping[str, str]) -> None:
    for layer in range(plan.settings.n_encoder_layers):
        for ours, name in names.items():
            plan.pair(f"encoder.{layer}.{ours}", f"{theirs}.{layer}.{name}")


def _bert_plan(config: Config, plan: Plan) -> None:
    _embedding(config, plan, n_types=config.integer("type_vocab_size", default=2))
    _blocks(plan, "encoder.layer", {**_ATTENTION, **_FEED_FORWARD})


def _mpnet_plan(config: Config, plan: Plan) -> None:
    _embedding(config, plan, n_types=0)
    _blocks(plan, "encoder.layer", {**_MPNET_ATTENTION, **_FEED_FORWARD})
    shape = (plan.settings.distance_buckets, plan.settings.n_heads)
    for layer in range(plan.settings.n_encoder_layers):  # the layers share one table
        ours = f"encoder.{layer}.attention.positions.weight"
        plan.put(ours, "encoder.relative_attention_bias.weight", shapes=(shape,), make=lambda table: table.T)


def _distilbert_plan(config: Config, plan: Plan) -> None:
    _embedding(config, plan, n_types=0)
    _blocks(plan, "transformer.layer", _DISTILBERT_BLOCK)


def _heads(name: str, *, classify: Head, masked: Head) -> dict[str, Head]:
    return {
        f"{name}Model": Head("embed"),
        f"{name}ForSequenceClassification": classify,
        f"{name}ForTokenClassification": tag_head(),
        f"{name}ForMaskedLM": masked,
    }


_IGNORED = (
    r"position_ids$",
    r"(^|\.)pooler\.",
    r"^cls\.",
    r"^lm_head\.",
    r"^classifier\.",
    r"^vocab_",
    r"^pre_classifier\.",
)
_BERT_MASKED = masked_head(
    dense="cls.predictions.transform.dense",
    norm="cls.predictions.transform.LayerNorm",
    bias="cls.predictions.bias",
    decoder="cls.predictions.decoder",
)
_ROBERTA_MASKED = masked_head(
    dense="lm_head.dense", norm="lm_head.layer_norm", bias="lm_head.bias", decoder="lm_head.decoder"
)
_ROBERTA_CLASSIFY = classify_head(hidden="classifier.dense", output="classifier.out_proj", activation="tanh")


def _roles(config: Config) -> Roles:
    return Roles(is_closed=True)


def _roberta(name: str) -> Family:
    heads = _heads(name, classify=_ROBERTA_CLASSIFY, masked=_ROBERTA_MASKED)
    return Family(heads, "roberta.", _bert_settings, _bert_plan, _roles, _IGNORED)


_BERT_HEADS = {
    **_heads(
        "Bert",
        classify=classify_head(hidden="bert.pooler.dense", output="classifier", activation="tanh"),
        masked=_BERT_MASKED,
    ),
    "BertForPreTraining": _BERT_MASKED,
}
ENCODERS = {
    "bert": Family(_BERT_HEADS, "bert.", _bert_settings, _bert_plan, _roles, _IGNORED),
    "roberta": _roberta("Roberta"),
    "xlm-roberta": _roberta("XLMRoberta"),
    "camembert": _roberta("Camembert"),
    "distilbert": Family(
        _heads(
            "DistilBert",
            classify=classify_head(hidden="pre_classifier", output="classifier", activation="relu"),
            masked=masked_head(
                dense="vocab_transform",
                norm="vocab_layer_norm",
                bias="vocab_projector.bias",
                decoder="vocab_projector",
            ),
        ),
        "distilbert.",
        _distilbert_settings,
        _distilbert_plan,
        _roles,
        _IGNORED,
    ),
    "mpnet": Family(
        _heads("MPNet", classify=_ROBERTA_CLASSIFY, masked=_ROBERTA_MASKED),
        "mpnet.",
        _mpnet_settings,
        _mpnet_plan,
        _roles,
        _IGNORED,
    ),
}
