"""Pictures of heads for papers and slides: `draw_head` draws one head, `draw_overview` all heads of one kind.

    recorded = trace(bundle, "The cat sees the dog.")
    Path("head.pdf").write_bytes(draw_head(recorded, "decoder.0.cross/2", format="pdf"))
    Path("heads.svg").write_bytes(draw_overview(recorded, format="svg"))

A matrix has a row per query and a column per key. Arcs connect each query with the keys that hold most of its mass.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Literal

from manyheads.errors import LensError
from manyheads.language import Language, current, using
from manyheads.lens.heads import Head
from manyheads.lens.pictures.map_painting import (
    LABEL,
    MAX_SHAPES,
    SMALL,
    Box,
    cell_size,
    label_columns,
    label_rows,
    label_step,
    paint_cells,
    paint_links,
    paint_matrix,
    paint_scale,
    root_scale,
)
from manyheads.lens.pictures.sheet import SOFT, Format, Sheet, check_format, open_sheet
from manyheads.lens.roles.head_counts import kind_of
from manyheads.lens.roles.role_names import role_name
from manyheads.lens.traces.display_units import Sides, UnitName
from manyheads.lens.traces.unit_maps import MapKind, Maps, UnitMap, heads_in, make_unit_map, shown_units, sides_of_trace
from manyheads.messages import _
from manyheads.settings import did_you_mean

View = Literal["matrix", "arcs"]
AttentionKind = Literal["encoder", "decoder", "cross"]

MASS = 0.6  # of each row, which the drawn links hold
_MAX_UNITS = {"matrix": 160, "arcs": 60}
_MAX_SMALL = 64  # units of a map in the overview
_PAGE = 7.0  # inches, the width of an overview
_TINY = 6.5  # font size of an overview
_LEFT, _TOP = 4.0, 4.0  # of a matrix or its links on the sheet; labels are to the left and above
_TITLE = 11.0  # font size
_LEAST_WIDTH = 4.2  # of the text around a small matrix


def draw_head(
    maps: Maps,
    head: Head | str,
    sides: Sides | None = None,
    *,
    format: Format,
    view: View = "matrix",
    kind: MapKind = "weights",
    unit: UnitName = "tokens",
    mass: float = MASS,
    role: str | None = None,
    language: Language | None = None,
) -> bytes:
    """Return a picture of one head with labels, a scale and a title, as an SVG, PNG or PDF file.

    `role` is the name of the head's role, if known. Links are drawn for the largest values of each row that hold the
    share `mass` of it. `sides` are the words of the text; a trace has its own. A long text is drawn as far as it is
    legible, and the picture says so.
    """
    format = check_format(format)
    if view not in _MAX_UNITS:
        raise LensError(
            _("There is no view {view!r}. {did_you_mean}", view=view, did_you_mean=did_you_mean(view, _MAX_UNITS))
        )
    if not 0.0 < mass <= 1.0:
        raise LensError(
            _(
                "mass = {mass:g} is not a share. Give a number above 0 and at most 1, such as {example}.",
                mass=mass,
                example=MASS,
            )
        )
    sides = sides or sides_of_trace(maps)
    unit_map = make_unit_map(maps, head, kind, shown_units(sides, unit), _MAX_UNITS[view])
    with using(language or current()):
        title, text = _title(unit_map.head, role), _text(sides)
        caption = _matrix_caption(unit_map) if view == "matrix" else _links_caption(unit_map, mass)
        labels = [unit.text for unit in (*unit_map.queries, *unit_map.keys)]
        with open_sheet([title, text, caption, *labels]) as sheet:
            if view == "matrix":
                box = paint_matrix(sheet, unit_map, _LEFT, _TOP, _corner(unit_map), _scale_name(kind))
            else:
                box = paint_links(sheet, unit_map, unit_map.main_links(mass), _LEFT, _TOP, _scale_name(kind))
            _frame(sheet, box, title, text, caption)
            return sheet.save(format)


def draw_overview(
    maps: Maps,
    sides: Sides | None = None,
    *,
    format: Format,
    attention: AttentionKind | None = None,
    kind: MapKind = "weights",
    unit: UnitName = "tokens",
    roles: Mapping[str, str] | None = None,
    language: Language | None = None,
) -> bytes:
    """Return a picture of all heads of one kind, a row per layer, with one scale: an SVG, PNG or PDF file.

    The default is the cross-attention of a model that has it. `roles` gives the role of each head by its name.
    """
    format = check_format(format)
    sides = sides or sides_of_trace(maps)
    units = shown_units(sides, unit)
    rows = [
        [make_unit_map(maps, head, kind, units, _MAX_SMALL) for head in heads]
        for heads in _heads_by_layer(maps, attention)
    ]
    first = rows[0][0]
    with using(language or current()):
        name = kind_of(first.head.attention)
        title, text = _("All heads of {name}", name=name), _text(sides)
        caption = _overview_caption(first)
        labels = [unit.text for unit in (*first.queries, *first.keys)]
        with open_sheet([title, text, caption, *labels]) as sheet:
            box = _paint_grid(sheet, rows, roles or {}, _scale_name(kind))
            _frame(sheet, box, title, text, caption)
            return sheet.save(format)


def _heads_by_layer(maps: Maps, attention: AttentionKind | None) -> list[list[Head]]:
    layers: dict[str, dict[str, list[Head]]] = {}
    for head in heads_in(maps):
        use = "cross" if head.attention.endswith("cross") else head.attention.split(".")[0]
        layers.setdefault(use, {}).setdefault(head.attention, []).append(head)
    chosen: str = attention or ("cross" if "cross" in layers else next(iter(layers), ""))
    if chosen not in layers:
        raise LensError(
            _(
                "This model has no heads of kind {chosen!r}. {did_you_mean}",
                chosen=chosen,
                did_you_mean=did_you_mean(chosen, layers),
            )
        )
    return list(layers[chosen].values())


def _paint_grid(sheet: Sheet, rows: Sequence[Sequence[UnitMap]], roles: Mapping[str, str], scale: str) -> Box:
    """Paint a row of maps for each layer; only the outer maps are labeled."""
    norm = root_scale(max(each.largest for row in rows for each in row))
    is_image = sum(each.values.size for row in rows for each in row) > 4 * MAX_SHAPES
    first = rows[0][0]
    n_queries, n_keys = first.values.shape
    cell = _small_cell(rows)
    width, height = cell * n_keys, cell * n_queries
    has_labels = _has_labels(rows)
    left = edge = _LEFT
    top = upper = _TOP
    for layer, row in enumerate(rows):
        y = top + layer * (height + 0.34)
        for number, each in enumerate(row):
            x = left + number * (width + 0.14)
            paint_cells(sheet.axes(x, y, width, height), each, norm, is_image=is_image)
            name = role_name(roles[str(each.head)]) if str(each.head) in roles else ""
            label = sheet.fitted(f"{each.head.attention.split('.')[1]}/{each.head.number} {name}".strip(), _TINY, width)
            sheet.text(x, y + height + 0.12, label, fontsize=_TINY, color=SOFT, va="baseline")
            if has_labels and layer == 0:
                upper = min(upper, label_columns(sheet, each.keys, x, y, cell, _TINY))
        if has_labels:
            edge = min(edge, label_rows(sheet, row[0].queries, left, y, cell, _TINY))
    right = left + max(map(len, rows)) * (width + 0.14) + 0.1
    right = paint_scale(sheet, right, top, min(max(height, 0.8), 1.6), norm, scale)
    return Box(edge, upper - 0.06, right, top + len(rows) * (height + 0.34) - 0.16)


def _small_cell(rows: Sequence[Sequence[UnitMap]]) -> float:
    n_queries, n_keys = rows[0][0].values.shape
    return min(0.15, (_PAGE / max(map(len, rows)) - 0.14) / n_keys, 1.9 / n_queries)


def _has_labels(rows: Sequence[Sequence[UnitMap]]) -> bool:
    return label_step(_small_cell(rows), _TINY) == 1


def _title(head: Head, role: str | None) -> str:
    name = _("Head {head}", head=head)
    return name if role is None else f"{name} · {role_name(role)}"


def _text(sides: Sides) -> str:
    if sides.source is None:
        return sides.target.text if sides.target else ""
    return sides.source.text if sides.target is None else f"{sides.source.text}  →  {sides.target.text}"


def _corner(unit_map: UnitMap) -> str:
    if unit_map.is_self:
        return _("query ↓  key →")
    return _("target ↓  source →")


def _frame(sheet: Sheet, box: Box, title: str, text: str, caption: str) -> None:
    """Write the title and the text above what is painted, and the caption below it."""
    width = max(box.right - box.left, _LEAST_WIDTH)
    sheet.text(box.left, box.top - 0.36, title, fontsize=_TITLE, va="baseline")
    sheet.text(box.left, box.top - 0.14, sheet.fitted(text, LABEL, width), fontsize=LABEL, color=SOFT, va="baseline")
    for number, line in enumerate(sheet.wrapped(caption, SMALL, width)):
        sheet.text(box.left, box.bottom + 0.26 + 0.14 * number, line, fontsize=SMALL, color=SOFT, va="baseline")


def _matrix_caption(unit_map: UnitMap) -> str:
    parts = [_meaning(unit_map)]
    if unit_map.masked.any():
        parts.append(_("Gray: masked."))
    step = label_step(cell_size(unit_map))
    if step > 1:
        parts.append(_("One label in {step} is written.", step=step))
    return _joined([*parts, *_cut(unit_map)])


def _links_caption(unit_map: UnitMap, mass: float) -> str:
    values = {"row": _row_name(unit_map), "share": f"{100 * mass:.0f} %"}
    if unit_map.kind == "weights":
        largest = _("The largest links of each {row}, which hold {share} of its attention.", **values)
    else:
        largest = _("The largest links of each {row}, which hold {share} of its norms ‖α f(x)‖.", **values)
    parts = [
        largest,
        _("Wide and dark: large."),
    ]
    if unit_map.is_self:
        parts.append(_("The dot is at the key."))
    return _joined([*parts, *_cut(unit_map)])


def _meaning(unit_map: UnitMap) -> str:
    if unit_map.kind == "weights" and len(unit_map.keys) < unit_map.n_keys:
        return _("Color: attention weight.")
    if unit_map.kind == "weights":
        return _("Color: attention weight; each row sums to 1.")
    return _("Color: ‖α f(x)‖, the norm of what each key contributes to the query.")


def _scale_name(kind: MapKind) -> str:
    return _("weight") if kind == "weights" else _("norm")


def _overview_caption(unit_map: UnitMap) -> str:
    axes = _("Rows: queries; columns: keys.")
    if not unit_map.is_self:
        axes = _("Rows: target; columns: source.")
    masked = [_("Gray: masked.")] if unit_map.masked.any() else []
    names = _("Below each map: layer/head.")
    return _joined([axes, _meaning(unit_map), _("Square-root scale."), *masked, names, *_cut(unit_map)])


def _row_name(unit_map: UnitMap) -> str:
    return _("query") if unit_map.is_self else _("target position")


def _cut(unit_map: UnitMap) -> list[str]:
    """Say what of a long text is not drawn."""
    n_keys, n_queries = len(unit_map.keys), len(unit_map.queries)
    keys, queries = (_counted(n, unit_map.unit) for n in (unit_map.n_keys, unit_map.n_queries))
    cut = []
    if n_keys < unit_map.n_keys and unit_map.is_self:
        cut.append(_("The first {n_drawn} of {all} are drawn.", n_drawn=n_keys, all=keys))
    elif n_keys < unit_map.n_keys:
        cut.append(_("The first {n_drawn} of {all} of the source are drawn.", n_drawn=n_keys, all=keys))
    if n_queries < unit_map.n_queries and not unit_map.is_self:
        cut.append(_("The first {n_drawn} of {all} of the target are drawn.", n_drawn=n_queries, all=queries))
    return cut


def _counted(n: int, unit: UnitName) -> str:
    if unit == "tokens":
        return _("{n} tokens", n=n)
    return _("{n} characters", n=n) if unit == "characters" else _("{n} words", n=n)


def _joined(sentences: Sequence[str]) -> str:
    return reduce(lambda before, after: _("{before} {after}", before=before, after=after), sentences)
