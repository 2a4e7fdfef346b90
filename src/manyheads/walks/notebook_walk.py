"""What a notebook shows for a walk."""

from html import escape

from manyheads.language import pick
from manyheads.lens.heads import Head
from manyheads.lens.pictures.notebook_views import html_table
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
        score = f"{softmax.scores[query, key]:.3f}" if walk.visible[query, key] else pick("masked", "掩码")
        numbers = [f"{walk.products[query, key]:.3f}", score, f"{weight:.3f}"]
        rows.append([escape(_shown(walk.key_names[key])), *numbers, bar])
    title = f"{Head(walk.attention, walk.head)} · {pick('query', '查询')} {_shown(walk.query_names[query])}"
    headings = [pick("key", "键"), "q·k", pick("score", "分数") + f" (÷ {softmax.scale:.3g})", "softmax", ""]
    note = ""
    if len(order) < len(walk.key_names):
        note = pick(
            f"The {_N_KEYS} keys with the largest weights, of {len(walk.key_names)}.",
            f"共 {len(walk.key_names)} 个键，这里是权重最大的 {_N_KEYS} 个。",
        )
    return html_table(title, headings, rows, n_left=1, note=note)


def _shown(name: str) -> str:
    return {"<s>": "BOS", "</s>": "EOS"}.get(name, name.strip(METASPACE) or "␣")
