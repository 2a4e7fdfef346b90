"""Multi-head attention, whole: read it top to bottom.

    Attention(Q, K, V) = softmax(QKᵀ / √d_k) V
    head_i = Attention(x W_i^Q, y W_i^K, y W_i^V)        MultiHead(x, y) = Concat(head_1 … head_h) W^O

Three pure functions say what attention is. One module, `MultiHeadAttention`, makes many heads of it: step by step
where a tap watches, and by torch's fused kernel where none does; tests hold the two equal. What varies between
experiments (score form, projections, relative positions) is a small strategy passed in.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.model.dropout import Dropout
from manyheads.model.kv_cache import KeyValueCache
from manyheads.model.masks import View
from manyheads.model.positions import NoRelativePositions
from manyheads.model.projections import NoProjections, Projections
from manyheads.model.score_forms import DotForm, ScoreForm
from manyheads.model.settings import HeadShape
from manyheads.model.tap import Tap

# B batch, H heads, Q query positions, K key positions, W width, D width of one head's key, E width of its value.


def softmax_visible(scores: Float[Tensor, "*B Q K"], visible: Bool[Tensor, "*#B #Q K"]) -> Float[Tensor, "*B Q K"]:
    """Softmax over the key axis; hidden positions get −∞ before it, and a row that sees nothing is all zeros."""
    weights = scores.masked_fill(~visible, -math.inf).softmax(dim=-1)
    # A fully hidden row softmaxes to NaN, and one NaN spoils the whole batch's loss.
    return weights.masked_fill(~visible, 0.0)


def attention_weights(
    q: Float[Tensor, "*B Q D"], k: Float[Tensor, "*B K D"], visible: Bool[Tensor, "*#B #Q K"] | None = None
) -> Float[Tensor, "*B Q K"]:
    """How much each query looks at each key: a row sums to 1, or is all zeros where it may look nowhere."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    return scores.softmax(dim=-1) if visible is None else softmax_visible(scores, visible)


def attention(
    q: Float[Tensor, "*B Q D"],
    k: Float[Tensor, "*B K D"],
    v: Float[Tensor, "*B K E"],
    visible: Bool[Tensor, "*#B #Q K"] | None = None,
) -> Float[Tensor, "*B Q E"]:
    """Scaled dot-product attention: each query's mix of the values it may see."""
    return attention_weights(q, k, visible) @ v


Gate = Float[Tensor, " H"] | Float[Tensor, "B H"]  # one number per head, or one per row and head
GateFactory = Callable[[int], Gate]  # called in every forward pass with the number of rows


def check_gate(gate: Tensor, n_heads: int, name: str) -> None:
    """Refuse a gate that would silently broadcast over heads."""
    if gate.dim() not in (1, 2) or gate.size(-1) != n_heads:
        raise ValueError(f"{name} has {n_heads} heads and needs one gate per head, not a tensor of {list(gate.shape)}.")


@dataclass(frozen=True)
class Strategies:
    """What one attention is made of: how it projects, scores, and knows distance."""

    projections: Projections
    scores: ScoreForm
    positions: NoRelativePositions


