"""What a notebook shows for a walk."""

from html import escape

from manyheads.language import pick
from manyheads.lens.heads import Head
from manyheads.lens.pictures.notebook_views import html_table
from manyheads.messages import _
from manyheads.text.tokens.tokenizer import METASPACE
from manyheads.walks.attention_walk import Walk

_N_KEYS = 40  # rows of the table


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
    title = f"{Head(walk.attention, walk.head)} · {pick('query', '查询')} {_shown(walk.query_names[query])}"
    headings = [_("key"), "q·k", _("score") + f" (÷ {softmax.scale:.3g})", "softmax", ""]
    note = ""
    if len(order) < len(walk.key_names):
        note = _(
            "The {N_KEYS} keys with the largest weights, of {n_key_names}.",
            N_KEYS=_N_KEYS,
            n_key_names=len(walk.key_names),
        )
    return html_table(title, headings, rows, n_left=1, note=note)


def _shown(name: str) -> str:
    return {"<s>": "BOS", "</s>": "EOS"}.get(name, name.strip(METASPACE) or "␣")
