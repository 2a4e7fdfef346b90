"""The work of a training step, as the floating-point operations of the model's matrix products."""

import numpy as np
from numpy.typing import NDArray

from manyheads.model import ModelSettings


def count_flop(settings: ModelSettings, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> int:
    """Of a step on pairs of these lengths, EOS included; padding is not counted, and backward is twice forward.

    W width, A all heads together, F feed-forward width, V vocabulary; S and T tokens of the batch, s and t of a pair:
        encoder layer   S · 2 (4 W A + 2 W F) + Σ s² · 4 A
        decoder layer   T · 2 (6 W A + 2 W F) + S · 2 · 2 W A + Σ t (t + 1) / 2 · 4 A + Σ s t · 4 A
        output          T · 2 W V
    """
    width, inner, heads = settings.width, settings.feed_forward_width, settings.heads
    both = heads.n_heads * heads.head_width
    n_source, n_target = int(sources.sum()), int(targets.sum())
    encoder = n_source * 2 * (4 * width * both + 2 * width * inner) + int((sources**2).sum()) * 4 * both
    decoder = (
        n_target * 2 * (6 * width * both + 2 * width * inner)
        + n_source * 4 * width * both
        + int((targets * (targets + 1) // 2 + sources * targets).sum()) * 4 * both
    )
    layers = settings.n_encoder_layers * encoder + settings.n_decoder_layers * decoder
    return 3 * (layers + n_target * 2 * width * settings.vocab_size)
