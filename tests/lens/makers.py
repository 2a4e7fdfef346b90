"""One small untrained model of each task, and a text for it."""

from functools import cache
from typing import Any

import torch

from manyheads.decode import DecodeSettings
from manyheads.model import Transformer
from manyheads.tasks import (
    Classify,
    ClassifySettings,
    Language,
    LanguageSettings,
    Masked,
    MaskedSettings,
    Seq2Seq,
    Seq2SeqSettings,
    Tag,
    TagSettings,
    Task,
)
from manyheads.text.tokens.tokenizer import EOS

from model.makers import random_ids, shaken
from tasks.makers import TOKENIZERS, make_model

KINDS = ("seq2seq", "classify", "tag", "language", "masked")
WRITERS = ("seq2seq", "language")
TEXTS = {
    "seq2seq": "the cat sat on the mat.",
    "classify": "no dog sat; the red mat",
    "tag": "no dog sat,  the red mat",
    "language": "the dog ran",
    "masked": "the [MASK] sat on the [MASK].",
}
ANSWER = " to the cat"
SHORT = DecodeSettings(method="greedy", max_new_tokens=2)
MODELS: dict[str, dict[str, Any]] = {
    "2017": {},
    "learned, pre": {"positions": "learned", "norm_placement": "pre"},
    "rotary, grouped, rms": {"positions": "rotary", "n_key_heads": 2, "norm": "rms"},
    "alibi, one key head, pre": {"positions": "alibi", "n_key_heads": 1, "norm_placement": "pre"},
    "no positions, batch norm": {"positions": "none", "norm": "batch"},
    "biases, unequal widths": {"attention_bias": True, "head_width": 6, "value_width": 10},
    "dense synthesizer": {"scores": "dense-synthesizer"},
    "random synthesizer, alibi": {"scores": "random-synthesizer", "positions": "alibi"},
    "additive, rotary": {"scores": "additive", "positions": "rotary"},
    "bilinear, tied": {"scores": "bilinear", "projections": "tied"},
    "cosine, shared": {"scores": "cosine", "projections": "shared", "attention_bias": True},
    "dot, no projections": {"scores": "dot", "projections": "none"},
}


@torch.no_grad()
def with_ends(model: Transformer) -> Transformer:
    """Make EOS about as probable as the best other token, so that some hypotheses finish."""
    ids = random_ids(8, 12, vocab_size=model.settings.vocab_size)
    hidden = model.hidden(ids if model.settings.has_encoder else None, ids).flatten(0, 1)
    middle = hidden.mean(0)
    best = model.output.logits(hidden).amax(-1).mean()
    model.output.weight[EOS] += (best - middle @ model.output.weight[EOS]) * middle / (middle @ middle)
    return model


@torch.no_grad()
def update_batch_norms(model: Transformer) -> None:
    """Update the running statistics of batch norms; without that, values grow from layer to layer."""
    model.train()
    for seed in range(40):
        ids = random_ids(8, 12, vocab_size=model.settings.vocab_size, seed=seed)
        model.hidden(ids if model.settings.has_encoder else None, ids)
    model.eval()


@cache
def task_of(kind: str, model: str = "2017", tokenizer: str = "bpe", **changes: Any) -> Task:
    """Return a cached task. Tests share it, so they must not change its weights."""
    tokens = TOKENIZERS[tokenizer]

    def make(shape: str) -> Transformer:
        sizes = {"width": 16, "n_heads": 4, "max_length": 48, "tie_output": False}
        made = make_model(tokens, shape, **{**sizes, **MODELS[model], **changes})
        shaken(made)
        if made.settings.norm == "batch":
            update_batch_norms(made)
        return made if shape == "encoder" else with_ends(made)

    match kind:
        case "seq2seq":
            return Seq2Seq(make("encoder-decoder"), tokens, Seq2SeqSettings())
        case "language":
            return Language(make("decoder"), tokens, LanguageSettings())
        case "masked":
            return Masked(make("encoder"), tokens, MaskedSettings())
        case "classify":
            metadata: dict[str, Any] = {"labels": ["a", "b"], "counts": [1, 1], "n_rows": 2, "temperature": 1.0}
            task: Task = Classify.restore(make("encoder"), tokens, ClassifySettings(), metadata)
        case _:
            metadata = {"labels": ["a"], "intents": [], "split_by": "word", "temperature": 1.0}
            task = Tag.restore(make("encoder"), tokens, TagSettings(), metadata)
    task.module.eval()
    return task
