"""Score forms: how well a query matches a key, before the softmax. `SCORE_FORMS` maps each value of `model.scores`.

The form of the paper is `ScaledDot`; the others exist for experiments. To add one, subclass `ScoreForm` (or `DotForm`,
which also runs in the fused path) and register the class: `SCORE_FORMS["my-form"] = MyForm`.
"""

import math
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.model.masks import View


class HeadShape(NamedTuple):
    """The number of heads of an attention and the width of each."""

    n_heads: int
    n_key_heads: int  # fewer than n_heads: grouped queries; 1: multi-query
    head_width: int  # d_k
    value_width: int  # d_v


class ScoreForm(nn.Module):
    """Base class of all score forms, constructed as `ScoreForm(heads, max_length)`.

    The first axis of each parameter is the head, so that pruning can remove heads.
    """

    reads_queries: ClassVar[bool] = True
    reads_keys: ClassVar[bool] = True  # if False, cross-attention uses ScaledDot: it has to read the source
    needs_max_length: ClassVar[bool] = False  # if True, sequences cannot be longer than model.max_length

    def __init__(self, heads: HeadShape, max_length: int) -> None:
        super().__init__()

    @classmethod
    def n_parameters(cls, heads: HeadShape, max_length: int) -> int:
        """The number of parameters that the form would have, to refuse a model that is too large before it is built."""
        return 0

    def forward(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D2"], view: View
    ) -> Float[Tensor, "B H Q K"]:
        """The score of each query for each key."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward.")


class DotForm(ScoreForm):
    """Base class of forms that are a dot product of prepared queries and keys; the fused path handles these."""

    def scale(self, head_width: int) -> float:
        """The factor of every dot product."""
        return 1.0

    def prepare(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"]
    ) -> tuple[Float[Tensor, "B H Q D"], Float[Tensor, "B H K D"]]:
        """Transform queries and keys so that the score is scale · q · k."""
        return q, k

    def forward(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], view: View) -> Float[Tensor, "B H Q K"]:
        """The score of each query for each key."""
        q, k = self.prepare(q, k)
        return (q * self.scale(q.size(-1))) @ k.mT


class ScaledDot(DotForm):
    """q · k / √d_k: the form of the paper. Unscaled, scores spread with √d_k and the softmax saturates."""

    def scale(self, head_width: int) -> float:
        """1 / √d_k."""
        return 1.0 / math.sqrt(head_width)


class PlainDot(DotForm):
    """q · k, unscaled."""


class Cosine(DotForm):
    """τ · cos(q, k): only directions matter. Each head learns its temperature τ, initialized to √d_k."""

    def __init__(self, heads: HeadShape, max_length: int) -> None:
        super().__init__(heads, max_length)
        self.temperature = nn.Parameter(torch.full((heads.n_heads, 1, 1), math.sqrt(heads.head_width)))

    @classmethod
    def n_parameters(cls, heads: HeadShape, max_length: int) -> int:
        """One temperature per head."""
        return heads.n_heads

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Normalize both to length 1, then scale the queries by τ."""
        return self.temperature * F.normalize(q, dim=-1), F.normalize(k, dim=-1)


class Bilinear(DotForm):
    """q W k / √d_k with one matrix W per head (Luong's "general"), initialized to the identity."""

    def __init__(self, heads: HeadShape, max_length: int) -> None:
        super().__init__(heads, max_length)
        self.weight = nn.Parameter(torch.eye(heads.head_width).repeat(heads.n_heads, 1, 1))

    @classmethod
    def n_parameters(cls, heads: HeadShape, max_length: int) -> int:
        """One matrix per head."""
        return heads.n_heads * heads.head_width**2

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply the queries by W."""
        return q @ self.weight / math.sqrt(q.size(-1)), k


class Additive(ScoreForm):
    """w · tanh(q + k) with one vector w per head (Bahdanau 2015); needs memory for Q × K × D numbers."""

    def __init__(self, heads: HeadShape, max_length: int) -> None:
        super().__init__(heads, max_length)
        self.weight = nn.Parameter(torch.randn(heads.n_heads, heads.head_width) * heads.head_width**-0.5)

    @classmethod
    def n_parameters(cls, heads: HeadShape, max_length: int) -> int:
        """One vector per head."""
        return heads.n_heads * heads.head_width

    def forward(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], view: View) -> Float[Tensor, "B H Q K"]:
        """The score of each query for each key."""
        return torch.einsum("bhqkd,hd->bhqk", torch.tanh(q[:, :, :, None] + k[:, :, None]), self.weight)


class DenseSynthesizer(ScoreForm):
    """Scores for all positions computed from the query alone (Tay 2021)."""

    reads_keys = False
    needs_max_length = True

    def __init__(self, heads: HeadShape, max_length: int) -> None:
        super().__init__(heads, max_length)
        scale = heads.head_width**-0.5
        self.weight = nn.Parameter(torch.randn(heads.n_heads, heads.head_width, max_length) * scale)

    @classmethod
    def n_parameters(cls, heads: HeadShape, max_length: int) -> int:
        """One row of scores for each feature of a head."""
        return heads.n_heads * heads.head_width * max_length

    def forward(self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K 0"], view: View) -> Float[Tensor, "B H Q K"]:
        """The score of each query for each position."""
        positions = view.key_positions.expand(q.size(0), -1)[:, None, None, :].expand(-1, q.size(1), q.size(2), -1)
        return (q.relu() @ self.weight).gather(-1, positions)


class RandomSynthesizer(ScoreForm):
    """One learned table of scores per head, the same for every sentence (Tay 2021)."""

    reads_queries = False
    reads_keys = False
    needs_max_length = True

    def __init__(self, heads: HeadShape, max_length: int) -> None:
        super().__init__(heads, max_length)
        self.weight = nn.Parameter(torch.randn(heads.n_heads, max_length, max_length))

    @classmethod
    def n_parameters(cls, heads: HeadShape, max_length: int) -> int:
        """One score for each pair of positions and head."""
        return heads.n_heads * max_length**2

    def forward(self, q: Float[Tensor, "B H Q 0"], k: Float[Tensor, "B H K 0"], view: View) -> Float[Tensor, "B H Q K"]:
        """The score of each pair of positions."""
        scores = self.weight[:, view.query_positions[..., :, None], view.key_positions[..., None, :]]
        return scores.transpose(0, 1).expand(q.size(0), -1, -1, -1)


SCORE_FORMS: dict[str, type[ScoreForm]] = {
    "scaled-dot": ScaledDot,
    "dot": PlainDot,
    "cosine": Cosine,
    "bilinear": Bilinear,
    "additive": Additive,
    "dense-synthesizer": DenseSynthesizer,
    "random-synthesizer": RandomSynthesizer,
}
