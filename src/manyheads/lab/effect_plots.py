"""Pictures of an experiment as SVG: every seed as a dot, the mean with its interval, or lines over conditions.

Arms differ by position, dashes and shape, never by color alone: a page printed in black and white loses nothing.
"""

from collections.abc import Sequence

from manyheads.charts import Axis, element, label_width, line, polyline, text
from manyheads.lab.effects import mean_interval
from manyheads.lab.figures import format_value
from manyheads.lab.lab_texts import LabText, in_each_language
from manyheads.lab.question import Arm, Condition, Measure, Plot, Question
from manyheads.lab.result_store import Results

_WIDTH, _NARROW = 720, 350  # of a screen, of a phone
_ROW, _HEADING, _AXIS, _MARGIN = 24, 30, 46, 16
_LINES_HEIGHT = 300
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "1 4", "12 4")
_SHAPES = ("circle", "square", "triangle", "diamond")


def draw_plot(plot: Plot, question: Question, results: Results) -> LabText:
    """The picture as SVG, in each language once for wide windows and once for narrow ones; the style shows one."""
    draw = _draw_dots if plot.kind == "dots" else _draw_lines
    return in_each_language(lambda: "".join(draw(plot, question, results, width) for width in (_WIDTH, _NARROW)))


def _shown(plot: Plot, question: Question) -> tuple[list[Arm], list[Condition]]:
    arms = [arm for arm in question.arms if not plot.arms or arm.name in plot.arms]
    conditions = [
        condition for condition in question.conditions if not plot.conditions or condition.name in plot.conditions
    ]
    return arms, conditions


def _axis(values: Sequence[float], measure: Measure, start: float, end: float) -> Axis:
    low, high = min(values), max(values)
    if measure.is_logarithmic:
        low, high = max(low, 1e-30), max(high, 1e-30)
        return Axis(low / 1.3, high * 1.3, start, end, True)
    if measure.is_percentage and low >= 0 and high <= 1 and high - low > 0.2:
        return Axis(0.0, 1.0, start, end)
    margin = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    floor = 0.0 if low >= 0 and low < 0.4 * high else low - margin
    return Axis(floor, high + margin, start, end)


def _draw_dots(plot: Plot, question: Question, results: Results, width: int) -> str:
    arms, conditions = _shown(plot, question)
    measure = question.measure(plot.measure)
    groups = []
    for condition in conditions:
        rows = [(arm, list(results.values(arm.name, condition.name, measure.name).values())) for arm in arms]
        if any(values for _, values in rows):
            groups.append((condition, [(arm, values) for arm, values in rows if values]))
    everything = [value for _, rows in groups for _, values in rows for value in values]
    if not everything:
        return ""
    is_narrow = width == _NARROW  # labels stand above their rows
    label_width = 0.0 if is_narrow else 16 + max(_width(arm.label) for _, rows in groups for arm, _ in rows)
    row_height, above = (_ROW + 18, 18) if is_narrow else (_ROW, 0)
    axis = _axis(everything, measure, label_width + 8, width - 70)
    parts, y = [], 0.0
    height = sum(_HEADING * bool(str(condition.label)) + row_height * len(rows) for condition, rows in groups) + _AXIS
    for tick in axis.ticks():
        parts.append(line("grid", axis(tick), axis(tick), 0, height - _AXIS))
    for condition, rows in groups:
        if str(condition.label):
            y += _HEADING
            parts.append(_text(0, y - 9, condition.label, "heading"))
        for arm, values in rows:
            middle = y + above + _ROW / 2
            x, baseline, kind = (4.0, y + 16, "start") if is_narrow else (label_width, middle + 5, "end")
            parts.append(_text(x, baseline, arm.label, kind))
            parts += [element("circle", class_="seed", cx=axis(value), cy=middle, r=3.5) for value in values]
            mean, low, high = mean_interval(values, is_logarithmic=measure.is_logarithmic)
            parts.append(line("interval", axis(low), axis(high), middle, middle))
            parts.append(line("mean", axis(mean), axis(mean), middle - 7, middle + 7))
            parts.append(_text(width, middle + 5, format_value(mean, measure), "number"))
            y += row_height
    parts += [_text(axis(tick), y + 20, _tick(tick, measure), "tick") for tick in axis.ticks()]
    parts.append(_text((axis.start + axis.end) / 2, y + 40, measure.label, "tick"))
    return _svg(width, height, parts, _description(question, measure))


