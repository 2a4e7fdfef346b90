"""`Sheet`: a matplotlib figure measured in inches, with fonts that cover its text, saved as the same bytes every time.

Figures are made through matplotlib's object-oriented API, never through pyplot. matplotlib reads its style from one
table for the whole process, so a lock is held and the default style is in use while a sheet is drawn and saved: a
user's own style does not change our pictures, and ours does not leak into theirs.

Text is drawn as outlines in SVG and embedded as TrueType in PDF. Both are legible on machines without our fonts; as
text, an SVG would show boxes for Chinese wherever such a font is missing. Colors are plain: an SVG that needs CSS
variables is black outside a browser.
"""

import io
import logging
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import findSystemFonts, fontManager, get_font
from matplotlib.text import Text

from manyheads.errors import LensError
from manyheads.settings import did_you_mean

logger = logging.getLogger(__name__)

Format = Literal["svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = ("svg", "png", "pdf")

INK, SOFT, LINE, WASH, MAIN = "#1b1d21", "#5d636e", "#c4c8cf", "#eceef1", "#0b62a4"
# One hue whose lightness falls steadily, so that a black-and-white print has the same order.
SCALE = LinearSegmentedColormap.from_list("manyheads", ["#ffffff", "#c6dcef", "#6aa5d4", MAIN, "#06304f"])
MISSING = "□"  # drawn for a character that no font has

_LATIN = ("Helvetica Neue", "Helvetica", "Arial", "Liberation Sans", "DejaVu Sans")
_CHINESE = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "SimHei", "Heiti TC", "Noto Sans CJK JP", "Droid Sans Fallback"),
)
_USELESS = ("last resort", "emoji", "stix", "dejavu sans display", "cmr", "cmsy", "cmex", "cmmi", "cmtt", "cmss", "cmb")
_SECTIONS = ("axes", "figure", "font", "hatch", "image", "lines", "patch", "path", "pdf", "savefig", "svg", "text")
_STYLE = {name: value for name, value in mpl.rcParamsDefault.items() if name.split(".")[0] in _SECTIONS} | {
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "manyheads",
    "text.parse_math": False,  # a dollar sign in a text is a dollar sign
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.linewidth": 0.6,
}
_METADATA: dict[Format, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": "manyheads"},
    "png": {"Software": "manyheads"},
    "pdf": {"CreationDate": None, "Creator": "manyheads", "Producer": "manyheads"},
}
_SIDE = 20.0  # inches, of the figure before it is cropped to what is drawn
_DPI = 220
_PADDING = 0.08  # inches around the drawing
_N_NAMED = 10  # characters in a warning
_SHAPELESS = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # categories of Unicode
_lock = threading.RLock()
_searched: set[str] = set()  # font files that the list was made from


def check_format(name: str) -> Format:
    """Return the format of this name; raise `LensError` if there is none."""
    for known in FORMATS:
        if name == known:
            return known
    raise LensError(f"There is no picture format {name!r}. {did_you_mean(name, FORMATS)}")


