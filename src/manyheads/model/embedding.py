"""Embeddings: token ids to vectors, and vectors to logits."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.model.dropout import Dropout
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
