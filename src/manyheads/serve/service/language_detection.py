"""`LanguageDetector`: which of the served languages a text is written in, by py3langid (docs/decisions/0037)."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from manyheads.messages import Message
from manyheads.serve.service.problems import ProblemError
from manyheads.text.language_codes import base_of, language_of_text

_SCRIPT_LANGUAGES = ("el", "he", "hy", "ja", "ka", "ko", "th", "zh")  # that `language_of_text` knows by their script
_MAX_CHARACTERS = 4000  # of a text that are read
_MISSING = Message(
    "Language detection needs the package py3langid. Give the source language, or let the operator of this server "
    'install it: pip install "manyheads[serve]"'
)


@dataclass(frozen=True)
class Detection:
    """A language that a text may be written in."""

    language: str  # without region or script
    confidence: float  # from 0 to 1


class LanguageDetector:
    """Ranks languages by how probable they are for a text. Threads may share one; it reads its model on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._identifier: Any = None
        self._known: frozenset[str] = frozenset()  # languages of the model
        self._languages: frozenset[str] = frozenset()  # to which it is restricted

    def rank(self, text: str, languages: Iterable[str]) -> list[Detection]:
        """Return the given languages, the most probable first; none if the text has no letter.

        A language that the text's script shows is ranked among them even if it was not given: Chinese text is not
        taken for English where only English and French are served.
        """
        text = text[:_MAX_CHARACTERS]
        if not any(map(str.isalpha, text)):
            return []
        allowed = {base_of(language) for language in languages} | {language_of_text(text)} - {""}
        with self._lock:
            ranked = self._restricted(allowed).rank(text)
        kept = [(language, probability) for language, probability in ranked if language in allowed]
        total = sum(probability for _language, probability in kept)
        return [Detection(language, probability / total) for language, probability in kept] if total > 0 else []

    def _restricted(self, languages: Iterable[str]) -> Any:
        """Return the identifier, restricted to these languages and to those of `_SCRIPT_LANGUAGES`.

        A restriction copies its tables, so it is changed only when other bundles are served.
        """
        if self._identifier is None:
            self._identifier = _load()
            self._known = frozenset(self._identifier.labels)
        wanted = self._known.intersection([*languages, *_SCRIPT_LANGUAGES])
        if wanted != self._languages:
            self._identifier.set_languages(sorted(wanted))
            self._languages = wanted
        return self._identifier


def _load() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise ProblemError(501, _MISSING) from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