class Sheet:
    """A figure in inches from the left and from the top; `open_sheet` makes one."""

    def __init__(self) -> None:
        self.figure = Figure(figsize=(_SIDE, _SIDE), dpi=72)  # a pixel is a point
        self._widths: dict[tuple[str, float], float] = {}
        self._renderer = FigureCanvasAgg(self.figure).get_renderer()  # type: ignore[no-untyped-call]

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Add axes without ticks."""
        added = self.figure.add_axes((left / _SIDE, 1 - (top + height) / _SIDE, width / _SIDE, height / _SIDE))
        added.set_xticks([])
        added.set_yticks([])
        return added

    def text(self, x: float, y: float, text: str, **style: Any) -> Text:
        """Add a text; `style` is that of `matplotlib.text.Text`."""
        shown = _drawable(text)
        return self.figure.text(x / _SIDE, 1 - y / _SIDE, shown, fontfamily=_families(shown), **style)

    def width(self, text: str, size: float) -> float:
        """Return the width of a text in this font size."""
        if (text, size) not in self._widths:
            shown = _drawable(text)
            drawn = Text(0, 0, shown, fontsize=size, fontfamily=_families(shown))
            drawn.set_figure(self.figure)
            self._widths[text, size] = float(drawn.get_window_extent(self._renderer).width) / 72
        return self._widths[text, size]

    def fitted(self, text: str, size: float, width: float) -> str:
        """Return the text, or as much of its beginning as fits into this width."""
        if self.width(text, size) <= width:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.width(text[:middle] + "…", size) <= width else (low, middle - 1)
        return text[:low].rstrip() + "…"

    def wrapped(self, text: str, size: float, width: float) -> list[str]:
        """Return the text in lines of at most this width, broken after spaces and Chinese characters."""
        lines = [""]
        for piece in re.findall(r"[^\s\u2e80-\uffef]+\s*|.", text):
            if lines[-1] and self.width((lines[-1] + piece).rstrip(), size) > width:
                lines.append("")
            lines[-1] += piece
        return [line.rstrip() for line in lines]

    def save(self, format: Format) -> bytes:
        """Return the picture, cropped to what is drawn."""
        buffer = io.BytesIO()
        self.figure.savefig(
            buffer,
            format=format,
            dpi=_DPI,
            bbox_inches="tight",
            pad_inches=_PADDING,
            facecolor="white",
            metadata=_METADATA[format],
        )
        return buffer.getvalue()


@contextmanager
def open_sheet(texts: Iterable[str]) -> Iterator[Sheet]:
    """Open a sheet for these texts; one warning names the characters that no font of this machine has."""
    if missing := _missing("".join(map(_printable, texts))):
        logger.warning(
            "No font on this machine has %s: drawn as %s. Install a font that has them, for Chinese Noto Sans CJK "
            "(Debian and Ubuntu: apt install fonts-noto-cjk), and start again.",
            " ".join(sorted(missing)[:_N_NAMED]),
            MISSING,
        )
    with _lock, mpl.rc_context(_STYLE | {"font.family": list(_families(""))}):
        yield Sheet()


def _printable(text: str) -> str:
    """Return a text with signs for line breaks, tabs and characters without a shape."""
    shown = text.replace("\r\n", "↵").replace("\n", "↵").replace("\r", "↵").replace("\t", "⇥")
    return "".join("·" if unicodedata.category(one) in _SHAPELESS else one for one in shown)


def _drawable(text: str) -> str:
    """Return a text that the fonts of this machine can draw."""
    shown = _printable(text)
    missing = _missing(shown)
    return "".join(MISSING if one in missing else one for one in shown)


def _missing(text: str) -> set[str]:
    wanted = set(text) - {" "}
    return {one for one in wanted if not any(ord(one) in _characters(name) for name in _families(text))}


def _families(text: str) -> tuple[str, ...]:
    return _families_of(frozenset(ord(one) for one in text if one > "~"))


@lru_cache(maxsize=256)
def _families_of(wanted: frozenset[int]) -> tuple[str, ...]:
    """Return the first known Latin font, and fonts for the characters it lacks: preferred ones, then any other."""
    names = {entry.name for entry in fontManager.ttflist}
    chosen = [next(name for name in _LATIN if name in names)]
    missing = wanted - _characters(chosen[0])
    for name in (*_CHINESE, "DejaVu Sans", *sorted(names)):
        if not missing:
            break
        if name in names and not name.lower().startswith(_USELESS) and missing & _characters(name):
            chosen.append(name)
            missing -= _characters(name)
    if missing and _find_new_fonts():
        return _families_of.__wrapped__(wanted)
    return (*chosen, *(["DejaVu Sans"] if "DejaVu Sans" not in chosen else []))


def _find_new_fonts() -> bool:
    """Read the fonts of this machine again if some were installed after matplotlib wrote its list; return whether."""
    known = {entry.fname for entry in fontManager.ttflist} | _searched
    found = set(findSystemFonts())
    if found <= known:
        return False
    _searched.update(found)  # a file that matplotlib cannot read never gets into its list
    # `fontManager.addfont` would add one face of a collection, and another process would choose another.
    fontManager.ttflist = font_manager._load_fontmanager(try_read_cache=False).ttflist  # type: ignore[attr-defined]
    return True


@lru_cache(maxsize=512)
def _characters(family: str) -> frozenset[int]:
    """Return the characters of a font of this system, empty if the font cannot be read or has no outlines."""
    try:
        font = get_font(fontManager.findfont(family, fallback_to_default=False))
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (OSError, RuntimeError, ValueError):
        return frozenset()
