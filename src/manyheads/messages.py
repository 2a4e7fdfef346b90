"""Messages in the language in use: English in the source, other languages in gettext catalogs.

    _("Wrote {path}.", path=path)
    _n("1 row was dropped.", "{n:,} rows were dropped.", n)
    Message("Wrote {path}.", path=path)           # translated later, when its reader is known
    PluralMessage("1 row", "{n:,} rows", n)

A message is a literal with named fields, never an f-string or inside of one: `make messages` collects the literals. A
literal brace is doubled in a message that has values, and written as it is in one without. The catalogs are
`locale/LANGUAGE/LC_MESSAGES/manyheads.po`, and the build compiles them. A catalog that is missing or broken leaves
messages in English.
"""

import gettext
import logging
import os
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from manyheads.language import LANGUAGES, Language, current, using

FOLDER = Path(__file__).with_name("locale")
DOMAIN = "manyheads"
logger = logging.getLogger(__name__)


def _(message: str, /, **values: object) -> str:
    """Return a message in the language in use, with these values in its fields."""
    translated = _catalog(current()).gettext(message)
    return translated.format(**values) if values else translated


def _n(singular: str, plural: str, n: int, /, **values: object) -> str:
    """Return the form of a message for `n` things; `{n}` is the number."""
    return _catalog(current()).ngettext(singular, plural, n).format(n=n, **values)


def in_context(context: str, message: str) -> str:
    """Return a message that means several things in English, in the meaning that the context names."""
    return _catalog(current()).pgettext(context, message)


def join_and(items: Iterable[object]) -> str:
    """Return "a, b and c"."""
    *others, last = map(str, items)
    return _("{others} and {last}", others=_(", ").join(others), last=last) if others else last


def join_or(items: Iterable[object]) -> str:
    """Return "a, b or c"."""
    *others, last = map(str, items)
    return _("{others} or {last}", others=_(", ").join(others), last=last) if others else last


class Message:
    """A message that is translated when it is shown: in a report it has a switch between the languages.

    A value may be a message too, and is then translated with it. Messages are equal if they read the same in every
    language.
    """

    def __init__(self, text: str, /, **values: object) -> None:
        self.text = text
        self.values = values

    def __str__(self) -> str:
        return _(self.text, **self.values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.by_language() == other.by_language()

    def __hash__(self) -> int:
        with using("en"):  # messages may be hashed while modules are imported: no catalog is read for that
            return hash(str(self))

    def by_language(self) -> dict[Language, str]:
        """Return the message in every language, as pages take it."""
        found: dict[Language, str] = {}
        for language in LANGUAGES:
            with using(language):
                found[language] = str(self)
        return found


class PluralMessage(Message):
    """A message about `n` things, with a form for one and a form for more; `{n}` is the number."""

    def __init__(self, singular: str, plural: str, n: int, /, **values: object) -> None:
        super().__init__(singular, n=n, **values)
        self.plural = plural
        self.n = n

    def __str__(self) -> str:
        return _catalog(current()).ngettext(self.text, self.plural, self.n).format(**self.values)


class RecordedMessage(Message):
    """A message of a file, which has it in every language."""

    def __init__(self, texts: Mapping[Language, str]) -> None:
        super().__init__(texts["en"])
        self.texts = dict(texts)

    def __str__(self) -> str:
        return self.texts.get(current(), self.text)


def translate_libraries() -> None:
    """Translate what libraries such as click pass to Python's own `gettext`, for the rest of the process."""
    is_read = isinstance(_catalog(current()), gettext.GNUTranslations)  # gettext would raise an error for a broken one
    gettext.bindtextdomain(DOMAIN, str(FOLDER))
    gettext.textdomain(DOMAIN)
    os.environ["LANGUAGE"] = current() if is_read else "en"


@cache
def _catalog(language: Language) -> gettext.NullTranslations:
    """Return the catalog of a language; English is in the source."""
    if language == "en":
        return gettext.NullTranslations()
    path = FOLDER / language / "LC_MESSAGES" / f"{DOMAIN}.mo"
    try:
        with path.open("rb") as file:
            return gettext.GNUTranslations(file)
    except (OSError, UnicodeDecodeError, ValueError, LookupError, ArithmeticError, struct.error) as error:
        with using("en"):  # what shows the warning may have messages too
            logger.warning("The messages of %s cannot be read (%s: %s); they are in English.", language, path, error)
        return gettext.NullTranslations()
