"""What a notebook shows for a trace and a walk: HTML without scripts, in plain colors."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

from manyheads.language import pick
from manyheads.lens.attention_walk import Walk
from manyheads.lens.head_pictures import draw_overview
from manyheads.lens.heads import Head
from manyheads.lens.trace import Trace
from manyheads.text.tokenizer import METASPACE

_N_KEYS = 40  # rows of a walk's table


def trace_html(trace: Trace) -> str:
    """Return a picture of all heads of one kind; as an image, so that its ids cannot clash with those of others."""
    picture = b64encode(draw_overview(trace, format="svg")).decode()
    return f'<img alt="{escape(repr(trace))}" style="background:#fff" src="data:image/svg+xml;base64,{picture}">'


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


def html_table(
    title: str, headings: Iterable[str], rows: Iterable[Sequence[str]], *, n_left: int, note: str = ""
) -> str:
    """Return a table whose first `n_left` columns are text and the others numbers; the cells of `rows` are HTML."""
    head = "".join(f"<th{_style(column, n_left)}>{escape(heading)}</th>" for column, heading in enumerate(headings))
    lines = ("".join(f"<td{_style(column, n_left)}>{cell}</td>" for column, cell in enumerate(row)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    below = f"<p>{escape(note)}</p>" if note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p><b>{escape(title)}</b></p>{table}{below}</div>"


def _style(column: int, n_left: int) -> str:
    side = "left" if column < n_left else "right"
    return f' style="padding:2px 12px 2px 0;text-align:{side};white-space:nowrap"'


def _shown(name: str) -> str:
    return {"<s>": "BOS", "</s>": "EOS"}.get(name, name.strip(METASPACE) or "␣")
