"""`ModelSettings`: every choice that makes one Transformer differ from another."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from manyheads.errors import RecipeError
from manyheads.messages import _, join_or
from manyheads.model.norms import NORMS
from manyheads.model.score_forms import SCORE_FORMS, HeadShape, ScoreForm
from manyheads.model.size import size_faults
from manyheads.settings import Range, Rate, did_you_mean, few, raise_faults, shown, toml_value, type_faults

Layers = Annotated[int, Range(0, 1000)]
Width = Annotated[int, Range(1, 65_536)]
Heads = Annotated[int, Range(1, 1024)]
_EXTENSIONS = (
    *("feed_forward_bias", "query_key_norm", "rotary_base", "rotary_scaling", "distance_buckets", "output_bias"),
    *("output_transform", "embedding_norm"),
)


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The Transformer to build. The defaults are those of the base model of 2017; None means "not set"."""

    # Number of tokens in the vocabulary; a recipe takes it from the tokenizer.
    vocab_size: Annotated[int, Range(1, 1_000_000)]
    # The stacks of the model: "encoder-decoder" for seq2seq, "encoder" for classify, tag and masked, "decoder" for
    # language models.
    shape: Literal["encoder-decoder", "encoder", "decoder"] = "encoder-decoder"
    width: Width = 512  # width of the embeddings and of the residual stream (d_model)
    n_encoder_layers: Layers = 6  # number of encoder layers
    n_decoder_layers: Layers = 6  # number of decoder layers
    feed_forward_width: Annotated[int, Range(1, 262_144)] = 2048  # hidden width of the feed-forward networks (d_ff)
    # Activation of the feed-forward networks; "swiglu" multiplies a SiLU gate with a second projection (Shazeer 2020),
    # "geglu" a GELU gate. "gelu-tanh" and "geglu-tanh" approximate GELU as GPT-2 does.
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "swiglu", "geglu", "geglu-tanh"] = "relu"
    feed_forward_bias: bool = True  # whether the feed-forward projections have a bias
    max_length: Annotated[int, Range(1, 1_000_000)] = 1024  # the most tokens of a sequence, special tokens included

    n_heads: Heads = 8  # number of attention heads (h)
    n_key_heads: Heads | None = None  # number of key and value heads; fewer than n_heads: grouped-query attention
    head_width: Width | None = None  # d_k; default: width / n_heads
    value_width: Width | None = None  # d_v; default: head_width
    attention_bias: bool = False  # whether the attention projections have a bias
    query_key_norm: bool = False  # scale each head's query and key to the same length, with learned weights (RMSNorm)
    # How queries and keys become attention scores; "scaled-dot" is q·k / √d_k.
    scores: str = field(default="scaled-dot", metadata={"choices": SCORE_FORMS})
    # "separate": W^Q, W^K and W^V; "tied": W^Q = W^K; "shared": one matrix for queries, keys and values; "none": no
    # matrices, not even W^O.
    projections: Literal["separate", "tied", "shared", "none"] = "separate"
    # How the model knows positions: vectors added to the embeddings ("sinusoidal", "learned"), rotated queries and
    # keys ("rotary"), a penalty on distance ("alibi"), or not at all ("none").
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "none"] = "sinusoidal"
    rotary_base: Annotated[float, Range(greater_than=1)] = (
        10_000.0  # the angles of pair i are p / base^(2i / head_width)
    )
    rotary_scaling: tuple[float, ...] = ()  # a factor of the angles of each pair, as models with a long context have
    # Add a learned bias to the scores of self-attention, one for each range of distances (Raffel 2020): the number of
    # ranges, 0 for none, and the distance from which on all share one.
    distance_buckets: Annotated[int, Range(0, 1024)] = 0
    max_distance: Annotated[int, Range(2, 100_000)] = 128  # of distance_buckets; longer distances share the last range
    # The original numbers of the heads that pruned attentions still have, as {"encoder.0.self": (0, 2)}.
    kept_heads: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)

    # What is normalized: the features of one token ("layer"; "rms" does not subtract the mean), each feature over the
    # batch ("batch", "batch-with-padding"), or a whole sample ("sample"). The last three show why "layer" is used.
    norm: str = field(default="layer", metadata={"choices": NORMS})
    norm_placement: Literal["post", "pre"] = "post"  # normalize after each residual sum, or before each sublayer
    norm_epsilon: Annotated[float, Range(greater_than=0, at_most=1)] = 1e-5  # added to the variance, which may be 0

    tie_source_target: bool = True  # source and target share one embedding
    tie_output: bool = True  # the output layer shares the weights of the target embedding
    output_bias: bool = False  # whether the output layer has a bias
    output_transform: bool = False  # a linear layer, the activation and a norm before the output layer, as BERT has
    scale_embedding: bool = True  # multiply embeddings by √width
    embedding_norm: bool = False  # normalize the sum of the token and position vectors, as BERT does

    dropout: Rate = 0.1  # dropout of the input of the first block and of the output of each sublayer
    attention_dropout: Rate = 0.0  # dropout of attention weights
    feed_forward_dropout: Rate = 0.0  # dropout of the hidden layer of the feed-forward network
    token_dropout: Rate = 0.0  # dropout of whole tokens: the embedding becomes zero, the position stays
    head_dropout: Rate = 0.0  # dropout of whole heads, independently for each sentence (Zhou 2020)

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "model.") or self._choice_faults() or self._faults() or size_faults(self))

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModelSettings":
        """The settings of a named size (tiny, small, deep-shallow, base, big), with any field changed."""
        if name not in PRESETS:
            raise RecipeError(
                _(
                    'model.preset = "{name}" is not a preset. {hint}',
                    name=name,
                    hint=did_you_mean(name, PRESETS),
                )
            )
        return cls(**{**PRESETS[name], **changes})

    @property
    def heads(self) -> HeadShape:
        """The sizes of an unpruned attention, with defaults filled in."""
        head_width = self.width // self.n_heads if self.head_width is None else self.head_width
        return HeadShape(
            n_heads=self.n_heads,
            n_key_heads=self.n_heads if self.n_key_heads is None else self.n_key_heads,
            head_width=head_width,
            value_width=head_width if self.value_width is None else self.value_width,
        )

    def heads_of(self, attention: str) -> HeadShape:
        """The sizes of one attention, which may have been pruned."""
        groups = self.groups_of(attention)
        return self.heads._replace(n_heads=sum(groups), n_key_heads=len(groups))

    def groups_of(self, attention: str) -> tuple[int, ...]:
        """The number of heads that share each key head of one attention; a key head without heads is removed."""
        kept, heads = self.kept_heads.get(attention, range(self.n_heads)), self.heads
        return tuple(Counter(number * heads.n_key_heads // heads.n_heads for number in kept).values())

    def attention_names(self) -> list[str]:
        """The names of all attentions, in the order of a forward pass."""
        names = [f"encoder.{layer}.self" for layer in range(self.n_encoder_layers if self.has_encoder else 0)]
        uses = ("self", "cross") if self.has_encoder else ("self",)
        layers = range(self.n_decoder_layers if self.has_decoder else 0)
        return names + [f"decoder.{layer}.{use}" for layer in layers for use in uses]

    @property
    def has_encoder(self) -> bool:
        """Whether the model has a stack that reads a source."""
        return self.shape != "decoder"

    @property
    def has_decoder(self) -> bool:
        """Whether the model has a stack that writes a target."""
        return self.shape != "encoder"

    @property
    def has_cross_attention(self) -> bool:
        """Whether the decoder attends to an encoded source."""
        return self.has_encoder and self.has_decoder

    @property
    def score_form(self) -> type[ScoreForm]:
        """The class that `scores` names."""
        return SCORE_FORMS[self.scores]

    @property
    def extensions(self) -> list[str]:
        """What this model has beyond the Transformer of 2017 that other engines and formats may lack, as TOML."""
        return [
            f"model.{name} = {toml_value(getattr(self, name))}"
            for name in _EXTENSIONS
            if getattr(self, name) != self.__dataclass_fields__[name].default
        ]

    @property
    def has_gated_feed_forward(self) -> bool:
        """Whether the feed-forward networks have a third projection, the gate."""
        return "glu" in self.activation

    @property
    def mixes_positions(self) -> bool:
        """Whether the norm mixes positions: such a model cannot use caches or train on packed rows (see `Norm`)."""
        return NORMS[self.norm].mixes_positions

    @property
    def is_length_limited(self) -> bool:
        """Whether sequences longer than `max_length` cannot be represented."""
        return self.positions == "learned" or self.score_form.needs_max_length

    def _choice_faults(self) -> list[str]:
        return [
            f"model.{name} = {shown(value)} is not one of {', '.join(map(toml_value, known))}."
            for name, value, known in (("scores", self.scores, SCORE_FORMS), ("norm", self.norm, NORMS))
            if value not in known
        ]

    def _faults(self) -> list[str]:
        empty = [
            _(
                'model.n_{stack}_layers = 0 must be at least 1 for model.shape = "{shape}".',
                stack=stack,
                shape=self.shape,
            )
            for stack in self.shape.split("-")
            if not getattr(self, f"n_{stack}_layers")
        ]
        return [*empty, *self._head_faults(), *self._position_faults(), *self._kept_faults()]

    @property
    def _heads_divide_width(self) -> bool:
        return self.head_width is not None or self.width % self.n_heads == 0

    def _head_faults(self) -> list[str]:
        faults = []
        if self.n_key_heads is not None and self.n_heads % self.n_key_heads:
            faults.append(
                _(
                    "model.n_key_heads = {n_key_heads} does not divide model.n_heads = {n_heads}. Use {divisors}.",
                    n_key_heads=self.n_key_heads,
                    n_heads=self.n_heads,
                    divisors=_near_divisors(self.n_heads, self.n_key_heads),
                )
            )
        if self.projections != "separate" and self.n_key_heads not in (None, self.n_heads):
            faults.append(
                _(
                    'model.projections = "{projections}" needs model.n_key_heads = model.n_heads.',
                    projections=self.projections,
                )
            )
        if self.projections != "separate" and not self.score_form.reads_keys:
            faults.append(
                _(
                    'model.scores = "{scores}" has no keys to tie: use model.projections = "separate".',
                    scores=self.scores,
                )
            )
        if not self._heads_divide_width:
            faults.append(
                _(
                    "model.n_heads = {n_heads} does not divide model.width = {width}. Use {divisors}{or_else}",
                    n_heads=self.n_heads,
                    width=self.width,
                    divisors=_near_divisors(self.width, self.n_heads),
                    or_else=_(".") if self.projections == "none" else _(", or set model.head_width."),
                )
            )
            return faults  # the checks below compare widths, which are undefined
        heads = self.heads
        if self.projections in ("shared", "none") and heads.value_width != heads.head_width:
            faults.append(
                _(
                    'model.projections = "{projections}" needs model.value_width = model.head_width.',
                    projections=self.projections,
                )
            )
        if self.projections == "none" and heads.n_heads * heads.head_width != self.width:
            faults.append(_('model.projections = "none" needs model.n_heads × model.head_width = model.width.'))
        return faults

    def _position_faults(self) -> list[str]:
        faults = []
        if self.positions == "rotary" and self._heads_divide_width and self.heads.head_width % 2:
            faults.append(
                _(
                    'model.positions = "rotary" rotates pairs: model.head_width = {head_width} must be even.',
                    head_width=self.heads.head_width,
                )
            )
        if self.positions == "rotary" and not self.score_form.reads_keys:
            faults.append(
                _(
                    'model.positions = "rotary" has no keys to rotate with model.scores = "{scores}".',
                    scores=self.scores,
                )
            )
        n_pairs = self.heads.head_width // 2 if self._heads_divide_width else 0
        if self.rotary_scaling and n_pairs and len(self.rotary_scaling) != n_pairs:
            faults.append(
                _(
                    "model.rotary_scaling has {n_factors} factors, one for each pair of features is needed: {n_pairs}.",
                    n_factors=len(self.rotary_scaling),
                    n_pairs=n_pairs,
                )
            )
        if self.distance_buckets and self.positions in ("rotary", "alibi"):
            faults.append(
                _(
                    'model.distance_buckets = {buckets} needs positions outside attention, not "{positions}".',
                    buckets=self.distance_buckets,
                    positions=self.positions,
                )
            )
        if self.output_transform and self.has_gated_feed_forward:
            faults.append(
                _(
                    'model.output_transform has no gate: it does not fit model.activation = "{activation}".',
                    activation=self.activation,
                )
            )
        if self.positions == "sinusoidal" and self.width % 2:
            faults.append(
                _(
                    'model.positions = "sinusoidal" pairs sines and cosines: model.width = {width} must be even.',
                    width=self.width,
                )
            )
        return faults

    def _kept_faults(self) -> list[str]:
        faults: list[str] = []
        known = self.attention_names()
        if self.kept_heads and self.projections == "none":
            faults.append(
                _('model.kept_heads needs W^O: a model with model.projections = "none" cannot be pruned. Remove it.')
            )
        for name, kept in few(self.kept_heads.items(), faults):
            setting = f"model.kept_heads.{shown(name)} = {shown(kept)}"
            if name not in known:
                hint = did_you_mean(name, known)
                faults.append(_("{setting} names an unknown attention. {hint}", setting=setting, hint=hint))
            elif any(not 0 <= number < self.n_heads for number in kept):
                last = self.n_heads - 1
                faults.append(_("{setting} must contain head numbers from 0 to {last}.", setting=setting, last=last))
            elif list(kept) != sorted(set(kept)):
                faults.append(_("{setting} must contain each head once, in ascending order.", setting=setting))
        return faults


def _near_divisors(number: int, target: int) -> str:
    """The three divisors of `number` that are nearest to `target` by ratio, as "4, 8 or 16"."""
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    return join_or(sorted(sorted(divisors, key=lambda d: max(d / target, target / d))[:3]))


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "n_encoder_layers": 4, "n_decoder_layers": 4, "width": 128, "feed_forward_width": 256, "n_heads": 4,
    },
    "small": {
        "n_encoder_layers": 4, "n_decoder_layers": 4, "width": 256, "feed_forward_width": 1024, "n_heads": 4,
    },
    # About as many parameters as tiny, most of them in the encoder, which runs once per sentence: faster to decode.
    "deep-shallow": {
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