def _draw_lines(plot: Plot, question: Question, results: Results, width: int) -> str:
    arms, conditions = _shown(plot, question)
    measure = question.measure(plot.measure)
    points = {
        (arm.name, condition.name): mean_interval(values, is_logarithmic=measure.is_logarithmic)
        for arm in arms
        for condition in conditions
        if (values := list(results.values(arm.name, condition.name, measure.name).values()))
    }
    if not points:
        return ""
    axis = _axis([value for point in points.values() for value in point], measure, _LINES_HEIGHT - _AXIS, _MARGIN)
    is_narrow = width == _NARROW  # labels stand below the plot
    labels = 0.0 if is_narrow else 14 + max(_width(arm.label) for arm in arms)
    left = 16 + max(_width(_tick(tick, measure)) for tick in axis.ticks())
    step = (width - labels - left - 40) / max(1, len(conditions) - 1)
    x = {condition.name: left + 20 + index * step for index, condition in enumerate(conditions)}
    parts = []
    for tick in axis.ticks():
        parts.append(line("grid", left, width - labels, axis(tick), axis(tick)))
        parts.append(_text(left - 6, axis(tick) + 4, _tick(tick, measure), "number"))
    ends = []
    for number, arm in enumerate(arms):
        known = [
            (x[condition.name], points[arm.name, condition.name])
            for condition in conditions
            if (arm.name, condition.name) in points
        ]
        if not known:
            continue
        points_of_arm = [(at, axis(mean)) for at, (mean, _, _) in known]
        parts.append(polyline("line", points_of_arm, stroke_dasharray=_DASHES[number % len(_DASHES)]))
        for at, (mean, low, high) in known:
            parts.append(line("interval", at, at, axis(low), axis(high)))
            parts.append(_marker(_SHAPES[number % len(_SHAPES)], at, axis(mean)))
        ends.append((axis(known[-1][1][0]), known[-1][0], str(arm.label)))
    if not is_narrow:
        parts += [_text(at + 12, y + 5, label, "start") for y, at, label in _spread(ends)]
    parts += [_text(x[condition.name], _LINES_HEIGHT - _AXIS + 20, condition.label, "tick") for condition in conditions]
    parts.append(_text(width / 2, _LINES_HEIGHT - 4, measure.label, "tick"))
    height = _LINES_HEIGHT
    for number, arm in enumerate(arms if is_narrow else ()):
        height += 22
        parts.append(line("line", 4, 44, height - 6, height - 6, stroke_dasharray=_DASHES[number % len(_DASHES)]))
        parts.append(_marker(_SHAPES[number % len(_SHAPES)], 24, height - 6))
        parts.append(_text(54, height - 1, arm.label, "start"))
    return _svg(width, height + 4, parts, _description(question, measure))


def _spread(ends: Sequence[tuple[float, float, str]], gap: float = 17.0) -> list[tuple[float, float, str]]:
    """Labels at the ends of lines, moved apart so that none covers another."""
    placed: list[tuple[float, float, str]] = []
    for y, at, label in sorted(ends):
        placed.append((max(y, placed[-1][0] + gap) if placed else y, at, label))
    overflow = placed[-1][0] - (_LINES_HEIGHT - _AXIS) if placed else 0.0
    return [(y - max(0.0, overflow), at, label) for y, at, label in placed]


def _marker(shape: str, x: float, y: float) -> str:
    match shape:
        case "circle":
            return element("circle", class_="marker", cx=x, cy=y, r=4.5)
        case "square":
            return element("rect", class_="marker open", x=x - 4, y=y - 4, width=8, height=8)
        case "triangle":
            return element("path", class_="marker", d=f"M{x:.1f} {y - 5.5:.1f}l5 9h-10z")
        case _:
            return element("path", class_="marker open", d=f"M{x:.1f} {y - 6:.1f}l6 6-6 6-6-6z")


def _tick(value: float, measure: Measure) -> str:
    if measure.is_logarithmic:  # less than a decade has no round ends
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value * (100 if measure.is_percentage else 1):,.6g}".replace("-", "−")


def _text(x: float, y: float, words: object, kind: str) -> str:
    return text(x, y, words, class_=kind)


def _width(label: object) -> float:
    """The width of a label in pixels, roughly."""
    return label_width(str(label), narrow=7.6, wide=14.5)


def _description(question: Question, measure: Measure) -> str:
    return f"{question.title} {measure.label}"


def _svg(width: int, height: float, parts: Sequence[str], description: str) -> str:
    kind = "narrow" if width == _NARROW else "broad"
    box = f"0 0 {width} {height:.0f}"
    return element("svg", "".join(parts), class_=f"plot {kind}", viewBox=box, role="img", aria_label=description)
