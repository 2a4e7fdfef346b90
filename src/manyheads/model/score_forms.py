"""Score forms: how well a query matches a key, before the softmax.

Each form is a module behind one interface: queries and keys in, scores out. Forms that are a dot product in disguise
also `prepare` queries and keys such that the score is their product times a `scale`, which the fused path of attention
needs. The paper's form is `ScaledDot`; the rest are for experiments.
"""

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.model.masks import View
from manyheads.model.settings import HeadShape, ModelSettings


class ScoreForm(nn.Module):
    """The interface."""

    reads_queries: ClassVar[bool] = True
    reads_keys: ClassVar[bool] = True

    def forward(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D2"], view: View
    ) -> Float[Tensor, "B H Q K"]:
        """How well each query matches each key."""
        raise TypeError(f"{type(self).__name__} is not a score form by itself.")


class DotForm(ScoreForm):
    """Forms whose score is a dot product once queries and keys are prepared; these take the fused path."""

    def scale(self, head_width: int) -> float:
        """What every product is multiplied by."""
        return 1.0

    def prepare(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]
    ) -> tuple[Float[Tensor, "B H Q D"], Float[Tensor, "B H K D"]]:
        """Queries and keys such that the score is scale · q · k."""
        return q, k

    def forward(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        view: View,
    ) -> Float[Tensor, "B H Q K"]:
        """How well each query matches each key."""
        q, k = self.prepare(q, k)
        return (q * self.scale(q.size(-1))) @ k.mT


class ScaledDot(DotForm):
    """q · k / √d_k: the paper's form. Unscaled, the products' spread grows with d_k and the softmax saturates."""

    def scale(self, head_width: int) -> float:
        """1 / √d_k."""
        return 1.0 / math.sqrt(head_width)


class PlainDot(DotForm):
    """q · k, without the scale."""


class Cosine(DotForm):
    """τ · cos(q, k): only directions count; each head learns its own τ, at first √d_k."""

    def __init__(self, heads: HeadShape) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.full((heads.n_heads, 1, 1), math.sqrt(heads.head_width)))

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Unit vectors, the queries' as long as τ."""
        return self.temperature * F.normalize(q, dim=-1), F.normalize(k, dim=-1)


class Bilinear(DotForm):
    """q W k / √d_k with one matrix a head (Luong's "general"), which starts as the identity."""

    def __init__(self, heads: HeadShape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(heads.head_width).repeat(heads.n_heads, 1, 1))

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """The matrix moves to the queries' side."""
        return q @ self.weight / math.sqrt(q.size(-1)), k


class Additive(ScoreForm):
    """w · tanh(q + k) with one vector a head (Bahdanau 2015); needs room for Q × K × D numbers."""

    def __init__(self, heads: HeadShape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(heads.n_heads, heads.head_width) * heads.head_width**-0.5)

    def forward(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        view: View,
    ) -> Float[Tensor, "B H Q K"]:
        """How well each query matches each key."""
        return torch.einsum("bhqkd,hd->bhqk", torch.tanh(q[:, :, :, None] + k[:, :, None]), self.weight)


class DenseSynthesizer(ScoreForm):
    """A score for every position straight from the query, which never meets a key (Tay 2021)."""

    reads_keys = False

    def __init__(self, heads: HeadShape, max_length: int) -> None:
        super().__init__()
        scale = heads.head_width**-0.5
        self.weight = nn.Parameter(torch.randn(heads.n_heads, heads.head_width, max_length) * scale)

    def forward(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K 0"],
        view: View,
    ) -> Float[Tensor, "B H Q K"]:
        """The score each query gives to each position."""
        positions = view.key_positions.expand(q.size(0), -1)[:, None, None, :].expand(-1, q.size(1), q.size(2), -1)
        return (q.relu() @ self.weight).gather(-1, positions)


class RandomSynthesizer(ScoreForm):
    """One learned table of scores a head, the same for every sentence (Tay 2021)."""

    reads_queries = False
    reads_keys = False

    def __init__(self, heads: HeadShape, max_length: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(heads.n_heads, max_length, max_length))

    def forward(
        self,
        q: Float[Tensor, "B H Q 0"],
        k: Float[Tensor, "B H K 0"],
        view: View,
    ) -> Float[Tensor, "B H Q K"]:
        """The score of each pair of positions."""
        scores = self.weight[:, view.query_positions[..., :, None], view.key_positions[..., None, :]]
        return scores.transpose(0, 1).expand(q.size(0), -1, -1, -1)


def make_score_form(settings: ModelSettings, heads: HeadShape) -> ScoreForm:
    """The score form the settings name, with parameters of its own where it has any."""
    match settings.scores:
        case "scaled-dot":
            return ScaledDot()
        case "dot":
            return PlainDot()
        case "cosine":
            return Cosine(heads)
        case "bilinear":
            return Bilinear(heads)
        case "additive":
            return Additive(heads)
        case "dense-synthesizer":
            return DenseSynthesizer(heads, settings.max_length)
        case "random-synthesizer":
            return RandomSynthesizer(heads, settings.max_length)
