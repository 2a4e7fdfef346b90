"""`Walk`: every number of one attention head, from its input to the sub-layer's output.

The model runs as it always does, and what enters the attention in question is caught. That one attention then runs
again by itself, in double precision and under a tap, so that the digits a reader adds up are the digits that are
there. What no tap sees (each product of q · k, each exponential) is worked out beside it; tests hold the parts equal
to the whole.
"""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens.heads import Head, find_heads
from manyheads.lens.trace import trace_input
from manyheads.model import MultiHeadAttention, Tap, Transformer
from manyheads.model.attention import softmax_visible
from manyheads.model.masks import View
from manyheads.model.positions import RotaryPositions
from manyheads.model.projections import NoProjections, SeparateProjections, SharedProjection, TiedProjections
from manyheads.model.score_forms import (
    Additive,
    Bilinear,
    Cosine,
    DenseSynthesizer,
    PlainDot,
    RandomSynthesizer,
    ScaledDot,
)
from manyheads.tasks import GenerativeTask, Task
from manyheads.text.tokenizer import METASPACE
from manyheads.text.words import is_chinese_or_kana

Floats = NDArray[np.float64]

_MOST_TOKENS = 12  # of one word
_SHOWN = 20  # places that an error names

# Q query places, K key places, W width, D width of one head's key, E width of its value, H heads.
_FORMS = {
    ScaledDot: "scaled-dot",
    PlainDot: "dot",
    Cosine: "cosine",
    Bilinear: "bilinear",
    Additive: "additive",
    DenseSynthesizer: "dense-synthesizer",
    RandomSynthesizer: "random-synthesizer",
}


@dataclass(frozen=True)
class Matrices:
    """What one head multiplies with; a bias is None where the model has none."""

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
    """Scores and what the softmax makes of them, a row a query."""

    scale: float  # what q · k was divided by
    scores: Floats  # Q × K, −∞ where hidden
    exponentials: Floats  # Q × K: e^(score − the row's largest), 0 where hidden
    sums: Floats  # Q: of the exponentials
    weights: Floats  # Q × K

    @property
    def slopes(self) -> Floats:
        """How much each weight moves when its own q · k moves a little: w (1 − w) / scale. Training needs it."""
        return self.weights * (1.0 - self.weights) / self.scale


@dataclass(frozen=True)
class Walk:
    """One head's computation, step by step, for all queries; `query` is the one to look at closely."""

    attention: str  # its name, as "encoder.0.self"
    head: int
    query: int
    query_names: Sequence[str]
    key_names: Sequence[str]
    form: str  # of the scores, as a recipe names it
    has_projections: bool
    has_output: bool  # whether there is a W^O
    queries_from: Floats  # Q × W
    keys_from: Floats  # K × W: the same in self-attention, the encoder's output in cross-attention
    matrices: Matrices
    q: Floats  # Q × D: x W^Q
    k: Floats  # K × D: x W^K
    v: Floats  # K × E: x W^V
    rotated_q: Floats | None  # Q × D: rotated to their places, by rotary positions
    rotated_k: Floats | None
    terms: Floats  # Q × K × D: what is summed to a product; q_d k_d unless the form is another
    products: Floats  # Q × K: q · k
    distance: Floats | None  # Q × K: what ALiBi adds for distance
    visible: NDArray[np.bool_]  # Q × K
    softmax: Softmax
    contrast: Softmax | None  # the same without √d_k (or with it, where the model has none)
    weighted_sum: Floats  # Q × E: weights · V, this head's output
    heads: Floats  # Q × H·E: all heads' outputs side by side
    contribution: Floats  # Q × W: what this head adds to the output, head_i W_i^O
    output: Floats  # Q × W
    text: str = ""
    answer: str = ""  # what the decoder writes

    @property
    def n_heads(self) -> int:
        """How many heads stand side by side."""
        return self.heads.shape[1] // self.weighted_sum.shape[1]

    @property
    def is_self(self) -> bool:
        """Whether queries and keys come from the same places."""
        return self.queries_from.shape == self.keys_from.shape and bool((self.queries_from == self.keys_from).all())


@dataclass(frozen=True)
class AttentionCall:
    """What one attention was called with, and what it gave."""

    queries_from: Tensor
    keys_from: Tensor
    view: View
    output: Tensor


