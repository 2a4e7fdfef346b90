"""Ways to hide keys from a query: what the model does, and what study notes suggest instead.

A masking turns scores into weights. `with_masking` puts one into every attention of a model.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.model import MultiHeadAttention, Tap, Transformer
from manyheads.model.attention import masked_softmax
from manyheads.model.masks import View
from manyheads.model.score_forms import DotForm

Scores = Float[Tensor, "*B Q K"]
Visible = Bool[Tensor, "*#B #Q K"]
Masking = Callable[[Scores, Visible], Scores]


def zero_after(scores: Scores, visible: Visible) -> Scores:
    """Softmax over all keys, then weight 0 for hidden ones: a row sums to less than 1."""
    return scores.softmax(-1).masked_fill(~visible, 0.0)


def renormalized(scores: Scores, visible: Visible) -> Scores:
    """`zero_after`, divided by the sum of each row; a row whose visible weights underflow stays 0."""
    weights = zero_after(scores, visible)
    return weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


def add_1000(scores: Scores, visible: Visible) -> Scores:
    """−1000 added to the scores of hidden keys."""
    return _add(scores, visible, -1e3)


def add_1e9(scores: Scores, visible: Visible) -> Scores:
    """−10⁹ added to the scores of hidden keys; float16 ends at −65,504, so that it becomes −∞ there."""
    return _add(scores, visible, -1e9)


def _add(scores: Scores, visible: Visible, value: float) -> Scores:
    return (scores + (~visible).to(scores.dtype) * value).softmax(-1)


MASKINGS: dict[str, Masking] = {
    "infinity": masked_softmax,
    "zero": zero_after,
    "renormalized": renormalized,
    "1000": add_1000,
    "1e9": add_1e9,
}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def mask_in(precision: str, masking: str, scores: Scores, visible: Visible) -> Scores:
    """The weights of a masking, computed in this precision."""
    return MASKINGS[masking](scores.to(PRECISIONS[precision]), visible).to(scores.dtype)


class MaskedAttention(MultiHeadAttention):
    """Attention with another masking; always explicit."""

    masking: str
    precision: str

    def _attend_explicit(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D2"],
        v: Float[Tensor, "B H K E"],
        view: View,
        bias: Float[Tensor, "#B H Q K"] | None,
        tap: Tap | None,
    ) -> Float[Tensor, "B H Q E"]:
        scores = self.scores(q, k, view)
        scores = scores if bias is None else scores + bias
        weights = mask_in(self.precision, self.masking, scores, view.visible)
        if tap is not None:
            tap.receive(f"{self.name}.weights", weights)
            tap.receive(f"{self.name}.scores", scores.masked_fill(~view.visible, -math.inf))
        return weights @ v

    def _attend_fused(
        self,
        form: DotForm,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K E"],
        view: View,
        bias: Float[Tensor, "#B H Q K"] | None,
    ) -> Float[Tensor, "B H Q E"]:
        return self._attend_explicit(q, k, v, view, bias, None)


def with_masking(model: nn.Module, masking: str, precision: str) -> nn.Module:
    """Hide keys in this way in every attention, with scores and weights in this precision."""
    assert isinstance(model, Transformer)
    for attention in model.attentions():
        attention.__class__ = MaskedAttention
        assert isinstance(attention, MaskedAttention)
        attention.masking, attention.precision = masking, precision
    return model
