"""Encoder and decoder blocks: attention and feed-forward sublayers, each with residual connection, norm and dropout."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.model.attention import MultiHeadAttention, Strategies
from manyheads.model.dropout import Dropout
from manyheads.model.feed_forward import make_feed_forward
from manyheads.model.kv_cache import KeyValueCache
from manyheads.model.masks import View
from manyheads.model.norms import NORMS, NoNorm, Norm
from manyheads.model.positions import AlibiPositions, BucketedPositions, NoRelativePositions, RotaryPositions
from manyheads.model.projections import make_projections
from manyheads.model.score_forms import ScaledDot
from manyheads.model.settings import ModelSettings
from manyheads.model.tap import Tap

Sublayer = Callable[[Tensor], Tensor]


class PostNorm(nn.Module):
    """norm(x + dropout(f(x))), as in 2017: the residual stream itself is normalized."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.norm = make_norm(settings)
        self.dropout = Dropout(settings.dropout)

    def forward(
        self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"], sublayer: Sublayer
    ) -> Float[Tensor, "B Q W"]:
        """Apply one sublayer."""
        return self.norm(x + self.dropout(sublayer(x)), is_real)


class PreNorm(PostNorm):
    """x + dropout(f(norm(x))): the residual stream is not normalized, which makes deep stacks easier to train."""

    def forward(
        self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"], sublayer: Sublayer
    ) -> Float[Tensor, "B Q W"]:
        """Apply one sublayer."""
        return x + self.dropout(sublayer(self.norm(x, is_real)))


class EncoderBlock(nn.Module):
    """Self-attention over the whole source, then feed-forward."""

    def __init__(self, name: str, settings: ModelSettings) -> None:
        super().__init__()
        self.attention = make_self_attention(f"{name}.self", settings)
        self.feed_forward = make_feed_forward(settings)
        self.attention_sublayer = make_sublayer(settings)
        self.feed_forward_sublayer = make_sublayer(settings)

    def forward(
        self, x: Float[Tensor, "B S W"], is_real: Bool[Tensor, "B S"], view: View, *, tap: Tap | None = None
    ) -> Float[Tensor, "B S W"]:
        """The output of this layer."""
        x = self.attention_sublayer(x, is_real, lambda y: self.attention(y, y, view, tap=tap))
        return self.feed_forward_sublayer(x, is_real, self.feed_forward)


class DecoderBlock(nn.Module):
    """Causal self-attention, then cross-attention if the model has an encoder, then feed-forward."""

    def __init__(self, name: str, settings: ModelSettings) -> None:
        super().__init__()
        self.attention = make_self_attention(f"{name}.self", settings)
        self.feed_forward = make_feed_forward(settings)
        self.attention_sublayer = make_sublayer(settings)
        self.feed_forward_sublayer = make_sublayer(settings)
        if settings.has_encoder:
            self.cross_attention = make_cross_attention(f"{name}.cross", settings)
            self.cross_attention_sublayer = make_sublayer(settings)

    def forward(
        self,
        x: Float[Tensor, "B T W"],
        is_real: Bool[Tensor, "B T"],
        view: View,
        memory: Float[Tensor, "B S W"] | None,
        memory_view: View | None,
        *,
        caches: tuple[KeyValueCache, KeyValueCache] | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B T W"]:
        """The output of this layer; `memory` is the output of the encoder."""
        self_cache, cross_cache = caches or (None, None)
        x = self.attention_sublayer(x, is_real, lambda y: self.attention(y, y, view, cache=self_cache, tap=tap))
        if memory is not None and memory_view is not None:
            x = self.cross_attention_sublayer(
                x, is_real, lambda y: self.cross_attention(y, memory, memory_view, cache=cross_cache, tap=tap)
            )
        return self.feed_forward_sublayer(x, is_real, self.feed_forward)


class NoHeads(nn.Module):
    """An attention whose heads have all been pruned: it outputs the bias of W^O, or zeros if W^O has none."""

    def __init__(self, width: int, *, bias: bool) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(
        self,
        queries_from: Float[Tensor, "B Q W"],
        keys_from: Float[Tensor, "B K0 W"],
        view: View,
        *,
        cache: KeyValueCache | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B Q W"]:
        """The same vector at every position."""
        zeros = torch.zeros_like(queries_from)
        return zeros if self.bias is None else zeros + self.bias


def make_norm(settings: ModelSettings) -> Norm:
    """The norm that the settings name."""
    return NORMS[settings.norm](settings.width, settings.norm_epsilon)


def make_final_norm(settings: ModelSettings) -> nn.Module:
    """The norm after the last block: only a pre-norm stack needs one, because its residual stream is not normalized."""
    return make_norm(settings) if settings.norm_placement == "pre" else NoNorm()


def make_sublayer(settings: ModelSettings) -> PostNorm:
    """The residual wrapper that the settings name."""
    return PreNorm(settings) if settings.norm_placement == "pre" else PostNorm(settings)


def make_self_attention(name: str, settings: ModelSettings) -> nn.Module:
    """Attention within one sequence, with the score form and relative positions that the settings name."""
    heads = settings.heads_of(name)
    if not heads.n_heads:
        return NoHeads(settings.width, bias=settings.attention_bias)
    form = settings.score_form
    scores = form(heads, settings.max_length)
    projections = make_projections(settings, heads, has_queries=form.reads_queries, has_keys=form.reads_keys)
    return _make_attention(name, settings, Strategies(projections, scores, _make_relative_positions(name, settings)))


def make_cross_attention(name: str, settings: ModelSettings) -> nn.Module:
    """Attention from the decoder to the encoder, without relative positions: distances between sequences mean nothing.

    A score form that reads no keys cannot see the source, so `ScaledDot` is used instead.
    """
    heads = settings.heads_of(name)
    if not heads.n_heads:
        return NoHeads(settings.width, bias=settings.attention_bias)
    form = settings.score_form if settings.score_form.reads_keys else ScaledDot
    scores = form(heads, settings.max_length)
    projections = make_projections(settings, heads, has_queries=form.reads_queries)
    return _make_attention(name, settings, Strategies(projections, scores, NoRelativePositions()))


def _make_attention(name: str, settings: ModelSettings, strategies: Strategies) -> MultiHeadAttention:
    return MultiHeadAttention(
        name,
        settings.width,
        settings.heads_of(name),
        settings.groups_of(name),
        strategies,
        bias=settings.attention_bias,
        dropout=settings.attention_dropout,
        head_dropout=settings.head_dropout,
    )


def _make_relative_positions(name: str, settings: ModelSettings) -> NoRelativePositions:
    if settings.distance_buckets:
        n_heads, n_buckets = settings.heads_of(name).n_heads, settings.distance_buckets
        is_causal = name.startswith("decoder.")
        return BucketedPositions(n_heads, n_buckets, settings.max_distance, is_causal=is_causal)
    match settings.positions:
        case "rotary":
            return RotaryPositions(settings.heads.head_width, settings.rotary_base, settings.rotary_scaling)
        case "alibi":
            return AlibiPositions(settings.n_heads, settings.kept_heads.get(name))
        case _:
            return NoRelativePositions()
