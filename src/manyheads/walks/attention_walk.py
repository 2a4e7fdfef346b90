"""`Walk`: every number of one attention head, from its input to the output of the sub-layer.

A hook captures what enters the chosen attention. That attention then runs again by itself, in double precision and with
a tap, so that displayed terms add up to displayed totals. What a tap does not see (each
product of q · k, each exponential) is computed beside it; tests require the parts to agree with the whole.
"""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from manyheads.errors import LensError
from manyheads.lens.heads import Head, find_heads
from manyheads.messages import _
from manyheads.model import MultiHeadAttention, Tap, Transformer
from manyheads.model.attention import masked_softmax
from manyheads.model.masks import View
from manyheads.model.positions import BucketedPositions, RotaryPositions
from manyheads.model.projections import NoProjections, SeparateProjections, SharedProjection, TiedProjections
from manyheads.model.score_forms import (
    SCORE_FORMS,
    Additive,
    Bilinear,
    Cosine,
    DenseSynthesizer,
    PlainDot,
    RandomSynthesizer,
    ScaledDot,
)
from manyheads.text.tokens.tokenizer import METASPACE
from manyheads.text.tokens.words import is_chinese_or_kana

if TYPE_CHECKING:
    from manyheads.walks.block_walk import BlockWalk

Floats = NDArray[np.float64]
_MAX_TOKENS = 12  # of one word
_N_SHOWN = 20  # positions listed in an error

# Q query positions, K key positions, W width, D width of one head's key, E width of its value, H heads.


@dataclass(frozen=True)
class Matrices:
    """The projections of one head; a bias is None if the model has none."""

    query: Floats  # W × D
    key: Floats  # W × D
    value: Floats  # W × E
    output: Floats  # H·E × W, of all heads together
    query_bias: Floats | None = None
    key_bias: Floats | None = None
    value_bias: Floats | None = None
    output_bias: Floats | None = None


@dataclass(frozen=True)
class Softmax:
    """Scores and their softmax, one row per query."""

    scale: float  # the divisor of q · k
    scores: Floats  # Q × K, −∞ where masked
    exponentials: Floats  # Q × K: e^(score − the largest of the row), 0 where masked
    sums: Floats  # Q: of the exponentials
    weights: Floats  # Q × K

    @property
    def slopes(self) -> Floats:
        """The derivative of each weight by its own q · k: w (1 − w) / scale."""
        return self.weights * (1.0 - self.weights) / self.scale


@dataclass(frozen=True)
class Walk:
    """The computation of one head step by step, for all queries; `query` is the one to show in detail."""

    attention: str  # its name, such as "encoder.0.self"
    head: int
    query: int
    query_names: Sequence[str]
    key_names: Sequence[str]
    form: str  # of the scores, as in a recipe
    has_projections: bool
    has_output: bool  # whether there is a W^O
    queries_from: Floats  # Q × W
    keys_from: Floats  # K × W: the same in self-attention, the encoder's output in cross-attention
    matrices: Matrices
    q: Floats  # Q × D: x W^Q
    k: Floats  # K × D: x W^K
    v: Floats  # K × E: x W^V
    rotated_q: Floats | None  # Q × D: after rotary positions
    rotated_k: Floats | None
    terms: Floats  # Q × K × D: the terms of each product; q_d k_d for dot products
    products: Floats  # Q × K: q · k
    distance: Floats | None  # Q × K: the bias of ALiBi, or a learned one
    visible: NDArray[np.bool_]  # Q × K
    softmax: Softmax
    contrast: Softmax | None  # the same without √d_k, or with it if the model has none
    weighted_sum: Floats  # Q × E: weights · V, the head's output before W^O
    heads: Floats  # Q × H·E: Concat(head_1 … head_h)
    contribution: Floats  # Q × W: what this head adds to the output, head_i W_i^O
    output: Floats  # Q × W
    text: str = ""
    answer: str = ""  # the decoder's text
    written_names: Sequence[str] = ()  # of a decoder: the token that each query writes, as far as known
    has_learned_distance: bool = False  # whether `distance` is learned
    block: "BlockWalk | None" = None  # everything around this attention, from the embedding to the loss

    def __repr__(self) -> str:
        size = f"{len(self.query_names)} × {len(self.key_names)} positions"
        return f"Walk({Head(self.attention, self.head)}, query {self.query} {self.query_names[self.query]!r}, {size})"

    def _repr_html_(self) -> str:
        """Show the row of the query in a notebook."""
        from manyheads.walks.head_row import walk_html

        return walk_html(self)

    @property
    def n_heads(self) -> int:
        """The number of heads of the attention."""
        return self.heads.shape[1] // self.weighted_sum.shape[1]

    @property
    def is_self(self) -> bool:
        """Whether queries and keys come from the same positions."""
        return self.queries_from.shape == self.keys_from.shape and bool((self.queries_from == self.keys_from).all())


