"""The language of terminal output: English or Chinese, one at a time.

The command line sets it from `--lang`. Without that, `MANYHEADS_LANG` decides, then the locale. Errors raised by the
library are in English.
"""

import locale
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, get_args

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
VARIABLE = "MANYHEADS_LANG"

_chosen: ContextVar[Language | None] = ContextVar("language", default=None)


def current() -> Language:
    """Return the language in use."""
    return _chosen.get() or from_environment()


def choose(language: Language | None) -> None:
    """Set the language for the rest of the process; None returns to the environment's."""
    _chosen.set(language)


@contextmanager
def using(language: Language) -> Iterator[None]:
    """Use a language inside a `with` block."""
    token = _chosen.set(language)
    try:
        yield
    finally:
        _chosen.reset(token)


def pick(english: str, chinese: str) -> str:
    """Return the text in the language in use."""
    return chinese if current() == "zh" else english


class Bilingual(NamedTuple):
    """A text in both languages; `str()` returns the one in use. Reports show both behind a switch."""

    en: str
    zh: str

    def __str__(self) -> str:
        return pick(self.en, self.zh)


def from_environment() -> Language:
    """Return the language that the environment asks for: MANYHEADS_LANG first, then the locale's variables."""
    for name in (VARIABLE, "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"
