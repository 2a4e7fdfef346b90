"""The language of messages and errors, one at a time: English, or one that has a catalog in `locale/`.

The command line sets it from `--lang`. Without that, `MANYHEADS_LANG` decides, then the locale.
"""

import locale
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

Language = str  # a code such as "zh"
LANGUAGES: tuple[Language, ...] = (
    "en",
    *sorted(folder.parent.name for folder in Path(__file__).with_name("locale").glob("*/LC_MESSAGES")),
)
VARIABLE = "MANYHEADS_LANG"

_of_process: list[Language | None] = [None]  # in every thread
_of_block: ContextVar[Language | None] = ContextVar("language", default=None)


def current() -> Language:
    """Return the language in use."""
    return _of_block.get() or _of_process[0] or from_environment()


def choose(language: Language | None) -> None:
    """Set the language for the rest of the process; None returns to the environment's."""
    _of_process[0] = language


@contextmanager
def using(language: Language) -> Iterator[None]:
    """Use a language inside a `with` block."""
    token = _of_block.set(language)
    try:
        yield
    finally:
        _of_block.reset(token)


def from_environment() -> Language:
    """Return the language that the environment asks for: MANYHEADS_LANG first, then the locale's variables."""
    for name in (VARIABLE, "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return _known_language(value)
    return _language_of_locale()


@cache  # it takes longer than the message
def _language_of_locale() -> Language:
    name = locale.getlocale()[0] or ""
    return "zh" if name.lower().startswith("chinese") else _known_language(name)  # Windows spells languages out


def _known_language(name: str) -> Language:
    """Return the language of a name such as zh_CN.UTF-8; English if there is no catalog for it."""
    return next((language for language in LANGUAGES if name.lower().startswith(language)), "en")
