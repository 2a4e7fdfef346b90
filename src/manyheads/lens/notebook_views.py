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
_CELL = "padding:2px 12px 2px 0;text-align:right;white-space:nowrap"
_LEFT = "padding:2px 12px 2px 0;text-align:left;white-space:nowrap"


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
        name = walk.key_names[key].strip(METASPACE) or "␣"
        numbers = [f"{walk.products[query, key]:.3f}", score, f"{weight:.3f}"]
        rows.append([escape(name), *numbers, bar])
    title = f"{Head(walk.attention, walk.head)} · {pick('query', '查询')} {walk.query_names[query].strip(METASPACE)!r}"
    headings = [pick("key", "键"), "q·k", pick(f"÷ {softmax.scale:.3g}", f"÷ {softmax.scale:.3g}"), "softmax", ""]
    note = ""
    if len(order) < len(walk.key_names):
        note = pick(
            f"The {_N_KEYS} keys with the largest weights, of {len(walk.key_names)}.",
            f"共 {len(walk.key_names)} 个键，这里是权重最大的 {_N_KEYS} 个。",
        )
    return html_table(title, headings, rows, note)


def html_table(title: str, headings: Iterable[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    """Return a table; the cells are HTML, the title, the headings and the note text."""
    head = "".join(
        f'<th style="{_LEFT if column == 0 else _CELL}">{escape(heading)}</th>'
        for column, heading in enumerate(headings)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{_LEFT if column < 2 else _CELL}">{cell}</td>' for column, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    below = f"<p>{escape(note)}</p>" if note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p><b>{escape(title)}</b></p>{table}{below}</div>"