@dataclass(frozen=True)
class AttentionCall:
    """The inputs and the output of one call of an attention."""

    queries_from: Tensor
    keys_from: Tensor
    view: View
    output: Tensor


@contextmanager
def capture_calls(attention: MultiHeadAttention) -> Iterator[list[AttentionCall]]:
    """Capture the calls of an attention inside a `with` block."""
    calls: list[AttentionCall] = []

    def keep(_: nn.Module, args: tuple[Tensor, Tensor, View], output: Tensor) -> None:
        calls.append(AttentionCall(*args, output))

    handle = attention.register_forward_hook(keep)
    try:
        yield calls
    finally:
        handle.remove()


@torch.no_grad()
def walk_attention(
    attention: MultiHeadAttention,
    call: AttentionCall,
    *,
    head: int,
    query: int,
    query_names: Sequence[str],
    key_names: Sequence[str],
) -> Walk:
    """Return every number of one head, for the first sequence of the batch of a captured call."""
    exact = copy.deepcopy(attention).cpu().double().eval()
    x, y = (tensor[:1].cpu().double() for tensor in (call.queries_from, call.keys_from))
    view = _first_of(call.view)
    tap = Tap()
    output = exact(x, y, view, tap=tap)
    tapped = {what: tap[f"{exact.name}.{what}"][0] for what in ("q", "k", "v", "scores", "weights", "heads")}
    group = exact.heads.n_heads // exact.heads.n_key_heads
    q, k = exact.project.queries(x)[0, head], exact.project.keys_values(y)[0][0, head // group]
    is_rotated = isinstance(exact.positions, RotaryPositions)
    rotated_q, rotated_k = tapped["q"][head], tapped["k"][head]
    terms, scale = _terms(exact, rotated_q, rotated_k, head, view)
    products = terms.sum(-1)
    bias = exact.positions.bias(view.query_positions, view.key_positions)
    distance = None if bias is None else bias[0, head].expand_as(products)
    visible = view.visible[0, 0].expand_as(products)
    other = _other_scale(exact, scale)
    matrices = _matrices(exact, head)
    part = slice_of(head, exact.heads.value_width)
    weighted_sum = tapped["heads"][head]
    return Walk(
        attention=attention.name,
        head=head,
        query=query,
        query_names=tuple(query_names),
        key_names=tuple(key_names),
        form=next(name for name, form in SCORE_FORMS.items() if form is type(exact.scores)),
        has_projections=not isinstance(exact.project, NoProjections),
        has_output=isinstance(exact.output, nn.Linear),
        queries_from=doubles(x[0]),
        keys_from=doubles(y[0]),
        matrices=matrices,
        q=doubles(q),
        k=doubles(k),
        v=doubles(tapped["v"][head]),
        rotated_q=doubles(rotated_q) if is_rotated else None,
        rotated_k=doubles(rotated_k) if is_rotated else None,
        terms=doubles(terms),
        products=doubles(products),
        distance=None if distance is None else doubles(distance),
        has_learned_distance=isinstance(exact.positions, BucketedPositions),
        visible=visible.numpy(),
        softmax=_softmax(tapped["scores"][head], tapped["weights"][head], scale),
        contrast=None if other is None else _rescaled_softmax(products, other, distance, visible),
        weighted_sum=doubles(weighted_sum),
        heads=doubles(tapped["heads"].transpose(0, 1).flatten(1)),
        contribution=doubles(weighted_sum) @ matrices.output[part],
        output=doubles(output[0]),
    )


def choose_attention(model: Transformer, layer: str | None, head: int) -> MultiHeadAttention:
    """Return the attention of this name, by default the first; raise `LensError` if it does not have this head."""
    attentions = {attention.name: attention for attention in model.attentions()}
    name = next(iter(attentions)) if layer is None else layer
    if name not in attentions:
        raise LensError(
            _("There is no layer {name!r}. Known: {attentions}.", name=name, attentions=", ".join(attentions))
        )
    find_heads(model, [Head(name, head)])
    return attentions[name]


def choose_position(names: Sequence[str], query: str | None, default: int) -> int:
    """Return the position of a word, or the position with this number.

    For a word of several tokens or with several occurrences this is the first.
    """
    if query is None:
        return min(default, len(names) - 1)
    word = query.strip()
    for start in range(len(names)):
        if not names[start].strip(METASPACE):  # a space that is a token of its own does not start a word
            continue
        for end in range(start + 1, min(start + _MAX_TOKENS, len(names)) + 1):
            if "".join(names[start:end]).strip(METASPACE) == word:
                return start
    if word and all(map(is_chinese_or_kana, word)):  # without spaces, a word can be inside a token
        containing = [position for position, name in enumerate(names) if word in name]
        if containing:
            return containing[0]
    if word.isdecimal() and int(word) < len(names):
        return int(word)
    shown = " · ".join(f"{position} {name}" for position, name in enumerate(names[:_N_SHOWN]))
    more = f" · … {len(names) - 1}" if len(names) > _N_SHOWN else ""
    raise LensError(
        _("There is no query {query!r}. Give a word or its number: {shown}{more}.", query=query, shown=shown, more=more)
    )


def _first_of(view: View) -> View:
    visible, query_positions, key_positions = (
        each[:1].cpu() for each in (view.visible, view.query_positions, view.key_positions)
    )
    return View(visible, query_positions, key_positions)


def _terms(attention: MultiHeadAttention, q: Tensor, k: Tensor, head: int, view: View) -> tuple[Tensor, float]:
    """Return the terms whose sum is the product of each query with each key, and the divisor of the sum."""
    form = attention.scores
    match form:
        case ScaledDot():
            return q[:, None] * k, math.sqrt(q.size(-1))
        case PlainDot():
            return q[:, None] * k, 1.0
        case Cosine():
            directions = [nn.functional.normalize(each, dim=-1) for each in (q, k)]
            return directions[0][:, None] * directions[1], 1.0 / float(form.temperature[head])
        case Bilinear():
            return (q @ form.weight[head])[:, None] * k, math.sqrt(q.size(-1))
        case Additive():
            return form.weight[head] * torch.tanh(q[:, None] + k), 1.0
        case DenseSynthesizer():
            return q.relu()[:, None] * form.weight[head].T[view.key_positions[0]], 1.0
        case RandomSynthesizer():
            return form.weight[head][view.query_positions[0]][:, view.key_positions[0], None], 1.0
    raise TypeError(f"The terms of {type(form).__name__} are not known.")


def _other_scale(attention: MultiHeadAttention, scale: float) -> float | None:
    """Return 1 if the model divides by √d_k, √d_k if it does not, None for forms without this scale."""
    match attention.scores:
        case ScaledDot() | Bilinear():
            return 1.0
        case PlainDot():
            return math.sqrt(attention.heads.head_width)
    return None


def _softmax(scores: Tensor, weights: Tensor, scale: float) -> Softmax:
    # A fully masked row has the largest score −∞; its exponentials are 0, as its weights are.
    largest = scores.amax(-1, keepdim=True)
    exponentials = torch.where(scores.isneginf(), 0.0, (scores - largest).exp())
    return Softmax(scale, *(doubles(each) for each in (scores, exponentials, exponentials.sum(-1), weights)))


def _rescaled_softmax(products: Tensor, scale: float, distance: Tensor | None, visible: Tensor) -> Softmax:
    scores = products / scale if distance is None else products / scale + distance
    return _softmax(scores.masked_fill(~visible, -math.inf), masked_softmax(scores, visible), scale)


def _matrices(attention: MultiHeadAttention, head: int) -> Matrices:
    """Return W^Q, W^K and W^V of one head, and all of W^O, as they multiply in x W: one row per input feature."""
    shape = attention.heads
    key_head = head // (shape.n_heads // shape.n_key_heads)
    mine, keys = slice_of(head, shape.head_width), slice_of(key_head, shape.head_width)
    values = slice_of(key_head, shape.value_width)
    project = attention.project
    match project:
        case SeparateProjections():
            query, key = _part(project.query, mine), _part(project.key, keys)
            value = _part(project.value, values)
        case TiedProjections():
            query, key = _part(project.query_key, mine), _part(project.query_key, keys)
            value = _part(project.value, values)
        case SharedProjection():
            query = key = value = _part(project.shared, mine)
        case _:  # no projections: each head reads its own features of x, as a slice of the identity does
            features = np.eye(shape.n_heads * shape.head_width)[:, mine]
            query = key = value = (features, None)
    if isinstance(attention.output, nn.Linear):
        output, output_bias = _part(attention.output, slice(None))
    else:
        output, output_bias = np.eye(shape.n_heads * shape.value_width), None
    return Matrices(query[0], key[0], value[0], output, query[1], key[1], value[1], output_bias)


def doubles(tensor: Tensor) -> Floats:
    """Return a tensor as an array of doubles, as walks hold them."""
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float64)


def slice_of(head: int, width: int) -> slice:
    """Return the slice of one head in the concatenation of all heads."""
    return slice(head * width, (head + 1) * width)


def _part(linear: nn.Linear | None, part: slice) -> tuple[Floats, Floats | None]:
    """Return columns of a matrix as in x W, and their bias; empty for a form that reads no queries or keys."""
    if linear is None:
        return np.empty((0, 0)), None
    bias = None if linear.bias is None else doubles(linear.bias[part])
    return doubles(linear.weight[part].T), bias
