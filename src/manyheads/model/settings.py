"""`ModelSettings`: every choice that makes one Transformer differ from another, frozen and checked."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from manyheads.errors import RecipeError
from manyheads.settings import did_you_mean, raise_faults, toml_value, type_faults


class HeadShape(NamedTuple):
    """How many heads an attention has, and how wide each one is."""

    n_heads: int
    n_key_heads: int  # fewer than n_heads: grouped queries; 1: multi-query
    head_width: int  # d_k
    value_width: int  # d_v


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The Transformer to build. The defaults are the base model of 2017."""

    vocab_size: int
    shape: Literal["encoder-decoder", "encoder", "decoder"] = "encoder-decoder"
    width: int = 512
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    feed_forward_width: int = 2048
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    max_length: int = 1024

    n_heads: int = 8
    n_key_heads: int = 0  # 0: as many as n_heads
    head_width: int = 0  # d_k; 0: width / n_heads
    value_width: int = 0  # d_v; 0: head_width
    attention_bias: bool = False
    scores: Literal[
        "scaled-dot", "dot", "cosine", "bilinear", "additive", "dense-synthesizer", "random-synthesizer"
    ] = "scaled-dot"
    projections: Literal["separate", "tied", "shared", "none"] = "separate"
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "none"] = "sinusoidal"
    # Of attentions that were pruned, the numbers that their heads had before, as {"encoder.0.self": (0, 2)}.
    kept_heads: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)

    norm: Literal["layer", "rms", "batch", "batch-with-padding", "sample"] = "layer"
    norm_placement: Literal["post", "pre"] = "post"
    norm_epsilon: float = 1e-5

    tie_source_target: bool = True
    tie_output: bool = True
    scale_embedding: bool = True

    dropout: float = 0.1  # of what enters the first block, and of what each sub-layer adds to the residual path
    attention_dropout: float = 0.0  # of attention weights
    feed_forward_dropout: float = 0.0  # of the feed-forward's inner numbers
    token_dropout: float = 0.0  # of whole words: their vector is all zeros, their position is known
    head_dropout: float = 0.0  # of whole heads, one sentence at a time (Zhou 2020)

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "model.") or self._faults())

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModelSettings":
        """A named size (tiny, small, deep-shallow, base, big) with any field changed."""
        if name not in PRESETS:
            raise RecipeError(f'model.preset = "{name}" is not a preset. {did_you_mean(name, PRESETS)}')
        return cls(**{**PRESETS[name], **changes})

    @property
    def heads(self) -> HeadShape:
        """The head sizes with their defaults filled in."""
        head_width = self.head_width or self.width // self.n_heads
        return HeadShape(self.n_heads, self.n_key_heads or self.n_heads, head_width, self.value_width or head_width)

    def heads_of(self, attention: str) -> HeadShape:
        """The head sizes of one attention, which may have fewer heads than the others."""
        groups = self.groups_of(attention)
        return self.heads._replace(n_heads=sum(groups), n_key_heads=len(groups))

    def groups_of(self, attention: str) -> tuple[int, ...]:
        """How many heads read each key head of one attention; a key head is left as long as one of its heads is."""
        kept, heads = self.kept_heads.get(attention, range(self.n_heads)), self.heads
        return tuple(Counter(number * heads.n_key_heads // heads.n_heads for number in kept).values())

    def attention_names(self) -> list[str]:
        """Of every attention, in the order a forward pass meets them."""
        names = [f"encoder.{layer}.self" for layer in range(self.n_encoder_layers if self.has_encoder else 0)]
        uses = ("self", "cross") if self.has_encoder else ("self",)
        layers = range(self.n_decoder_layers if self.has_decoder else 0)
        return names + [f"decoder.{layer}.{use}" for layer in layers for use in uses]

    @property
    def has_encoder(self) -> bool:
        """Whether there is a stack that reads a source."""
        return self.shape != "decoder"

    @property
    def has_decoder(self) -> bool:
        """Whether there is a stack that writes a target."""
        return self.shape != "encoder"

    def _faults(self) -> list[str]:
        sizes = ("vocab_size", "width", "feed_forward_width", "max_length", "n_heads")
        layers = [f"n_{stack}_layers" for stack in ("encoder", "decoder") if getattr(self, f"has_{stack}")]
        faults = [
            f"model.{name} = {getattr(self, name)} must be at least 1."
            for name in (*sizes, *layers)
            if getattr(self, name) < 1
        ]
        faults += [
            f"model.{name} = {getattr(self, name)} must not be negative."
            for name in ("n_key_heads", "head_width", "value_width")
            if getattr(self, name) < 0
        ]
        faults += [
            f"model.{name} = {getattr(self, name)} must be at least 0 and less than 1."
            for name in ("dropout", *(f"{kind}_dropout" for kind in ("attention", "feed_forward", "token", "head")))
            if not 0.0 <= getattr(self, name) < 1.0
        ]
        if not 0.0 < self.norm_epsilon < math.inf:
            faults.append(f"model.norm_epsilon = {self.norm_epsilon} must be greater than 0.")
        return faults or [*self._head_faults(), *self._position_faults(), *self._kept_faults()]

    @property
    def _heads_are_whole(self) -> bool:
        return self.head_width > 0 or self.width % self.n_heads == 0

    def _head_faults(self) -> list[str]:
        faults = []
        if self.n_key_heads and self.n_heads % self.n_key_heads:
            faults.append(
                f"model.n_key_heads = {self.n_key_heads} does not divide model.n_heads = {self.n_heads}. "
                f"Use {_near_divisors(self.n_heads, self.n_key_heads)}."
            )
        if self.projections != "separate" and self.n_key_heads not in (0, self.n_heads):
            faults.append(f'model.projections = "{self.projections}" needs model.n_key_heads = model.n_heads.')
        if self.scores.endswith("synthesizer") and self.projections != "separate":
            faults.append(f'model.scores = "{self.scores}" has no keys to tie: use model.projections = "separate".')
        if not self._heads_are_whole:
            or_else = "." if self.projections == "none" else ", or set model.head_width."
            faults.append(
                f"model.n_heads = {self.n_heads} does not divide model.width = {self.width}. "
                f"Use {_near_divisors(self.width, self.n_heads)}{or_else}"
            )
            return faults  # the widths that the checks below compare are not known
        heads = self.heads
        if self.projections in ("shared", "none") and heads.value_width != heads.head_width:
            faults.append(f'model.projections = "{self.projections}" needs model.value_width = model.head_width.')
        if self.projections == "none" and heads.n_heads * heads.head_width != self.width:
            faults.append('model.projections = "none" needs model.n_heads × model.head_width = model.width.')
        return faults

    def _position_faults(self) -> list[str]:
        faults = []
        if self.positions == "rotary" and self._heads_are_whole and self.heads.head_width % 2:
            faults.append(
                f'model.positions = "rotary" rotates pairs: model.head_width = {self.heads.head_width} must be even.'
            )
        if self.positions == "rotary" and self.scores.endswith("synthesizer"):
            faults.append(f'model.positions = "rotary" has no keys to rotate with model.scores = "{self.scores}".')
        if self.positions == "sinusoidal" and self.width % 2:
            faults.append(
                f'model.positions = "sinusoidal" pairs sines and cosines: model.width = {self.width} must be even.'
            )
        return faults

    def _kept_faults(self) -> list[str]:
        faults, known = [], self.attention_names()
        if self.kept_heads and self.projections == "none":
            faults.append(
                'model.kept_heads needs W^O: without projections (model.projections = "none") no head can go.'
            )
        for name, kept in self.kept_heads.items():
            where = f'model.kept_heads."{name}" = {toml_value(kept)}'
            if name not in known:
                faults.append(f"{where} is of no attention of this model. {did_you_mean(name, known)}")
            elif any(not 0 <= number < self.n_heads for number in kept):
                faults.append(f"{where} should be numbers of heads: from 0 to {self.n_heads - 1}.")
            elif list(kept) != sorted(set(kept)):
                faults.append(f"{where} should name each head once, in their order.")
        return faults


def _near_divisors(number: int, wanted: int) -> str:
    """The three divisors of a number nearest to a wanted one by ratio, as "4, 8 or 16"."""
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    *others, last = sorted(sorted(divisors, key=lambda d: max(d / wanted, wanted / d))[:3])
    return f"{', '.join(map(str, others))} or {last}" if others else str(last)


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "n_encoder_layers": 4, "n_decoder_layers": 4, "width": 128, "feed_forward_width": 256, "n_heads": 4,
    },
    "small": {
        "n_encoder_layers": 4, "n_decoder_layers": 4, "width": 256, "feed_forward_width": 1024, "n_heads": 4,
    },
    "deep-shallow": {  # as many numbers to learn as tiny's, most of them where they are used once a sentence
        "n_encoder_layers": 12, "n_decoder_layers": 1, "width": 128, "feed_forward_width": 256, "n_heads": 4,
        "norm_placement": "pre",
    },
    "base": {
        "n_encoder_layers": 6, "n_decoder_layers": 6, "width": 512, "feed_forward_width": 2048, "n_heads": 8,
    },
    "big": {
        "n_encoder_layers": 6, "n_decoder_layers": 6, "width": 1024, "feed_forward_width": 4096, "n_heads": 16,
        "dropout": 0.3,
    },
}  # fmt: skip
