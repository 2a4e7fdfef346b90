"""Multi-head attention (Vaswani 2017). Read this file from top to bottom.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V
    head_i             = Attention(x W_i^Q, y W_i^K, y W_i^V)
    MultiHead(x, y)    = Concat(head_1, …, head_h) W^O

`attention` is the first line as a pure function. `MultiHeadAttention` is the rest: it projects, attends in every head
and applies W^O. It attends in one of two ways. The explicit path computes the weights step by step and shows them to a
`Tap`; the fused path calls the PyTorch kernel. Tests require both to agree. Whatever differs between experiments (score
form, projections, relative positions) is an object passed to the constructor.

Shapes: B batch, H heads, G key heads (grouped queries), Q query positions, K key positions, W width (d_model),
D width of one head's query or key (d_k), E width of one head's value (d_v).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.messages import _
from manyheads.model.dropout import Dropout
from manyheads.model.kv_cache import KeyValueCache
from manyheads.model.masks import View
from manyheads.model.positions import NoRelativePositions
from manyheads.model.projections import NoProjections, Projections
from manyheads.model.score_forms import DotForm, HeadShape, ScoreForm
from manyheads.model.tap import Tap


def attention(
    q: Float[Tensor, "*B Q D"],
    k: Float[Tensor, "*B K D"],
    v: Float[Tensor, "*B K E"],
    visible: Bool[Tensor, "*#B #Q K"] | None = None,
) -> Float[Tensor, "*B Q E"]:
    """Scaled dot-product attention: for each query, the mean of the values, weighted by `attention_weights`."""
    return attention_weights(q, k, visible) @ v


def attention_weights(
    q: Float[Tensor, "*B Q D"], k: Float[Tensor, "*B K D"], visible: Bool[Tensor, "*#B #Q K"] | None = None
) -> Float[Tensor, "*B Q K"]:
    """softmax(Q Kᵀ / √d_k): one row per query, which sums to 1, or to 0 if no key is visible to the query."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    return scores.softmax(dim=-1) if visible is None else masked_softmax(scores, visible)


def masked_softmax(scores: Float[Tensor, "*B Q K"], visible: Bool[Tensor, "*#B #Q K"]) -> Float[Tensor, "*B Q K"]:
    """Softmax over the visible keys; hidden keys get weight 0, and a query that sees no key gets a row of zeros."""
    weights = scores.masked_fill(~visible, -math.inf).softmax(dim=-1)
    # The softmax of a fully hidden row is NaN, and one NaN makes the loss of the whole batch NaN.
    return weights.masked_fill(~visible, 0.0)


Gate = Float[Tensor, " H"] | Float[Tensor, "B H"]  # one number per head, or one per row and head
GateFactory = Callable[[int], Gate]  # called in every forward pass with the number of rows
# Called in every forward pass with the outputs of all heads; returns what stands in for the closed part of each.
Replacement = Callable[[Float[Tensor, "B H Q E"]], Float[Tensor, "*#B H #Q E"]]


@dataclass(frozen=True)
class Strategies:
    """The interchangeable parts of an attention layer."""

    projections: Projections
    scores: ScoreForm
    positions: NoRelativePositions


class MultiHeadAttention(nn.Module):
    """`n_heads` attention heads in parallel, each in its own subspace, combined by W^O."""

    groups: Int[Tensor, " G"]  # how many heads share each key head

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
        self.name = name  # such as "encoder.0.self"; taps and gates refer to an attention by its name
        self.heads = heads
        self.gate: Gate | GateFactory | None = None  # set by `gated` for the length of a with block
        self.replacement: Replacement | None = None  # of gated heads, also set by `gated`; None: zero
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
        """Attend from `queries_from` to `keys_from`; with a cache, `keys_from` holds only the new positions."""
        q = self.positions.rotate(self.project.queries(queries_from), view.query_positions)
        k, v = (
            self._keys_values(keys_from, view)
            if cache is None
            else cache.update(lambda: self._keys_values(keys_from, view))
        )
        if self.heads.n_heads > self.heads.n_key_heads:  # grouped queries: several heads read the same keys and values
            k, v = (x.repeat_interleave(self.groups, dim=1, output_size=self.heads.n_heads) for x in (k, v))
        bias = self.positions.bias(view.query_positions, view.key_positions)

        if tap is None and isinstance(self.scores, DotForm):
            heads = self._attend_fused(self.scores, q, k, v, view, bias)
        else:
            heads = self._attend_explicit(q, k, v, view, bias, tap)
        heads = self.head_dropout.drop_slices(heads, n_axes=2)
        if self.gate is not None:
            gate = self.gate if isinstance(self.gate, Tensor) else self.gate(heads.size(0))
            check_gate(gate, self.heads.n_heads, self.name)
            gate = gate[..., None, None]
            heads = gate * heads if self.replacement is None else gate * heads + (1 - gate) * self.replacement(heads)
        output = self.output(heads.transpose(1, 2).flatten(2))  # Concat(head_1, …, head_h) W^O
        if tap is not None:
            tap.receive(f"{self.name}.output", output)
        return output

    def _attend_explicit(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D2"],
        v: Float[Tensor, "B H K E"],
        view: View,
        bias: Float[Tensor, "#B H Q K"] | None,
        tap: Tap | None,
    ) -> Float[Tensor, "B H Q E"]:
        """The output of each head, step by step: the slow reference, for every score form and for taps."""
        scores = self.scores(q, k, view)
        scores = scores if bias is None else scores + bias
        weights = masked_softmax(scores, view.visible)
        heads = F.dropout(weights, self._dropout_rate) @ v
        if tap is not None:
            values = {"q": q, "k": k, "v": v, "weights": weights, "heads": heads}
            values["scores"] = scores.masked_fill(~view.visible, -math.inf)
            for kind, value in values.items():
                tap.receive(f"{self.name}.{kind}", value)
        return heads

    def _attend_fused(
        self,
        form: DotForm,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K E"],
        view: View,
        bias: Float[Tensor, "#B H Q K"] | None,
    ) -> Float[Tensor, "B H Q E"]:
        """The same output from PyTorch's fused kernel, which never stores all weights at once."""
        q, k = form.prepare(q, k)
        scale, dropout = form.scale(q.size(-1)), self._dropout_rate
        if view.is_purely_causal and bias is None:  # the kernel then skips hidden positions and reads no mask
            return F.scaled_dot_product_attention(q, k, v, None, dropout, is_causal=True, scale=scale)
        mask = view.visible if bias is None else bias.masked_fill(~view.visible, -math.inf)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, scale=scale)

    def _keys_values(
        self, keys_from: Float[Tensor, "B K0 W"], view: View
    ) -> tuple[Float[Tensor, "B G K0 D"], Float[Tensor, "B G K0 E"]]:
        k, v = self.project.keys_values(keys_from)
        return self.positions.rotate(k, view.key_positions[:, -keys_from.size(1) :]), v

    @property
    def _dropout_rate(self) -> float:
        return self.dropout if self.training else 0.0


def check_gate(gate: Tensor, n_heads: int, name: str) -> None:
    """Refuse a gate that would silently broadcast over heads."""
    if gate.dim() not in (1, 2) or gate.size(-1) != n_heads:
        raise ValueError(
            _(
                "{name} has {n_heads} heads and needs one gate per head, not a tensor of {shape}.",
                name=name,
                n_heads=n_heads,
                shape=list(gate.shape),
            )
        )
