"""Embeddings: token ids to vectors, and vectors to logits."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.model.dropout import Dropout
from manyheads.model.feed_forward import ACTIVATIONS
from manyheads.model.norms import NORMS, NoNorm
from manyheads.model.positions import LearnedPositions, NoPositions, SinusoidalPositions, at_least_single
from manyheads.model.settings import ModelSettings


class TokenEmbedding(nn.Module):
    """One vector per token of the vocabulary; the same matrix can embed ids and compute logits."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, width) * width**-0.5)

    def forward(self, ids: Int[Tensor, "B Q"]) -> Float[Tensor, "B Q W"]:
        """The vectors of these ids."""
        return nn.functional.embedding(ids, self.weight)

    def logits(self, hidden: Float[Tensor, "*B W"]) -> Float[Tensor, "*B V"]:
        """The dot product of each hidden vector with the vector of every token."""
        return nn.functional.linear(hidden, self.weight)

    def factors(self, hidden: Float[Tensor, "*B W"]) -> tuple[Float[Tensor, "*B W"], Float[Tensor, "V W"]]:
        """Vectors and a matrix whose products are the logits, for losses that do not store all of them."""
        return hidden, self.weight


class OutputLayer(nn.Module):
    """Logits with a bias, and with BERT's transform before: norm(f(x W + b)), with f of the feed-forward network."""

    def __init__(self, token_embedding: TokenEmbedding, settings: ModelSettings) -> None:
        super().__init__()
        self.token_embedding = token_embedding
        self.transform: nn.Module = OutputTransform(settings) if settings.output_transform else nn.Identity()
        self.bias = nn.Parameter(torch.zeros(settings.vocab_size)) if settings.output_bias else None

    @property
    def weight(self) -> nn.Parameter:
        """The vector of every token."""
        return self.token_embedding.weight

    def logits(self, hidden: Float[Tensor, "*B W"]) -> Float[Tensor, "*B V"]:
        """The dot product of each transformed vector with the vector of every token, and its bias."""
        return nn.functional.linear(self.transform(hidden), self.weight, self.bias)

    def factors(self, hidden: Float[Tensor, "*B W"]) -> tuple[Float[Tensor, "*B W1"], Float[Tensor, "V W1"]]:
        """Vectors and a matrix whose products are the logits; the bias is a column, for a feature that is 1."""
        hidden = self.transform(hidden)
        if self.bias is None:
            return hidden, self.weight
        ones = hidden.new_ones(*hidden.shape[:-1], 1)
        return torch.cat([hidden, ones], -1), torch.cat([self.weight, self.bias[:, None]], 1)


class OutputTransform(nn.Module):
    """norm(f(x W + b)): what BERT has before the output layer of its masked language model."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.dense = nn.Linear(settings.width, settings.width)
        self.activation = ACTIVATIONS[settings.activation]
        self.norm = nn.LayerNorm(settings.width, settings.norm_epsilon)

    def forward(self, x: Float[Tensor, "*B W"]) -> Float[Tensor, "*B W"]:
        """Transform each vector."""
        return self.norm(self.activation(self.dense(x)))


def make_output(token_embedding: TokenEmbedding, settings: ModelSettings) -> TokenEmbedding | OutputLayer:
    """The output layer: the embedding itself, as in 2017, unless the settings add something to it."""
    is_plain = not (settings.output_bias or settings.output_transform)
    return token_embedding if is_plain else OutputLayer(token_embedding, settings)


class Embedding(nn.Module):
    """dropout(√W · token vector + position vector), with a norm before the dropout if `embedding_norm` is set.

    Token vectors are initialized as N(0, 1/W); the factor √W gives them the magnitude of the sinusoids.
    """

    def __init__(self, token_embedding: TokenEmbedding, settings: ModelSettings) -> None:
        super().__init__()
        self.token_embedding = token_embedding
        self.positions = _make_positions(settings)
        self.scale = math.sqrt(settings.width) if settings.scale_embedding else 1.0
        self.norm = NORMS[settings.norm](settings.width, settings.norm_epsilon) if settings.embedding_norm else NoNorm()
        self.dropout = Dropout(settings.dropout)
        self.token_dropout = Dropout(settings.token_dropout)

    def forward(self, ids: Int[Tensor, "B Q"], positions: Int[Tensor, "#B Q"]) -> Float[Tensor, "B Q W"]:
        """The input of the first block."""
        vectors = self.token_dropout.drop_slices(self.scale * self.token_embedding(ids), n_axes=2)
        added = self.positions(positions, at_least_single(vectors.dtype)).to(vectors.dtype)
        return self.dropout(self.norm(vectors + added, torch.ones_like(ids, dtype=torch.bool)))


def _make_positions(settings: ModelSettings) -> nn.Module:
    match settings.positions:
        case "sinusoidal":
            return SinusoidalPositions(settings.width)
        case "learned":
            return LearnedPositions(settings.max_length, settings.width)
        case "rotary" | "alibi" | "none":  # rotary and ALiBi act inside attention
            return NoPositions()
