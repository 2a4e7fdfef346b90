"""The files of the lens page and the playground: `static/`, and the stylesheet that they share with the report."""

from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable

from manyheads.language import Language

PAGE = "lens.html"
TYPES = {".js": "text/javascript", ".css": "text/css"}
_SHARED = ("base.css",)  # of the report
_HTML = '<html lang="en">'


def file_names() -> list[str]:
    """Return the names of all files."""
    return sorted([*_SHARED, *(item.name for item in _folder().iterdir() if item.is_file())])


def read_static(name: str) -> str:
    """Return the text of a file; its name must be one of `file_names`."""
    # Naming manyheads.report would import it, which takes seconds: the server could not answer meanwhile.
    folder = files("manyheads") / "report" / "templates" if name in _SHARED else _folder()
    return (folder / name).read_text(encoding="utf-8")


def read_page(language: Language | None = None, state: str = "") -> str:
    """Return the HTML page; it opens in this language, or in the browser's, and in this state of its address."""
    attributes = {"lang": language or "en", "data-language": language or "", "data-state": state}
    written = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value)
    return read_static(PAGE).replace(_HTML, f"<html{written}>", 1)


@cache
def _folder() -> Traversable:
    return files("manyheads.serve") / "static"
