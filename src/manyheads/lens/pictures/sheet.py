"""`Sheet`: a matplotlib figure measured in inches, with fonts that cover its text, saved as the same bytes every time.

Figures are made through matplotlib's object-oriented API, never through pyplot. matplotlib reads its style from one
table for the whole process, so a lock is held and the default style is in use while a sheet is drawn and saved: a
user's own style does not change our pictures, and ours does not leak into theirs.

Two fonts are installed with the package: DejaVu Sans in matplotlib, and Noto Sans SC in zhplot. They are used by path,
so a picture of Latin or Chinese text has the same bytes whatever fonts a machine has. The machine's own fonts are read
for other characters alone (docs/decisions/0050-fonts.md).

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
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from manyheads.errors import LensError
from manyheads.messages import _
from manyheads.settings import did_you_mean


@contextmanager
def _quiet_matplotlib() -> Iterator[None]:
    """Hold back what matplotlib logs about its list of fonts and its folder: neither matters to our pictures."""
    noisy = logging.getLogger("matplotlib")
    level = noisy.level
    noisy.setLevel(logging.ERROR)
    try:
        yield
    finally:
        noisy.setLevel(level)


with _quiet_matplotlib():  # at its first start it makes a list of the machine's fonts
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontEntry, findSystemFonts, fontManager
    from matplotlib.ft2font import FT2Font
    from matplotlib.text import Text

logger = logging.getLogger(__name__)

Format = Literal["svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = ("svg", "png", "pdf")

INK, SOFT, LINE, WASH, MAIN = "#1b1d21", "#5d636e", "#c4c8cf", "#eceef1", "#0b62a4"
# One hue whose lightness falls steadily, so that a black-and-white print has the same order.
SCALE = LinearSegmentedColormap.from_list("manyheads", ["#ffffff", "#c6dcef", "#6aa5d4", MAIN, "#06304f"])
MISSING = "□"  # drawn for a character that no font has

_LATIN = str(Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"))
_USELESS = ("lastresort", "emoji")  # fonts of boxes, and of colored bitmaps
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


def check_format(name: str) -> Format:
    """Return the format of this name; raise `LensError` if there is none."""
    for known in FORMATS:
        if name == known:
            return known
    raise LensError(
        _("There is no picture format {name!r}. {did_you_mean}", name=name, did_you_mean=did_you_mean(name, FORMATS))
    )


class Sheet:
    """A figure in inches from the left and from the top; `open_sheet` makes one."""

    def __init__(self, characters: frozenset[int]) -> None:
        self._characters = characters  # of the fonts in use
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
        return self.figure.text(x / _SIDE, 1 - y / _SIDE, self._drawable(text), **style)

    def width(self, text: str, size: float) -> float:
        """Return the width of a text in this font size."""
        if (text, size) not in self._widths:
            drawn = Text(0, 0, self._drawable(text), fontsize=size)
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

    def _drawable(self, text: str) -> str:
        return "".join(character if ord(character) in self._characters else MISSING for character in _printable(text))


@contextmanager
def open_sheet(texts: Iterable[str]) -> Iterator[Sheet]:
    """Open a sheet for these texts; one warning names the characters that no font has."""
    with _lock, _quiet_matplotlib():
        fonts = _installed_fonts()
        characters = frozenset[int]().union(*map(_characters, fonts))
        if rare := {ord(character) for text in texts for character in _printable(text)} - characters:
            found = {code: font for code, font in _system_fonts().items() if code in rare}
            fonts = (*fonts, *sorted(set(found.values())))
            characters = characters.union(found)
            if missing := sorted(rare - characters):
                _warn_of(" ".join(map(chr, missing[:_N_NAMED])))
        with mpl.rc_context(_STYLE | {"font.family": [_registered(font) for font in fonts]}):
            yield Sheet(characters)


def _warn_of(missing: str) -> None:
    if _chinese_font() is None:
        advice = _("The font of the package zhplot is missing: pip install --force-reinstall 'zhplot<2'.")
    else:
        advice = _(
            "Install a font that has them (Debian and Ubuntu, for rare Chinese characters and Korean: apt "
            "install fonts-noto-cjk), and start again."
        )
    logger.warning(_("No font has {missing}: drawn as {sign}. {advice}", missing=missing, sign=MISSING, advice=advice))


def _printable(text: str) -> str:
    """Return a text with signs for line breaks, tabs and characters without a shape."""
    shown = text.replace("\r\n", "↵").replace("\n", "↵").replace("\r", "↵").replace("\t", "⇥")
    return "".join("·" if unicodedata.category(character) in _SHAPELESS else character for character in shown)


@cache
def _chinese_font() -> str | None:
    """Return the file of Noto Sans SC in zhplot, which is never imported: that changes the style of every plot."""
    package = find_spec("zhplot")
    folders = (package and package.submodule_search_locations) or []
    files = [Path(folder, "fonts", "NotoSansSC-Regular.ttf") for folder in folders]
    return next((str(file) for file in files if file.is_file()), None)


def _installed_fonts() -> tuple[str, ...]:
    return tuple(font for font in (_LATIN, _chinese_font()) if font)


@cache
def _system_fonts() -> dict[int, str]:
    """Return a font file of this machine for every character that one has; regular faces come last and win."""
    fonts: dict[int, str] = {}
    for path in sorted(findSystemFonts(), key=lambda path: ("regular" in path.lower(), path)):
        if not any(name in Path(path).name.lower() for name in _USELESS):
            fonts.update(dict.fromkeys(_characters(path), path))
    return fonts


def _characters(path: str) -> frozenset[int]:
    """Return the characters of a font, none if the file cannot be read or has no outlines."""
    try:
        font = FT2Font(path)
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(font.get_charmap()) if font.scalable else frozenset()


def _registered(path: str) -> str:
    """Return the family name under which matplotlib finds this very file: another may have the font's own name."""
    if all(entry.name != path for entry in fontManager.ttflist):
        fontManager.ttflist.append(FontEntry(fname=path, name=path))
    return path
