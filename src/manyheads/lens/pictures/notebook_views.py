"""What a notebook shows for a trace, and the tables of all notebook views: HTML without scripts, in plain colors."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

from manyheads.lens.pictures.head_pictures import draw_overview
from manyheads.lens.traces.tracing import Trace


def trace_html(trace: Trace) -> str:
    """Return a picture of all heads of one kind; as an image, so that its ids cannot clash with those of others."""
    picture = b64encode(draw_overview(trace, format="svg")).decode()
    return f'<img alt="{escape(repr(trace))}" style="background:#fff" src="data:image/svg+xml;base64,{picture}">'


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
