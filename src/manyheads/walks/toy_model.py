"""Examples small enough to print every number: a worked 3×3 example, and an untrained model of width 4.

Neither needs a bundle. The model has random weights of a fixed seed, with one decimal so that its arithmetic can be
followed with a calculator; its attention pattern has no meaning.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.model import ModelSettings, MultiHeadAttention, Transformer, attention_weights
from manyheads.model.attention import Strategies
from manyheads.model.blocks import PostNorm
from manyheads.model.masks import View
from manyheads.model.positions import NoRelativePositions
from manyheads.model.projections import SeparateProjections
from manyheads.model.score_forms import HeadShape, ScaledDot
from manyheads.text.tokens.words import split_text
from manyheads.walks.attention_walk import Walk, capture_calls, choose_position, doubles, walk_attention
from manyheads.walks.block_walk import BlockWalk, Passage, Tokens, walk_model
from manyheads.walks.norm_walk import compare_norms
from manyheads.walks.sublayer_walk import capture_modules, walk_sublayer

BOS = "<s>"  # the decoder reads it before its first word
EOS = "</s>"  # and writes it after its last
_SEED = 169  # with it, attention rows are neither flat nor saturated, and ReLU cuts some numbers
_SATURATION_SEED = 1
_TENTHS = 8  # weights are from -0.8 to 0.8: a standard deviation of 0.5, about d_model^-½
_SMOOTHING = 0.1
_MAX_WORDS = 12  # of a sentence, so that all numbers fit on a screen


def worked_example(query: str | None = None) -> Walk:
    """Return the walk of X = W^Q = [[1,2,3],[4,5,6],[7,8,9]], W^K = Xᵀ, one head, no W^O: the softmax is saturated.

    Its block has the residual connection and the norms; there is no embedding, feed-forward network or vocabulary.
    """
    x = torch.arange(1.0, 10.0, dtype=torch.float64).reshape(1, 3, 3)
    attention = _worked_attention(x[0])
    sublayer = PostNorm(ModelSettings(vocab_size=1, width=3, n_heads=1, positions="none", dropout=0.0)).double().eval()
    is_real = torch.ones(1, 3, dtype=torch.bool)
    view = View.bidirectional(is_real)
    names = ["x1", "x2", "x3"]
    position = choose_position(names, query, 0)
    modules = nn.ModuleList([attention, sublayer])
    with torch.no_grad(), capture_calls(attention) as heads, capture_modules(modules) as calls:
        sublayer(x, is_real, lambda y: attention(y, y, view))
    walked = walk_attention(attention, heads[0], head=0, query=position, query_names=names, key_names=names)
    residual = walk_sublayer("worked", sublayer, attention, calls)
    norms = compare_norms(residual.residual, position, residual.norm.epsilon)
    return replace(walked, block=BlockWalk("worked", None, None, residual, norms))


def _worked_attention(x: Tensor) -> MultiHeadAttention:
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
    return attention.double().eval()


def walk_sentence(
    text: str, *, answer: str | None = None, layer: str | None = None, head: int = 0, query: str | None = None
) -> Walk:
    """Return the walk of a sentence through an untrained encoder–decoder of width 4 with two heads.

    Tokens are words, in Chinese characters. The decoder writes `answer`, by default the sentence itself. The vocabulary
    is the words of both, BOS and EOS. Every weight has one decimal.
    """
    source = _words_of(text, _("The text"))
    written = [*(source if answer is None else _words_of(answer, _("The answer"))), EOS]
    target = [BOS, *written[:-1]]
    vocabulary = list(dict.fromkeys([*source, *written[:-1], BOS, EOS]))
    source_side, target_side, written_side = (
        Tokens(tuple(side), tuple(map(vocabulary.index, side))) for side in (source, target, written)
    )
    passage = Passage(source_side, target_side, written_side, vocabulary.__getitem__, _SMOOTHING)
    model = _make_model(len(vocabulary))
    walked = walk_model(model, passage, layer=layer, head=head, query=query)
    assert walked.block is not None
    weights = {name: doubles(value) for name, value in model.state_dict().items()}
    return replace(
        walked,
        text=text,
        answer=text if answer is None else answer,
        block=replace(walked.block, weights=weights),
    )


def _words_of(text: str, what: str) -> list[str]:
    words = [word.text for word in split_text(text, "word")]
    if not words:
        raise DataError(_("{what} is empty. Give a sentence, such as 我爱水课.", what=what))
    if len(words) > _MAX_WORDS:
        raise DataError(
            _(
                "{what} has {n_words:,} words; without a bundle at most {n_allowed} fit, since every number is "
                "printed. Take a shorter one, or give a bundle.",
                what=what,
                n_words=len(words),
                n_allowed=_MAX_WORDS,
            )
        )
    return words


def _make_model(vocab_size: int) -> Transformer:
    """Make a model whose weights have one decimal, from a fixed seed."""
    settings = ModelSettings(
        vocab_size=vocab_size,
        width=4,
        n_heads=2,
        n_encoder_layers=1,
        n_decoder_layers=1,
        feed_forward_width=6,
        dropout=0.0,
    )
    with torch.random.fork_rng(devices=[]):  # its initialization must not touch the global random state
        # In double precision 0.3 is 0.3 to sixteen digits; in single precision it would be 0.300000012.
        model = Transformer(settings).double().eval()
    draw = random.Random(_SEED)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:  # γ = 1 and β = 0, as before training
                tenths = [draw.randint(-_TENTHS, _TENTHS) for _ in range(parameter.numel())]
                parameter.copy_(torch.tensor(tenths, dtype=torch.float64).reshape(parameter.shape) / 10)
    return model


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
    generator = torch.Generator().manual_seed(_SATURATION_SEED)
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
