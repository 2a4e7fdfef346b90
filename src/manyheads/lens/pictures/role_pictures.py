"""SVG pictures of heads: a grid by role, the similarity of heads, and the roles over the steps of training."""

from collections.abc import Sequence

from manyheads.charts import element, text, title
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


def draw_heads(report: HeadReport, similarities: Sequence[Similarity] = ()) -> str:
    """Draw a grid with a row per attention and a column per head, colored by role, and the similarity maps below it."""
    rows: dict[str, list[RoleCard]] = {}
    for card in report.cards:
        rows.setdefault(Head.parse(card.head).attention, []).append(card)
    heading = _("What each head does ({n_texts} texts)", n_texts=report.n_texts)
    parts = [_text(_LEFT, 20, heading, 14)]
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
    tooltip = f"{card.head}: {', '.join(role.name for role in card.roles) or card.role}"
    return [
        _box(x, y, _CELL[0] - 4, _CELL[1], role_color(card.role), 0.55, tooltip, rx=4),
        _text(x + 6, y + 17, role_name(card.role), 10),
        _text(x + 6, y + 35, label, 10),
    ]


def _draw_similarity(similarity: Similarity, y: int) -> tuple[list[str], int, int]:
    heading = _(
        "{kind}: Jensen–Shannon divergence between heads ({n_texts} texts); dark is similar",
        kind=similarity.kind,
        n_texts=similarity.n_texts,
    )
    parts = [_text(8, y, heading, 12)]
    for row, head in enumerate(similarity.heads):
        top = y + 10 + row * _DOT
        parts.append(_text(8, top + 11, head, 10))
        for column, other in enumerate(similarity.heads):
            distance = float(similarity.distances[row, column])
            x, tooltip = _LEFT + 10 + column * _DOT, f"{head} – {other}: {distance:.2f}"
            parts.append(_box(x, top, _DOT, _DOT, "#0072b2", max(0.0, 1 - distance), tooltip))
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
            tooltip = f"{head}, step {entry.step}: {role}"
            parts.append(_box(x, _TOP + 10 + row * 18, width - 1, 17, role_color(role), 0.7, tooltip))
    for row, head in enumerate(heads):
        parts.append(_text(8, _TOP + 23 + row * 18, head, 10))
        parts.append(
            _text(_LEFT + 26 + len(entries) * width, _TOP + 23 + row * 18, role_name(entries[-1].roles[head]), 10)
        )
    return _svg(_LEFT + 26 + len(entries) * width + 200, _TOP + 20 + len(heads) * 18, parts)


def _text(x: int, y: int, words: str, size: int) -> str:
    return text(x, y, words, font_size=size, font_family="system-ui, sans-serif", fill="#222")


def _box(
    x: int, y: int, width: int, height: int, fill: str, opacity: float, tooltip: str, rx: int | None = None
) -> str:
    shade = f"{opacity:.2f}"
    return element("rect", title(tooltip), x=x, y=y, width=width, height=height, rx=rx, fill=fill, fill_opacity=shade)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    paper = element("rect", width=width, height=height, fill="#fff")
    content, box = "\n".join(["", paper, *parts, ""]), f"0 0 {width} {height}"
    return element("svg", content, xmlns="http://www.w3.org/2000/svg", width=width, height=height, viewBox=box) + "\n"
