"""SVG pictures of heads: a grid by role, the similarity of heads, and the roles over the steps of training."""

from collections.abc import Sequence
from html import escape

from manyheads.lens.heads import Head
from manyheads.lens.roles.role_assignment import HeadReport, RoleCard, as_displayed
from manyheads.lens.roles.role_names import role_color, role_name
from manyheads.lens.roles.similarity import Similarity
from manyheads.lens.roles.timeline import TimelineEntry
from manyheads.messages import _

_CELL = (150, 46)
_LEFT = 120
_TOP = 34
_DOT = 14  # side of a cell of the similarity map
_FONT = "font-family='system-ui, sans-serif'"


def draw_heads(report: HeadReport, similarities: Sequence[Similarity] = ()) -> str:
    """Draw a grid with a row per attention and a column per head, colored by role, and the similarity maps below it."""
    rows: dict[str, list[RoleCard]] = {}
    for card in report.cards:
        rows.setdefault(Head.parse(card.head).attention, []).append(card)
    title = _("What each head does ({n_texts} texts)", n_texts=report.n_texts)
    parts = [_text(_LEFT, 20, title, 14)]
    y = _TOP
    for attention, cards in rows.items():
        parts.append(_text(8, y + 27, attention, 12))
        for number, card in enumerate(cards):
            parts += _cell(_LEFT + number * _CELL[0], y, card)
        y += _CELL[1] + 4
    width = _LEFT + max(map(len, rows.values())) * _CELL[0] + 10
    for similarity in similarities:
        drawn, height, used = _draw_similarity(similarity, y + 24)
        parts += drawn
        y, width = y + 24 + height, max(width, used)
    return _svg(width, y + 10, parts)


def _cell(x: int, y: int, card: RoleCard) -> list[str]:
    name = card.roles[0].statistic if card.roles else "confidence"
    label = ""
    if name in card.statistics:
        prefix, statistic = as_displayed(name, card.statistics[name])
        label = f"{prefix}{statistic.value:.2f} [{statistic.low:.2f}, {statistic.high:.2f}]"
    return [
        f"<rect x='{x}' y='{y}' width='{_CELL[0] - 4}' height='{_CELL[1]}' rx='4' fill='{role_color(card.role)}' "
        f"fill-opacity='0.55'><title>{escape(card.head)}: "
        f"{escape(', '.join(role.name for role in card.roles) or card.role)}</title></rect>",
        _text(x + 6, y + 17, role_name(card.role), 10),
        _text(x + 6, y + 35, label, 10),
    ]


def _draw_similarity(similarity: Similarity, y: int) -> tuple[list[str], int, int]:
    title = _(
        "{kind}: Jensen–Shannon divergence between heads ({n_texts} texts); dark is similar",
        kind=similarity.kind,
        n_texts=similarity.n_texts,
    )
    parts = [_text(8, y, title, 12)]
    for row, head in enumerate(similarity.heads):
        top = y + 10 + row * _DOT
        parts.append(_text(8, top + 11, head, 10))
        for column, other in enumerate(similarity.heads):
            distance = float(similarity.distances[row, column])
            parts.append(
                f"<rect x='{_LEFT + 10 + column * _DOT}' y='{top}' width='{_DOT}' height='{_DOT}' fill='#0072b2' "
                f"fill-opacity='{max(0.0, 1 - distance):.2f}'><title>{escape(head)} – {escape(other)}: {distance:.2f}"
                "</title></rect>"
            )
    size = len(similarity.heads) * _DOT
    return parts, size + 20, _LEFT + 20 + size


def draw_timeline(entries: Sequence[TimelineEntry]) -> str:
    """Draw a grid with a row per head and a column per snapshot, colored by role."""
    heads = list(entries[-1].roles)
    width = max(16, min(60, 700 // len(entries)))
    parts = [_text(8, 20, _("Roles by training step"), 14)]
    for column, entry in enumerate(entries):
        x = _LEFT + 20 + column * width
        if column % max(1, 50 // width) == 0:
            parts.append(_text(x, _TOP + 4, f"{entry.step:,}", 9))
        for row, head in enumerate(heads):
            role = entry.roles[head]
            parts.append(
                f"<rect x='{x}' y='{_TOP + 10 + row * 18}' width='{width - 1}' height='17' fill='{role_color(role)}' "
                f"fill-opacity='0.7'><title>{escape(head)}, step {entry.step}: {escape(role)}</title></rect>"
            )
    for row, head in enumerate(heads):
        parts.append(_text(8, _TOP + 23 + row * 18, head, 10))
        parts.append(
            _text(_LEFT + 26 + len(entries) * width, _TOP + 23 + row * 18, role_name(entries[-1].roles[head]), 10)
        )
    return _svg(_LEFT + 26 + len(entries) * width + 200, _TOP + 20 + len(heads) * 18, parts)


def _text(x: int, y: int, text: str, size: int) -> str:
    return f"<text x='{x}' y='{y}' font-size='{size}' {_FONT} fill='#222'>{escape(text)}</text>"


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    background = f"<rect width='{width}' height='{height}' fill='#fff'/>"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'>"
    return "\n".join([head, background, *parts, "</svg>", ""])
