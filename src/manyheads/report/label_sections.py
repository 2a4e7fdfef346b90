"""The parts of a scorecard that are about labels: a row for each, and the confusion matrix."""

import math
from collections.abc import Mapping
from typing import Any

from manyheads.metrics import Confusion
from manyheads.report.confusion_matrix import confusion_svg
from manyheads.report.history import number
from manyheads.report.markup import both, text

_MOST_ROWS = 40
_COLUMNS = {"precision": ("precision", "精确率"), "recall": ("recall", "召回率"), "f1": ("F1", "F1")}


def label_table(card: Mapping[str, Any]) -> str:
    """How well each label is found, the worst first; nothing if the card has no labels."""
    rows = card.get("rows")
    found = [row for row in rows if _is_row(row)] if isinstance(rows, list | tuple) else []
    if not found:
        return ""
    found.sort(key=lambda row: number(row["f1"]))
    heads = "".join(f'<th scope="col" class="number">{both(*names)}</th>' for names in _COLUMNS.values())
    head = f'<tr><th scope="col">{both("label", "标签")}</th>{heads}'
    head += f'<th scope="col" class="number">{both("support", "样本数")}</th></tr>'
    body = "".join(_row(row) for row in found[:_MOST_ROWS])
    summary = both(f"Labels ({len(found)})", f"各标签（{len(found)}）")
    if len(found) > _MOST_ROWS:
        summary = both(
            f"Labels: the {_MOST_ROWS} worst of {len(found)}", f"各标签：{len(found)} 个中最差的 {_MOST_ROWS} 个"
        )
    table = f'<table class="labels"><thead>{head}</thead><tbody>{body}</tbody></table>'
    return f"<details><summary>{summary}</summary>{table}</details>"


def _is_row(row: object) -> bool:
    return isinstance(row, Mapping) and "label" in row and math.isfinite(number(row.get("f1")))


def _row(row: Mapping[str, Any]) -> str:
    cells = "".join(f'<td class="number">{number(row.get(key)):.1f}</td>' for key in _COLUMNS)
    support = f'<td class="number faint">{number(row.get("support")):,.0f}</td>'
    return f'<tr><th scope="row" dir="auto">{text(row["label"])}</th>{cells}{support}</tr>'


def confusion_figure(card: Mapping[str, Any]) -> str:
    """The confusion matrix of a card; nothing if it has none, or one that is no matrix."""
    given = card.get("confusion")
    labels, counts = (given.get("labels"), given.get("counts")) if isinstance(given, Mapping) else (None, None)
    if not (isinstance(labels, list | tuple) and labels and isinstance(counts, list | tuple)):
        return ""
    if len(counts) != len(labels) or not all(_are_counts(row, len(labels)) for row in counts):
        return ""
    picture = confusion_svg(Confusion([str(label) for label in labels], counts))
    return f"<details open><summary>{both('Confusion', '混淆矩阵')}</summary>{picture}</details>"


def _are_counts(row: object, n_labels: int) -> bool:
    return (
        isinstance(row, list | tuple)
        and len(row) == n_labels
        and all(isinstance(count, int) and count >= 0 for count in row)
    )