class MultiHeadAttention(nn.Module):
    """h attentions side by side, each in a subspace of its own, mixed by one fixed matrix W^O."""

    groups: Int[Tensor, " G"]  # how many heads read each key head

    def __init__(
        self,
        name: str,
        width: int,
        heads: HeadShape,
        groups: tuple[int, ...],
        strategies: Strategies,
        *,
        bias: bool = False,
        dropout: float = 0.0,
        head_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.name = name  # "encoder.0.self": what taps and head gates know this attention by
        self.heads = heads
        self.gate: Gate | GateFactory | None = None  # set by `gated`
        self.register_buffer("groups", torch.tensor(groups), persistent=False)
        self.dropout = dropout
        self.head_dropout = Dropout(head_dropout)
        self.project = strategies.projections
        self.scores = strategies.scores
        self.positions = strategies.positions
        self.output: nn.Module = (  # W^O
            nn.Identity()
            if isinstance(self.project, NoProjections)
            else nn.Linear(heads.n_heads * heads.value_width, width, bias=bias)
        )

    def forward(
        self,
        queries_from: Float[Tensor, "B Q W"],
        keys_from: Float[Tensor, "B K0 W"],
        view: View,
        *,
        cache: KeyValueCache | None = None,
        tap: Tap | None = None,
    ) -> Float[Tensor, "B Q W"]:
        """Every query's mix of what it sees; with a cache, `keys_from` holds only the newest positions."""
        q = self.positions.rotate(self.project.queries(queries_from), view.query_positions)
        k, v = (
            self._keys_values(keys_from, view)
            if cache is None
            else cache.update(lambda: self._keys_values(keys_from, view))
        )
        bias = self.positions.bias(view.query_positions, view.key_positions)
        if self.heads.n_heads > self.heads.n_key_heads:  # grouped queries: several heads read the same keys and values
            k, v = (x.repeat_interleave(self.groups, dim=1, output_size=self.heads.n_heads) for x in (k, v))

        dropout = self.dropout if self.training else 0.0
        if tap is None and isinstance(self.scores, DotForm):
            mixed = self._attend_fused(self.scores, q, k, v, view, bias, dropout)
        else:
            mixed = self._attend_explicit(q, k, v, view, bias, dropout, tap)
        mixed = self.head_dropout.drop_slices(mixed, n_axes=2)
        if self.gate is not None:
            mixed = mixed * self._gate_of(mixed.size(0))[..., None, None]
        output = self.output(mixed.transpose(1, 2).flatten(2))  # Concat(head_1 … head_h) W^O
        if tap is not None:
            tap.receive(f"{self.name}.output", output)
        return output

    def _gate_of(self, n_rows: int) -> Gate:
        assert self.gate is not None
        if isinstance(self.gate, Tensor):
            return self.gate
        gate = self.gate(n_rows)
        check_gate(gate, self.heads.n_heads, self.name)
        return gate

    def _keys_values(
        self, keys_from: Float[Tensor, "B K0 W"], view: View
    ) -> tuple[Float[Tensor, "B G K0 D"], Float[Tensor, "B G K0 E"]]:
        k, v = self.project.keys_values(keys_from)
        return self.positions.rotate(k, view.key_positions[:, -keys_from.size(1) :]), v

    def _attend_explicit(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D2"],
        v: Float[Tensor, "B H K E"],
        view: View,
        bias: Float[Tensor, "#B H Q K"] | None,
        dropout: float,
        tap: Tap | None,
    ) -> Float[Tensor, "B H Q E"]:
        """Each head's mix of values, step by step: the reference, for every score form, which a tap can watch."""
        scores = self.scores(q, k, view)
        scores = scores if bias is None else scores + bias
        weights = softmax_visible(scores, view.visible)
        mixed = F.dropout(weights, dropout) @ v
        if tap is not None:
            seen = {"q": q, "k": k, "v": v, "weights": weights, "heads": mixed}
            seen["scores"] = scores.masked_fill(~view.visible, -math.inf)
            for what, value in seen.items():
                tap.receive(f"{self.name}.{what}", value)
        return mixed

    @staticmethod
    def _attend_fused(
        form: DotForm,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K E"],
        view: View,
        bias: Float[Tensor, "#B H Q K"] | None,
        dropout: float,
    ) -> Float[Tensor, "B H Q E"]:
        """The same mix by torch's kernel, in which the weights never exist as a whole."""
        q, k = form.prepare(q, k)
        scale = form.scale(q.size(-1))  # by the kernel, which has the products at hand anyway
        if view.is_purely_causal and bias is None:  # what is hidden is not even computed
            return F.scaled_dot_product_attention(q, k, v, None, dropout, is_causal=True, scale=scale)
        mask = view.visible if bias is None else bias.masked_fill(~view.visible, -math.inf)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, scale=scale)
