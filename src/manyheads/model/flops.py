"""FLOP of training a Transformer, counted from its settings and the shape of a batch, without building it.

A multiplication and an addition count as two FLOP. Only matrix products count, as is usual: norms, softmax, dropout and
the optimizer take time, but hardly any FLOP. The backward pass costs twice the forward pass, since each product has two
factors to differentiate by. Of a causal mask, only the visible half of the pairs counts.
"""

from dataclasses import dataclass

from manyheads.model.settings import ModelSettings

Number = int | float
PASSES = 3  # one forward pass, and a backward pass that costs two


@dataclass(frozen=True, kw_only=True)
class BatchShape:
    """The positions of a batch, padding included, and the pairs of a query and a key that it can see."""

    n_rows: Number
    n_source: Number = 0
    n_target: Number = 0
    source_pairs: Number = 0  # Σ s² over rows, for the self-attention of the encoder
    target_pairs: Number = 0  # Σ t (t + 1) / 2, for the causal self-attention of the decoder
    cross_pairs: Number = 0  # Σ s t
    n_outputs: Number = 0  # positions whose next token is predicted

    @classmethod
    def of_rows(
        cls, n_rows: Number, source_length: Number = 0, target_length: Number = 0, *, output_share: Number = 0
    ) -> "BatchShape":
        """The shape of rows of equal length; `output_share`: the share of an encoder's positions that is predicted."""
        return cls(
            n_rows=n_rows,
            n_source=n_rows * source_length,
            n_target=n_rows * target_length,
            source_pairs=n_rows * source_length**2,
            target_pairs=n_rows * target_length * (target_length + 1) / 2,
            cross_pairs=n_rows * source_length * target_length,
            n_outputs=n_rows * (target_length or source_length * output_share),
        )

    @property
    def n_positions(self) -> Number:
        """Source and target positions together."""
        return self.n_source + self.n_target


def forward_flop(settings: ModelSettings, shape: BatchShape) -> dict[str, Number]:
    """FLOP of one forward pass by part of the model.

    W: width; F: feed-forward width; Q, K and V: width of the queries, keys and values of all heads.

        projections     2 W (Q + K + V) + 2 V W for each position that is projected
        attention       2 (Q + V) for each pair of a query and a key
        feed-forward    2 · 2 W F for each position and layer (3 matrices instead of 2 for SwiGLU)
        softmax layer   2 W · vocabulary for each position whose next token is predicted
    """
    width, n_matrices = settings.width, 3 if settings.has_gated_feed_forward else 2
    feed_forward = 2 * n_matrices * width * settings.feed_forward_width
    projections: Number = 0
    attention: Number = 0
    for name in settings.attention_names():
        heads = settings.heads_of(name)
        queries, values = heads.n_heads * heads.head_width, heads.n_heads * heads.value_width
        keys, own_values = heads.n_key_heads * heads.head_width, heads.n_key_heads * heads.value_width
        n_queries, n_keys, pairs = _sizes(name, shape)
        if settings.projections != "none":
            own_values *= settings.projections != "shared"  # the values are the keys
            projections += 2 * width * (n_queries * (queries + values) + n_keys * (keys + own_values))
        attention += 2 * pairs * (queries + values)
    return {
        "projections": projections,
        "attention": attention,
        "feed-forward": feed_forward
        * (
            settings.has_encoder * settings.n_encoder_layers * shape.n_source
            + settings.has_decoder * settings.n_decoder_layers * shape.n_target
        ),
        "softmax layer": 2 * width * settings.vocab_size * shape.n_outputs,
    }


def training_flop(settings: ModelSettings, shape: BatchShape) -> Number:
    """FLOP of one update on a batch of this shape: forward and backward."""
    return PASSES * sum(forward_flop(settings, shape).values())


def _sizes(attention: str, shape: BatchShape) -> tuple[Number, Number, Number]:
    """The number of queries, of keys and of pairs of one attention."""
    if attention.startswith("encoder."):
        return shape.n_source, shape.n_source, shape.source_pairs
    if attention.endswith(".cross"):
        return shape.n_target, shape.n_source, shape.cross_pairs
    return shape.n_target, shape.n_target, shape.target_pairs
