"""The files of the lens page and the playground: `static/`, and the stylesheet that they share with the report.

A page is an HTML file, the folder of its scripts and styles, and `shared/`. Its texts are in English in
PAGE_messages.json; `read_page` writes them into the page in every language, from the catalogs.
"""

import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal

from manyheads.language import LANGUAGES, Language, using
from manyheads.messages import _, in_context

Page = Literal["lens", "playground"]

SHARED = "shared"
TYPES = {".js": "text/javascript", ".css": "text/css"}
_OF_REPORT = "shared/base.css"
_HTML = '<html lang="en">'
_WITHOUT_SCRIPT = re.compile(r'<p data-message="(\w+)">(.*)</p>')  # the message, and its command
_MESSAGES = '<script type="application/json" id="messages">'


@cache
def file_names(*folders: str) -> list[str]:
    """Return the names of the scripts and stylesheets in these folders: "lens/lens.js"."""
    found = [f"{folder}/{item.name}" for folder in folders for item in (_static() / folder).iterdir()]
    found += [_OF_REPORT] if SHARED in folders else []
    return sorted(name for name in found if media_type(name))


def media_type(name: str) -> str | None:
    """Return the type of a script or a stylesheet; None of other files."""
    found = TYPES.get("." + name.rpartition(".")[2])
    return found and f"{found}; charset=utf-8"


def read_static(name: str) -> str:
    """Return the text of a file; its name must be one of `file_names`."""
    # Naming manyheads.report would import it, which takes seconds: the server could not answer meanwhile.
    path = files("manyheads") / "report" / "templates" / "base.css" if name == _OF_REPORT else _static() / name
    return path.read_text(encoding="utf-8")


def read_page(page: Page, language: Language | None = None, state: str = "") -> str:
    """Return an HTML page; it opens in this language, or in the browser's, and in this state of its address."""
    attributes = {"lang": language or "en", "data-language": language or "", "data-state": state}
    written = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value)
    messages = page_messages(page)

    def in_every_language(match: re.Match[str]) -> str:
        texts = {language: escape(messages[language][match[1]], quote=False) for language in LANGUAGES}
        return "\n".join(
            f'<p lang="{language}">{text.replace("{command}", match[2])}</p>' for language, text in texts.items()
        )

    html = read_static(f"{page}.html").replace(_HTML, f"<html{written}>", 1)
    html = _WITHOUT_SCRIPT.sub(in_every_language, html)
    return html.replace(_MESSAGES, _MESSAGES + script_json(messages), 1)


@cache
def page_messages(page: Page) -> dict[Language, dict[str, str]]:
    """Return the texts of a page by their keys, in every language."""
    texts: dict[str, str | dict[str, str]] = json.loads(read_static(f"{page}/{page}_messages.json"))
    messages: dict[Language, dict[str, str]] = {}
    for language in LANGUAGES:
        with using(language):
            messages[language] = {key: _translated(text) for key, text in texts.items()}
    return messages


def script_json(value: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _translated(text: str | dict[str, str]) -> str:
    """Translate a text; one that means several things in English has a context that tells them apart."""
    if isinstance(text, str):
        return _(text)
    return in_context(text["context"], text["text"])


def _static() -> Traversable:
    return files("manyheads.serve") / "static"
