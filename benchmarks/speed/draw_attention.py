"""Tables and the plot of attention.json."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from curves import Curve, Panel, curves_svg, fit_power

_TARGET = 64e6  # extra bytes of attention at 8,192 positions
_PATHS = ("fused", "explicit")
_LOSSES = {"chunks": "loss in chunks", "whole": "whole logits"}


def attention_tables(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables of the forward pass and of training."""
    parts = []
    if "forward" in records:
        parts += [*_forward_table(records["forward"]), ""]
    if "training" in records:
        parts += [*_training_table(records["training"]), ""]
    return "\n".join(parts)


def _stamp(record: Mapping[str, Any]) -> str:
    return f"{record['date']}, {record['machine']}, one thread, load {record['load']}."


def _forward_table(record: Mapping[str, Any]) -> list[str]:
    found = {(one["path"], one["what"], one["view"], one["n"]): one for one in record["points"]}
    lengths = sorted({one["n"] for one in record["points"]})
    columns = [(path, view) for path in _PATHS for view in ("bidirectional", "causal", "padded causal")]
    lines = [
        f"Forward. {_stamp(record)} Seconds of the module; extra MB of attention alone / of the module with its mask.",
        "",
        f"| n | {' | '.join(f'{path}, {view}' for path, view in columns)} |",
        f"| ---: | {' | '.join('---:' for _ in columns)} |",
    ]
    for n in lengths:
        cells = []
        for path, view in columns:
            alone, module = (found.get((path, what, view, n)) for what in ("attention", "module"))
            cells.append("—" if alone is None or module is None else _cell(alone, module))
        lines.append(f"| {n:,} | {' | '.join(cells)} |")
    return lines


def _cell(alone: Mapping[str, Any], module: Mapping[str, Any]) -> str:
    return f"{median(module['cpu']):.3g} s, {_mega(alone)} / {_mega(module)} MB"


def _mega(point: Mapping[str, Any]) -> str:
    return f"{point['extra_bytes'] / 1e6:,.0f}"


def _training_table(record: Mapping[str, Any]) -> list[str]:
    kinds = [(kind, loss) for kind in ("translation", "language") for loss in _LOSSES]
    lengths = sorted({one["n"] for one in record["points"]})
    memory = {kind: _memory(record, *kind) for kind in kinds}
    lines = [
        f"Training, one step. {_stamp(record)} Extra MB. The last rows are the power of n that fits all lengths, "
        "and that between the two longest, where fixed costs matter least.",
        "",
        f"| n | {' | '.join(f'{kind}, {_LOSSES[loss]}' for kind, loss in kinds)} |",
        f"| ---: | {' | '.join('---:' for _ in kinds)} |",
    ]
    for n in lengths:
        cells = [f"{memory[kind][n] / 1e6:,.0f}" if n in memory[kind] else "—" for kind in kinds]
        lines.append(f"| {n:,} | {' | '.join(cells)} |")
    for name, last in (("power", 0), ("power at the end", 2)):
        powers = [_power(list(memory[kind].items())[-last:]) for kind in kinds]
        lines.append(f"| {name} | {' | '.join(powers)} |")
    return lines


def _power(points: Sequence[tuple[float, float]]) -> str:
    return f"{fit_power(points):.2f}" if len(points) > 1 else "—"


def _memory(record: Mapping[str, Any], kind: str, loss: str) -> dict[int, int]:
    return {one["n"]: one["extra_bytes"] for one in record["points"] if (one["kind"], one["loss"]) == (kind, loss)}


def attention_picture(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Plot time and memory of the forward pass, and memory of training."""
    panels = []
    if "forward" in records:
        points = records["forward"]["points"]

        def curve(path: str, what: str, view: str, value: Any) -> Curve:
            chosen = [one for one in points if (one["path"], one["what"], one["view"]) == (path, what, view)]
            return Curve(f"{path}, {view}", [(one["n"], value(one)) for one in chosen])

        # The explicit path costs the same for every view.
        ways = [
            ("fused", "bidirectional"),
            ("fused", "causal"),
            ("fused", "padded causal"),
            ("explicit", "bidirectional"),
        ]
        panels += [
            Panel(
                "Forward: CPU seconds, 8 heads of 64",
                "positions",
                [curve(path, "module", view, lambda one: median(one["cpu"])) for path, view in ways],
                _seconds,
            ),
            Panel(
                "Forward: extra memory of attention",
                "positions",
                [curve(path, "attention", view, lambda one: one["extra_bytes"]) for path, view in ways],
                _bytes,
                limit=(_TARGET, "64 MB: the target at 8,192 positions"),
            ),
        ]
    if "training" in records:
        for kind in ("translation", "language"):
            curves = []
            for loss, name in _LOSSES.items():
                memory = _memory(records["training"], kind, loss)
                points = list(memory.items())
                curves.append(Curve(f"{name}: power {_power(points)} ({_power(points[-2:])} at the end)", points))
            panels.append(Panel(f"Training: extra memory, {kind}", "positions", curves, _bytes))
    return curves_svg("Attention: time and memory against length · 注意力的时间与内存", panels)


def _seconds(value: float) -> str:
    return f"{value:g} s" if value >= 1 else f"{1000 * value:g} ms"


def _bytes(value: float) -> str:
    return f"{value / 1e9:g} GB" if value >= 1e9 else f"{value / 1e6:g} MB"
