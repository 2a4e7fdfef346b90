"""Texts of the lab in every language: those of the data files, and those put together from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from manyheads.language import LANGUAGES, Language, current, using
from manyheads.messages import Message


@dataclass(frozen=True)
class LabText:
    """A text of a data file; a language that it lacks shows the English one. `str()` is that of the language in use."""

    translations: Mapping[Language, str]

    def __str__(self) -> str:
        return self[current()]

    def __getitem__(self, language: Language) -> str:
        return self.translations.get(language, self.translations["en"])

    def by_language(self) -> dict[Language, str]:
        """The text in every language, as pages take it."""
        return {language: self[language] for language in LANGUAGES}


Shown = LabText | Message  # what a page shows in every language
NO_TEXT = LabText({"en": ""})


def in_each_language(make: Callable[[], str]) -> LabText:
    """The text that a function returns in each language."""
    found: dict[Language, str] = {}
    for language in LANGUAGES:
        with using(language):
            found[language] = make()
    return LabText(found)


def changed(text: Shown, change: Callable[[str], str]) -> LabText:
    """The text with a change that is the same in every language."""
    return LabText({language: change(part) for language, part in text.by_language().items()})
