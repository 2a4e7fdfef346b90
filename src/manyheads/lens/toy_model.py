"""Examples small enough to print every number: a worked 3×3 example, and an untrained model of width 4.

Neither needs a bundle. The model has random weights of a fixed seed: its arithmetic is worth following, its attention
pattern has no meaning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from manyheads.errors import DataError
from manyheads.lens.attention_walk import Walk, capture_calls, choose_attention, choose_position, walk_attention
from manyheads.model import ModelSettings, MultiHeadAttention, Transformer, attention_weights
from manyheads.model.attention import Strategies
from manyheads.model.masks import View
from manyheads.model.positions import NoRelativePositions
from manyheads.model.projections import SeparateProjections
from manyheads.model.score_forms import HeadShape, ScaledDot
from manyheads.text.words import split_text

BOS = "<s>"  # the decoder reads it before its first word
_SEED = 1
_MAX_WORDS = 12  # of a sentence, so that all numbers fit on a screen


def worked_example(query: str | None = None) -> Walk:
    """Return the walk of X = W^Q = [[1,2,3],[4,5,6],[7,8,9]], W^K = Xᵀ, one head, no W^O: the softmax is saturated."""
    x = torch.arange(1.0, 10.0).reshape(3, 3)
    w_v = torch.tensor([[1.0, 7.0, 4.0], [2.0, 8.0, 5.0], [3.0, 9.0, 6.0]])
    projections = SeparateProjections(3, HeadShape(1, 1, 3, 3), bias=False)
    attention = MultiHeadAttention(
        "worked",
        3,
        projections.heads,
        (1,),
        Strategies(projections, ScaledDot(projections.heads, 3), NoRelativePositions()),
    )
    attention.output = nn.Identity()
    with torch.no_grad():
        for linear, matrix in ((projections.query, x), (projections.key, x.T), (projections.value, w_v)):
            assert linear is not None
            linear.weight.copy_(matrix.T)  # torch stores the transpose
    view = View.bidirectional(torch.ones(1, 3, dtype=torch.bool))
    names = ["x1", "x2", "x3"]
    with capture_calls(attention) as calls:
        attention(x[None], x[None], view)
    return walk_attention(
        attention, calls[0], head=0, query=choose_position(names, query, 0), query_names=names, key_names=names
    )


def walk_sentence(
    text: str, *, answer: str | None = None, layer: str | None = None, head: int = 0, query: str | None = None
) -> Walk:
    """Return the walk of a sentence through an untrained encoder–decoder of width 4 with two heads.

    Tokens are words, in Chinese characters. The decoder writes `answer`, by default the sentence itself.
    """
    source = _words_of(text, "The text")
    target = [BOS, *(source if answer is None else _words_of(answer, "The answer"))]
    ids = {word: number for number, word in enumerate(dict.fromkeys([*source, *target]))}
    model = _make_model()
    attention = choose_attention(model, layer, head)
    with capture_calls(attention) as calls, torch.no_grad():
        model.hidden(*(torch.tensor([[ids[word] for word in side]]) for side in (source, target)))
    query_names = source if attention.name == "encoder.0.self" else target
    key_names = target if attention.name == "decoder.0.self" else source
    steps = walk_attention(
        attention,
        calls[0],
        head=head,
        query=choose_position(query_names, query, 1),
        query_names=query_names,
        key_names=key_names,
    )
    is_in_decoder = attention.name != "encoder.0.self"
    return replace(steps, text=text, answer=(text if answer is None else answer) if is_in_decoder else "")


def _words_of(text: str, what: str) -> list[str]:
    words = [word.text for word in split_text(text, "word")]
    if not words:
        raise DataError(f"{what} is empty. Give a sentence, such as 我爱水课.")
    if len(words) > _MAX_WORDS:
        raise DataError(
            f"{what} has {len(words):,} words; without a bundle at most {_MAX_WORDS} fit, since every number is "
            "printed. Take a shorter one, or give a bundle."
        )
    return words


def _make_model() -> Transformer:
    """Make a model with weights of a fixed seed, without touching the global random state."""
    settings = ModelSettings(
        vocab_size=2 * _MAX_WORDS + 1,
        width=4,
        n_heads=2,
        n_encoder_layers=1,
        n_decoder_layers=1,
        feed_forward_width=8,
        dropout=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        return Transformer(settings).eval()


@dataclass(frozen=True)
class Saturation:
    """The softmax of random queries and keys of one width, with or without √d_k."""

    head_width: int
    is_scaled: bool
    spread: float  # standard deviation of the scores
    largest_weight: float  # the median over draws
    slope: float  # the median derivative of a weight by its q · k
    mean_slope: float


def measure_saturation(
    head_widths: Sequence[int] = (4, 64, 512), n_keys: int = 10, n_draws: int = 1000
) -> list[Saturation]:
    """Measure how scores and their softmax change with the width of q and k, drawn from N(0, 1) with a fixed seed."""
    generator = torch.Generator().manual_seed(_SEED)
    measured = []
    for width in head_widths:
        q = torch.randn(n_draws, 1, width, generator=generator)
        k = torch.randn(n_draws, n_keys, width, generator=generator)
        for is_scaled in (False, True):
            # `attention_weights` divides by √d_k; queries multiplied by √d_k give the softmax of plain products.
            weights = attention_weights(q if is_scaled else q * width**0.5, k).double()
            scale = width**0.5 if is_scaled else 1.0
            slopes = (weights * (1.0 - weights) / scale).numpy()
            measured.append(
                Saturation(
                    head_width=width,
                    is_scaled=is_scaled,
                    spread=float((q @ k.mT / scale).std()),
                    largest_weight=float(weights.amax(-1).median()),
                    slope=float(np.median(slopes)),
                    mean_slope=float(slopes.mean()),
                )
            )
    return measured
