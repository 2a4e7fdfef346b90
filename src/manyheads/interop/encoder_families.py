"""Encoders: BERT and its relatives."""

from typing import Any

from torch import Tensor

from manyheads.interop.checkpoint_files import Config
from manyheads.interop.import_plan import Family, Head, Plan
from manyheads.interop.tokenizer_import import Roles

ACTIVATIONS = {"relu": "relu", "gelu": "gelu"}
_BERT_BLOCK = {
    "attention.project.query": "attention.self.query",
    "attention.project.key": "attention.self.key",
    "attention.project.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_sublayer.norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_forward_sublayer.norm": "output.LayerNorm",
}


def _bert_settings(config: Config) -> dict[str, Any]:
    config.require("position_embedding_type", "absolute")
    config.require("is_decoder", False)
    return {
        "shape": "encoder",
        "width": config.integer("hidden_size"),
        "n_encoder_layers": config.integer("num_hidden_layers"),
        "n_heads": config.integer("num_attention_heads"),
        "feed_forward_width": config.integer("intermediate_size"),
        "activation": config.choice("hidden_act", known=ACTIVATIONS, default="gelu"),
        "max_length": config.integer("max_position_embeddings"),
        "norm_epsilon": config.number("layer_norm_eps", default=1e-12),
        "dropout": config.number("hidden_dropout_prob", default=0.1),
        "attention_dropout": config.number("attention_probs_dropout_prob", default=0.1),
        "positions": "learned",
        "norm_placement": "post",
        "attention_bias": True,
        "scale_embedding": False,
        "embedding_norm": True,
    }


def _bert_plan(config: Config, plan: Plan) -> None:
    width, n_types = plan.settings.width, config.integer("type_vocab_size", default=2)
    plan.tokens("source_embedding.token_embedding.weight", "embeddings.word_embeddings.weight")
    plan.put(
        "source_embedding.positions.weight",
        "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight",
        shapes=((plan.settings.max_length, width), (n_types, width)),
        make=_with_first_type,
    )
    plan.pair("source_embedding.norm", "embeddings.LayerNorm")
    for layer in range(plan.settings.n_encoder_layers):
        for ours, theirs in _BERT_BLOCK.items():
            plan.pair(f"encoder.{layer}.{ours}", f"encoder.layer.{layer}.{theirs}")


def _with_first_type(positions: Tensor, types: Tensor) -> Tensor:
    """Every token of a single text has the type 0, whose vector is added to those of the positions."""
    return positions + types[0]


BERT = Family(
    heads={"BertModel": Head("embed")},
    prefix="bert.",
    settings=_bert_settings,
    plan=_bert_plan,
    roles=lambda config: Roles(is_closed=True),
    ignored=(r"position_ids$", r"(^|\.)pooler\.", r"^cls\."),
)
ENCODERS = {"bert": BERT}
