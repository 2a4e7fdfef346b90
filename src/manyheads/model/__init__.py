"""The model room: tensors only.

Attention and its masks, score forms, positions, norms, feed-forward, blocks, embedding, key–value cache, the
Transformer of three shapes, and its losses. Nothing here knows of text, files or tasks: token ids come in, numbers
go out, and which positions are real is said by a mask. May import errors and settings, nothing else of ours.

Start reading at `attention.py`, then `blocks.py`, then `transformer.py`. Shape letters, here and everywhere:
B batch, H heads, G key heads (grouped), Q query positions, K key positions, S source positions, T target positions,
W width (d_model), D width of a head's query or key (d_k), E width of a head's value (d_v), V vocabulary.
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
