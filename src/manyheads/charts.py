"""SVG charts: drawings and their elements, axes with round ticks, and the widths of labels. Every text is escaped."""

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

# The colors of a drawing that stands for itself, on light and on dark backgrounds; {kind} is its class.
_COLORS = """
.{kind} {{ --paper: #fff; --ink: #1b1d21; --soft: #5d636e; --line: #e3e5e9; --main: #0b62a4; --accent: #b8500a; }}
@media (prefers-color-scheme: dark) {{
  .{kind} {{ --paper: #14161a; --ink: #e7e9ed; --soft: #9ba2ae; --line: #2c3038; --main: #6cb6f0; --accent: #f0a35e; }}
}}
.{kind} .paper {{ fill: var(--paper); }}
"""


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic map from values to pixels."""

    low: float
    high: float
    start: float
    end: float
    is_logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; values beyond the ends are drawn at the ends."""
        low, high, at = (self._scaled(end) for end in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        return math.log(max(value, 1e-300)) if self.is_logarithmic else value

    def ticks(self) -> list[float]:
        """About five round values."""
        if self.is_logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, math.ceil((last - first) / 5))
            decades = [10.0**power for power in range(first, last + 1, step)]
            return decades if len(decades) > 1 else [self.low, self.high]
        rough = (self.high - self.low) / 5 or 1.0
        unit = 10.0 ** math.floor(math.log10(rough))
        width = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
        first = math.ceil(self.low / width - 1e-9)
        return [round(number * width, 12) for number in range(first, math.floor(self.high / width + 1e-9) + 1)]

    def even_ticks(self, n_ticks: int) -> list[float]:
        """This many values from one end to the other."""
        return [self.low + (self.high - self.low) * step / (n_ticks - 1) for step in range(n_ticks)]


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An element around SVG: `class_` is its class, font_size its font-size; None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, words: object, /, **attributes: object) -> str:
    """A text element."""
    return element("text", escape(str(words)), x=x, y=y, **attributes) if str(words) else ""


def line(kind: str, x1: float, x2: float, y1: float, y2: float, /, **attributes: object) -> str:
    """A line of this class."""
    return element("line", class_=kind, x1=x1, x2=x2, y1=y1, y2=y2, **attributes)


def polyline(kind: str, points: Iterable[tuple[float, float]], /, **attributes: object) -> str:
    """A line of this class through several points."""
    return element("polyline", class_=kind, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), **attributes)


def title(words: str) -> str:
    """The tooltip of the element around it."""
    return element("title", escape(words))


def drawing(kind: str, width: float, height: float, parts: Iterable[str], *, label: str, style: str) -> str:
    """A drawing that stands for itself, with its own style; `kind` is its class and `label` describes it."""
    style = f"<style>{_COLORS.format(kind=kind)}{style}</style>"
    return element(
        "svg",
        "".join((style, '<rect class="paper" width="100%" height="100%"/>', *parts)),
        xmlns="http://www.w3.org/2000/svg",
        class_=kind,
        role="img",
        aria_label=label,
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        style="max-width:100%;height:auto",
    )


def label_width(words: str, narrow: float, wide: float) -> float:
    """The width of a label, roughly, from that of a letter and that of a Chinese character."""
    return sum(wide if unicodedata.east_asian_width(character) in "WF" else narrow for character in words)


def _value(value: object) -> str:
    """An attribute's value; a number has at most one decimal."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escape(str(value))
