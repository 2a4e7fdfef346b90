"""Blocks: attention and feed-forward, each wrapped in residual, norm and dropout, stacked into layers."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.model.attention import MultiHeadAttention, Strategies
from manyheads.model.dropout import Dropout
from manyheads.model.feed_forward import make_feed_forward
from manyheads.model.kv_cache import KeyValueCache
from manyheads.model.masks import View
from manyheads.model.norms import make_norm
from manyheads.model.positions import AlibiPositions, NoRelativePositions, RotaryPositions
from manyheads.model.projections import make_projections
from manyheads.model.score_forms import ScaledDot, make_score_form
from manyheads.model.settings import ModelSettings
from manyheads.model.tap import Tap

Change = Callable[[Tensor], Tensor]


class PostNorm(nn.Module):
    """norm(x + dropout(f(x))): as in 2017. The residual path itself is normalized."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.norm = make_norm(settings)
        self.dropout = Dropout(settings.dropout)

    def forward(
        self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"], change: Change
    ) -> Float[Tensor, "B Q W"]:
        """One sub-layer."""
        return self.norm(x + self.dropout(change(x)), is_real)


class PreNorm(PostNorm):
    """x + dropout(f(norm(x))): the residual path stays clean, which trains deeper stacks with less care."""

    def forward(
        self, x: Float[Tensor, "B Q W"], is_real: Bool[Tensor, "B Q"], change: Change
    ) -> Float[Tensor, "B Q W"]:
        """One sub-layer."""
        return x + self.dropout(change(self.norm(x, is_real)))


def make_sublayer(settings: ModelSettings) -> PostNorm:
    """The wrapping the settings name."""
    return PreNorm(settings) if settings.norm_placement == "pre" else PostNorm(settings)


class EncoderBlock(nn.Module):
    """Self-attention over the whole source, then feed-forward."""

    def __init__(self, name: str, settings: ModelSettings) -> None:
        super().__init__()
        self.attention = make_self_attention(f"{name}.self", settings)
        self.feed_forward = make_feed_forward(settings)
        self.attention_sublayer = make_sublayer(settings)
        self.feed_forward_sublayer = make_sublayer(settings)

    def forward(
        self,
        x: Float[Tensor, "B S W"],
        is_real: Bool[Tensor, "B S"],
        view: View,
        *,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B S W"]:
        """One layer further."""
        x = self.attention_sublayer(x, is_real, lambda y: self.attention(y, y, view, tap=tap))
        return self.feed_forward_sublayer(x, is_real, self.feed_forward)


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the encoder's output where there is one, feed-forward."""

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
        """One layer further; `memory` is the encoder's output."""
        self_cache, cross_cache = caches or (None, None)
        x = self.attention_sublayer(x, is_real, lambda y: self.attention(y, y, view, cache=self_cache, tap=tap))
        if memory is not None and memory_view is not None:
            x = self.cross_attention_sublayer(
                x,
                is_real,
                lambda y: self.cross_attention(y, memory, memory_view, cache=cross_cache, tap=tap),
            )
        return self.feed_forward_sublayer(x, is_real, self.feed_forward)


class NoHeads(nn.Module):
    """What is left of an attention that was pruned of all its heads: the bias of W^O, if it had one."""

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
        """The same for every position, whatever it might have seen."""
        nothing = torch.zeros_like(queries_from)
        return nothing if self.bias is None else nothing + self.bias


def make_self_attention(name: str, settings: ModelSettings) -> nn.Module:
    """Attention within one sequence, with the settings' score form and relative positions."""
    heads = settings.heads_of(name)
    if not heads.n_heads:
        return NoHeads(settings.width, bias=settings.attention_bias)
    scores = make_score_form(settings, heads)
    projections = make_projections(settings, heads, has_queries=scores.reads_queries, has_keys=scores.reads_keys)
    return _make_attention(name, settings, Strategies(projections, scores, _make_relative_positions(name, settings)))


def make_cross_attention(name: str, settings: ModelSettings) -> nn.Module:
    """Attention from one sequence to another: distance between them means nothing, so no relative positions.

    A synthesizer replaces self-attention only: without looking at the source there is nothing to translate.
    """
    heads = settings.heads_of(name)
    if not heads.n_heads:
        return NoHeads(settings.width, bias=settings.attention_bias)
    scores = ScaledDot() if settings.scores.endswith("synthesizer") else make_score_form(settings, heads)
    return _make_attention(name, settings, Strategies(make_projections(settings, heads), scores, NoRelativePositions()))


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
    match settings.positions:
        case "rotary":
            return RotaryPositions(settings.heads.head_width)
        case "alibi":
            return AlibiPositions(settings.n_heads, settings.kept_heads.get(name))
        case _:
            return NoRelativePositions()