@contextmanager
def capture_calls(attention: MultiHeadAttention) -> Iterator[list[AttentionCall]]:
    """Within it, what the attention is called with is kept."""
    calls: list[AttentionCall] = []

    def keep(_: nn.Module, given: tuple[Tensor, Tensor, View], output: Tensor) -> None:
        calls.append(AttentionCall(*given, output))

    handle = attention.register_forward_hook(keep)
    try:
        yield calls
    finally:
        handle.remove()


def walk(
    of: Bundle | Task,
    text: str,
    *,
    answer: str | None = None,
    layer: str | None = None,
    head: int = 0,
    query: str | None = None,
) -> Walk:
    """Every number of one head of a trained model as it reads a text: the first head of the first layer, unless told.

    `query` is the word, or the number of the place, to look at closely. A translator's decoder writes the `answer`, or
    without one what the model itself answers.
    """
    task = of.task if isinstance(of, Bundle) else of
    attention = choose_attention(task.model, layer, head)
    model_input = task.model_input(text, answer)
    is_of_decoder = attention.name.startswith("decoder")
    if is_of_decoder and answer is None and model_input.source and isinstance(task, GenerativeTask):
        settings = of.decode if isinstance(of, Bundle) else DecodeSettings(method="greedy")
        model_input = task.generate_one(model_input, settings)[1]
    reads = model_input.target if is_of_decoder else model_input.source
    looks_at = model_input.source if attention.name.endswith("cross") else reads
    names = [token.text for token in reads]
    place = choose_position(names, query, 1)
    with capture_calls(attention) as calls:
        trace_input(task.model, model_input)
    found = walk_attention(
        attention, calls[0], head=head, query=place, query_names=names, key_names=[token.text for token in looks_at]
    )
    return replace(found, text=text, answer=model_input.answer if is_of_decoder else "")


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
    """Every number of one head, for the first sequence of the batch the attention was called with."""
    exact = copy.deepcopy(attention).cpu().double().eval()
    x, y = (given[:1].cpu().double() for given in (call.queries_from, call.keys_from))
    view = _first_of(call.view)
    tap = Tap()
    output = exact(x, y, view, tap=tap)
    seen = {what: tap[f"{exact.name}.{what}"][0] for what in ("q", "k", "v", "scores", "weights", "heads")}
    group = exact.heads.n_heads // exact.heads.n_key_heads
    q, k = exact.project.queries(x)[0, head], exact.project.keys_values(y)[0][0, head // group]
    is_rotated = isinstance(exact.positions, RotaryPositions)
    rotated_q, rotated_k = seen["q"][head], seen["k"][head]
    terms, scale = _terms(exact, rotated_q, rotated_k, head, view)
    products = terms.sum(-1)
    bias = exact.positions.bias(view.query_positions, view.key_positions)
    distance = None if bias is None else bias[0, head].expand_as(products)
    visible = view.visible[0, 0].expand_as(products)
    other = _other_scale(exact, scale)
    matrices = _matrices(exact, head)
    part = slice_of(head, exact.heads.value_width)
    weighted_sum = seen["heads"][head]
    return Walk(
        attention=attention.name,
        head=head,
        query=query,
        query_names=tuple(query_names),
        key_names=tuple(key_names),
        form=_FORMS[type(exact.scores)],
        has_projections=not isinstance(exact.project, NoProjections),
        has_output=isinstance(exact.output, nn.Linear),
        queries_from=_numbers(x[0]),
        keys_from=_numbers(y[0]),
        matrices=matrices,
        q=_numbers(q),
        k=_numbers(k),
        v=_numbers(seen["v"][head]),
        rotated_q=_numbers(rotated_q) if is_rotated else None,
        rotated_k=_numbers(rotated_k) if is_rotated else None,
        terms=_numbers(terms),
        products=_numbers(products),
        distance=None if distance is None else _numbers(distance),
        visible=visible.numpy(),
        softmax=_softmax(seen["scores"][head], seen["weights"][head], scale),
        contrast=None if other is None else _softmax_anew(products, other, distance, visible),
        weighted_sum=_numbers(weighted_sum),
        heads=_numbers(seen["heads"].transpose(0, 1).flatten(1)),
        contribution=_numbers(weighted_sum) @ matrices.output[part],
        output=_numbers(output[0]),
    )


def choose_attention(model: Transformer, layer: str | None, head: int) -> MultiHeadAttention:
    """The attention of this name (the model's first, if none is named), if it has this head."""
    attentions = {attention.name: attention for attention in model.attentions()}
    name = next(iter(attentions)) if layer is None else layer
    if name not in attentions:
        raise LensError(f"There is no layer {name!r}. There are {', '.join(attentions)}.")
    find_heads(model, [Head(name, head)])
    return attentions[name]


def choose_position(names: Sequence[str], wanted: str | None, usual: int) -> int:
    """The place whose name this is, or whose number; of a word in several tokens, or of several alike, the first."""
    if wanted is None:
        return min(usual, len(names) - 1)
    for start in range(len(names)):
        if not names[start].strip(METASPACE):  # a space of its own is no part of the word after it
            continue
        for end in range(start + 1, min(start + _MOST_TOKENS, len(names)) + 1):
            if "".join(names[start:end]).strip(METASPACE) == wanted.strip():
                return start
    if wanted.strip() and all(
        map(is_chinese_or_kana, wanted.strip())
    ):  # no space ends a word: it may lie within a token
        within = [place for place, name in enumerate(names) if wanted.strip() in name]
        if within:
            return within[0]
    if wanted.strip().isdecimal() and int(wanted) < len(names):
        return int(wanted)
    told = " · ".join(f"{place} {name}" for place, name in enumerate(names[:_SHOWN]))
    more = f" · … {len(names) - 1}" if len(names) > _SHOWN else ""
    raise LensError(f"There is no query {wanted!r}. There are {told}{more}: give a word or its number.")


def _first_of(view: View) -> View:
    visible, query_positions, key_positions = (
        each[:1].cpu() for each in (view.visible, view.query_positions, view.key_positions)
    )
    return View(visible, query_positions, key_positions)


def _terms(attention: MultiHeadAttention, q: Tensor, k: Tensor, head: int, view: View) -> tuple[Tensor, float]:
    """What is summed to the product of each query with each key, and what the sum is divided by."""
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
    raise TypeError(f"{type(form).__name__} has no terms that can be told.")


def _other_scale(attention: MultiHeadAttention, scale: float) -> float | None:
    """Without √d_k where the model has it, with it where the model goes without; other forms know no such scale."""
    match attention.scores:
        case ScaledDot() | Bilinear():
            return 1.0
        case PlainDot():
            return math.sqrt(attention.heads.head_width)
    return None


def _softmax(scores: Tensor, weights: Tensor, scale: float) -> Softmax:
    # A row that sees nothing has no largest score; its exponentials are zeros, as its weights are.
    largest = scores.amax(-1, keepdim=True)
    exponentials = torch.where(scores.isneginf(), 0.0, (scores - largest).exp())
    return Softmax(scale, *(_numbers(each) for each in (scores, exponentials, exponentials.sum(-1), weights)))


def _softmax_anew(products: Tensor, scale: float, distance: Tensor | None, visible: Tensor) -> Softmax:
    scores = products / scale if distance is None else products / scale + distance
    return _softmax(scores.masked_fill(~visible, -math.inf), softmax_visible(scores, visible), scale)


def _matrices(attention: MultiHeadAttention, head: int) -> Matrices:
    """W^Q, W^K and W^V of one head, and the whole W^O: x W, so a row an input number."""
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
        case _:  # no matrix: each head takes its own numbers of x, which is what a slice of the identity does
            taken = np.eye(shape.n_heads * shape.head_width)[:, mine]
            query = key = value = (taken, None)
    if isinstance(attention.output, nn.Linear):
        output, output_bias = _part(attention.output, slice(None))
    else:
        output, output_bias = np.eye(shape.n_heads * shape.value_width), None
    return Matrices(query[0], key[0], value[0], output, query[1], key[1], value[1], output_bias)


def slice_of(head: int, width: int) -> slice:
    """Which of the numbers of all heads side by side are this head's."""
    return slice(head * width, (head + 1) * width)


def _part(linear: nn.Linear | None, part: slice) -> tuple[Floats, Floats | None]:
    """The columns of a matrix as it stands in x W, and its bias; a form that reads no queries or keys has none."""
    if linear is None:
        return np.empty((0, 0)), None
    bias = None if linear.bias is None else _numbers(linear.bias[part])
    return _numbers(linear.weight[part].T), bias


def _numbers(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float64)
