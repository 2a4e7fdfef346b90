"""The table and the plot of growth.json."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from curves import Curve, Panel, curves_svg, fit_power

_ACROSS = {
    "length": "tokens per sentence",
    "batch": "sentences per batch",
    "vocabulary": "tokens in the vocabulary",
    "layers": "layers per stack",
    "heads kept": "heads kept in every attention, of 8",
    "corpus": "pairs",
}


def _points(curve: Mapping[str, Any]) -> list[tuple[float, float]]:
    return [(size, median(times)) for size, times in zip(curve["sizes"], curve["cpu"], strict=True)]


def _measured(curve: Mapping[str, Any]) -> str:
    if curve["curve"] == "corpus":
        return "an epoch" if curve["what"] == "training" else "the file"
    return "a step" if curve["what"] == "training" else "a sentence"


def growth_table(record: Mapping[str, Any]) -> str:
    """Return a table with one row per curve."""
    lines = [
        f"{record['n_turns']} turns. {record['date']}, {record['machine']}, one thread, load {record['load']}.",
        "",
        "| what grows | | from … to | CPU seconds of | smallest | largest | power | between the last two |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for curve in record["curves"]:
        points = _points(curve)
        engine = f" ({curve['engine']})" if "engine" in curve else ""
        lines.append(
            f"| {curve['curve']} | {curve['what']}{engine} | {points[0][0]:,} … {points[-1][0]:,} | {_measured(curve)} "
            f"| {_seconds(points[0][1])} | {_seconds(points[-1][1])} | {fit_power(points):.2f} "
            f"| {fit_power(points[-2:]):.2f} |"
        )
    return "\n".join([*lines, ""])


def growth_picture(record: Mapping[str, Any]) -> str:
    """Plot one panel per variable."""
    panels = []
    for name in dict.fromkeys(curve["curve"] for curve in record["curves"]):
        curves = [
            Curve(
                f"{curve['what']}, {_measured(curve)}: power {fit_power(_points(curve)):.2f} "
                f"({fit_power(_points(curve)[-2:]):.2f} at the end)",
                _points(curve),
            )
            for curve in record["curves"]
            if curve["curve"] == name
        ]
        panels.append(Panel(f"{name}: CPU seconds", _ACROSS.get(name, name), curves, _seconds))
    return curves_svg("How cost grows · 开销如何增长", panels, columns=3)


def _seconds(value: float) -> str:
    if value < 1e-3:
        return f"{1e6 * value:.3g} µs"
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"
