"""One row of one head: every number of a query as data (`WalkRow`), and as the table of a notebook.

All numbers are from `attention_walk`, in double precision, so that displayed terms add up to displayed totals.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import torch
from torch import Tensor

from manyheads.errors import LensError
from manyheads.lens.heads import Head
from manyheads.lens.pictures.notebook_views import html_table
from manyheads.messages import _
from manyheads.model import MultiHeadAttention, Transformer, evaluating
from manyheads.model.masks import View
from manyheads.tasks import ModelInput, Task
from manyheads.tasks.lens_output import SPECIAL_NAMES
from manyheads.text.tokens.tokenizer import METASPACE, Token
from manyheads.walks.attention_walk import (
    AttentionCall,
    Floats,
    Walk,
    capture_calls,
    choose_attention,
    slice_of,
    walk_attention,
)

_N_KEYS = 40  # rows of the table


@dataclass(frozen=True)
class WalkedKey:
    """One key of a row; k and q are empty for score forms that do not read them."""

    name: str
    k: list[float]  # after rotary positions
    terms: list[float]  # of the product; q_d k_d for dot products
    product: float
    bias: float | None  # of ALiBi
    visible: bool
    score: float | None  # product / scale + bias; None where masked
    exponential: float  # e^(score − the largest of the row)
    weight: float
    weight_unscaled: float | None  # without √d_k, or with it if the model has none; None for forms without this scale
    v: list[float]


@dataclass(frozen=True)
class WalkRow:
    """The computation of one head for one query."""

    attention: str
    head: int
    query: int
    query_name: str
    form: str  # of the scores, as in a recipe
    head_width: int
    scale: float  # the divisor of the products
    q: list[float]  # after rotary positions
    keys: list[WalkedKey]
    exponential_sum: float
    weighted_sum: list[float]  # weights · V
    contribution: list[float]  # what this head adds to the output, head_i W_i^O
    contribution_norm: float
    shares: list[float]  # ‖head_i W_i^O‖ of every head of this attention at this position


def walk_row(task: Task, model_input: ModelInput, head: Head | str, query: int) -> WalkRow:
    """Return every number of one head for the query at this position of the tokens that a model reads."""
    head = Head.parse(head) if isinstance(head, str) else head
    attention = choose_attention(task.model, head.attention, head.number)
    n_queries = len(model_input.target if attention.name.startswith("decoder") else model_input.source)
    if not 0 <= query < n_queries:
        raise LensError(
            _(
                "There is no query at position {query} of {attention}. Allowed: 0 to {last}.",
                query=query,
                attention=attention.name,
                last=n_queries - 1,
            )
        )
    return _walk(attention, _call_of(task, attention, model_input), model_input, head.number, query)


def walk_rows(task: Task, model_input: ModelInput, attention: str) -> Iterator[WalkRow]:
    """Yield every number of every head and query of one attention, after one pass of the model."""
    module = choose_attention(task.model, attention, 0)
    call = _call_of(task, module, model_input)
    for head in range(module.heads.n_heads):
        for query in range(call.queries_from.size(1)):
            yield _walk(module, call, model_input, head, query)


def _call_of(task: Task, attention: MultiHeadAttention, model_input: ModelInput) -> AttentionCall:
    with capture_calls(attention) as calls, evaluating(task.model):
        task.model.hidden(*(_ids(task.model, tokens) for tokens in (model_input.source, model_input.target)))
    return calls[0]


def _walk(
    attention: MultiHeadAttention, call: AttentionCall, model_input: ModelInput, head: int, query: int
) -> WalkRow:
    is_encoder = attention.name.startswith("encoder")
    keys = model_input.source if is_encoder or attention.name.endswith("cross") else model_input.target
    walked = walk_attention(
        attention,
        _one_query(call, query),
        head=head,
        query=0,
        query_names=[_query_name(model_input, attention.name, query)],
        key_names=[_name(token) for token in keys],
    )
    return replace(_row(walked), query=query, head_width=attention.heads.head_width)


def _query_name(model_input: ModelInput, attention: str, query: int) -> str:
    """Return the name of a query: of cross-attention, the token that is written at the position, if it is known."""
    if attention.endswith("cross") and query < len(model_input.written):
        return _name(model_input.written[query])
    return _name((model_input.target if attention.startswith("decoder") else model_input.source)[query])


def _ids(model: Transformer, tokens: Sequence[Token]) -> Tensor | None:
    return torch.tensor([[token.id for token in tokens]], device=model.device) if tokens else None


def _one_query(call: AttentionCall, query: int) -> AttentionCall:
    """Return a call with one query only: the terms of all queries of a long text would fill the memory."""
    view = call.view
    visible = view.visible.expand(-1, -1, call.queries_from.size(1), -1)
    return AttentionCall(
        call.queries_from[:, query : query + 1],
        call.keys_from,
        View(visible[:, :, query : query + 1], view.query_positions[:, query : query + 1], view.key_positions),
        call.output[:, query : query + 1],
    )


def _row(walked: Walk) -> WalkRow:
    """Return the first row of a walk."""
    query = 0
    q = walked.q if walked.rotated_q is None else walked.rotated_q
    contribution = walked.contribution[query]
    return WalkRow(
        attention=walked.attention,
        head=walked.head,
        query=query,
        query_name=walked.query_names[query],
        form=walked.form,
        head_width=q.shape[1],
        scale=walked.softmax.scale,
        q=q[query].tolist(),
        keys=[_key(walked, query, key) for key in range(len(walked.key_names))],
        exponential_sum=float(walked.softmax.sums[query]),
        weighted_sum=walked.weighted_sum[query].tolist(),
        contribution=contribution.tolist(),
        contribution_norm=float(np.linalg.norm(contribution)),
        shares=_norms(walked, query),
    )


def _key(walked: Walk, query: int, key: int) -> WalkedKey:
    k = walked.k if walked.rotated_k is None else walked.rotated_k
    visible = bool(walked.visible[query, key])
    return WalkedKey(
        name=walked.key_names[key],
        k=k[key].tolist(),
        terms=walked.terms[query, key].tolist(),
        product=float(walked.products[query, key]),
        bias=None if walked.distance is None else float(walked.distance[query, key]),
        visible=visible,
        score=float(walked.softmax.scores[query, key]) if visible else None,
        exponential=float(walked.softmax.exponentials[query, key]),
        weight=float(walked.softmax.weights[query, key]),
        weight_unscaled=None if walked.contrast is None else float(walked.contrast.weights[query, key]),
        v=walked.v[key].tolist(),
    )


def _norms(walked: Walk, query: int) -> list[float]:
    """Return the norm of what each head of the attention adds to the output at a position."""
    width = walked.weighted_sum.shape[1]
    parts: Sequence[Floats] = [
        walked.heads[query, part] @ walked.matrices.output[part]
        for part in (slice_of(head, width) for head in range(walked.n_heads))
    ]
    return [float(np.linalg.norm(part)) for part in parts]


def _name(token: Token) -> str:
    return SPECIAL_NAMES.get(token.id) or token.text.replace(METASPACE, " ")


def walk_html(walk: Walk) -> str:
    """Return the row of the query as a table: for each key q · k, the score and the weight."""
    softmax, query = walk.softmax, walk.query
    order = list(range(len(walk.key_names)))
    if len(order) > _N_KEYS:
        order = sorted(sorted(order, key=lambda key: -softmax.weights[query, key])[:_N_KEYS])
    rows = []
    for key in order:
        weight = float(softmax.weights[query, key])
        bar = f'<div style="background:#0b62a4;height:9px;width:{100 * weight:.0f}px"></div>'
        score = f"{softmax.scores[query, key]:.3f}" if walk.visible[query, key] else _("masked")
        numbers = [f"{walk.products[query, key]:.3f}", score, f"{weight:.3f}"]
        rows.append([escape(_shown(walk.key_names[key])), *numbers, bar])
    name = _shown(walk.query_names[query])
    title = _("{head} · query {name}", head=Head(walk.attention, walk.head), name=name)
    headings = [_("key"), "q·k", _("score (÷ {scale:.3g})", scale=softmax.scale), "softmax", ""]
    note = ""
    if len(order) < len(walk.key_names):
        note = _(
            "The {n_shown} keys with the largest weights, of {n_keys}.",
            n_shown=_N_KEYS,
            n_keys=len(walk.key_names),
        )
    return html_table(title, headings, rows, n_left=1, note=note)


def _shown(name: str) -> str:
    return {"<s>": "BOS", "</s>": "EOS"}.get(name, name.strip(METASPACE) or "␣")
