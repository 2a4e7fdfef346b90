"""The Transformer: tensors only.

This package contains attention, masks, score forms, positions, norms, feed-forward, blocks, embedding, key–value
caches, the three shapes of the Transformer, and losses. It knows nothing about text, files or tasks: its inputs are
token ids and boolean masks, its outputs are tensors. It imports `errors` and `settings`, and no other package.

Start with `attention.py`, then read `blocks.py` and `transformer.py`. Shape letters in all annotations:
B batch, H heads, G key heads (grouped), Q query positions, K key positions, S source positions, T target positions,
W width (d_model), D width of one head's query or key (d_k), E width of one head's value (d_v), V vocab_size.
"""

from manyheads.model.attention import MultiHeadAttention, attention, attention_weights
from manyheads.model.evaluation import evaluating
from manyheads.model.gates import gated
from manyheads.model.losses import projected_loss, smoothed_cross_entropy, symmetric_kl
from manyheads.model.settings import PRESETS, ModelSettings
from manyheads.model.tap import Tap
from manyheads.model.transformer import DecoderState, Transformer

__all__ = [
    "PRESETS",
    "DecoderState",
    "ModelSettings",
    "MultiHeadAttention",
    "Tap",
    "Transformer",
    "attention",
    "attention_weights",
    "evaluating",
    "gated",
    "projected_loss",
    "smoothed_cross_entropy",
    "symmetric_kl",
]
