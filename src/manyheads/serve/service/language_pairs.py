"""Languages of the service: which bundle translates from which into which, their names, and `LanguageDetector`."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from manyheads.messages import Message, _
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.problems import ProblemError
from manyheads.text.language_codes import base_of, language_of_text

# Codes of LibreTranslate and of browsers, in lower case.
_ALIASES = {
    "zh": "zh-hans",
    "zh-cn": "zh-hans",
    "zh-sg": "zh-hans",
    "zh-hans-cn": "zh-hans",
    "zt": "zh-hant",
    "zh-tw": "zh-hant",
    "zh-hk": "zh-hant",
    "zh-mo": "zh-hant",
    "zh-hant-tw": "zh-hant",
    "pb": "pt-br",
    "nb": "no",
}
_TRADITIONAL = "zh-hant"
_MAX_SHOWN = 40  # pairs in a message

_NAMES = """
af Afrikaans|am Amharic|ar Arabic|az Azerbaijani|be Belarusian|bg Bulgarian|bn Bengali|bo Tibetan|br Breton|bs Bosnian
ca Catalan|ceb Cebuano|co Corsican|cs Czech|cy Welsh|da Danish|de German|el Greek|en English|eo Esperanto|es Spanish
et Estonian|eu Basque|fa Persian|fi Finnish|fo Faroese|fr French|fy Western Frisian|ga Irish|gd Scottish Gaelic
gl Galician|gu Gujarati|ha Hausa|he Hebrew|hi Hindi|hr Croatian|ht Haitian Creole|hu Hungarian|hy Armenian
ia Interlingua|id Indonesian|ig Igbo|is Icelandic|it Italian|ja Japanese|jv Javanese|ka Georgian|kk Kazakh|km Khmer
kn Kannada|ko Korean|ku Kurdish|ky Kyrgyz|la Latin|lb Luxembourgish|lo Lao|lt Lithuanian|lv Latvian|mg Malagasy
mi Maori|mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese|my Burmese|nb Norwegian Bokmål
ne Nepali|nl Dutch|nn Norwegian Nynorsk|no Norwegian|oc Occitan|or Odia|pa Punjabi|pl Polish|ps Pashto|pt Portuguese
qu Quechua|rm Romansh|ro Romanian|ru Russian|rw Kinyarwanda|sa Sanskrit|sd Sindhi|si Sinhala|sk Slovak|sl Slovenian
so Somali|sq Albanian|sr Serbian|st Southern Sotho|su Sundanese|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik
th Thai|tk Turkmen|tl Tagalog|tr Turkish|tt Tatar|ug Uyghur|uk Ukrainian|ur Urdu|uz Uzbek|vi Vietnamese|wo Wolof
xh Xhosa|yi Yiddish|yo Yoruba|yue Cantonese|zh Chinese|zu Zulu
"""
_BY_CODE: dict[str, str] = dict(entry.split(" ", 1) for entry in _NAMES.strip().replace("\n", "|").split("|"))

_SCRIPT_LANGUAGES = ("el", "he", "hy", "ja", "ka", "ko", "th", "zh")  # that `language_of_text` knows by their script
_MAX_CHARACTERS = 4000  # of a text that are read
_MISSING = Message(
    "Language detection needs the package py3langid. Give the source language, or let the operator of this server "
    'install it: pip install "manyheads[serve]"'
)


@dataclass(frozen=True)
class LanguagePairs:
    """The translation bundles by source and target language."""

    bundles: Mapping[tuple[str, str], str]  # names; of several bundles for one pair, the one that was given first

    @classmethod
    def of(cls, served: Iterable[BundleDescription]) -> "LanguagePairs":
        """Return the pairs of all bundles that translate from one language into another."""
        bundles: dict[tuple[str, str], str] = {}
        for bundle in served:
            is_translator = bundle.answer_form == "text" and bundle.purpose in ("", "translation")
            if is_translator and len(set(bundle.languages)) == 2:
                bundles.setdefault((bundle.languages[0], bundle.languages[1]), bundle.name)
        return cls(bundles)

    @property
    def languages(self) -> list[str]:
        """All languages, as the bundles call them."""
        return sorted({code for pair in self.bundles for code in pair})

    def targets(self, source: str) -> list[str]:
        """The languages that a text of a language can be translated into, itself among them."""
        return sorted({source, *(target for one, target in self.bundles if one == source)})

    def code(self, language: str) -> str | None:
        """Return a served language's code for a code of a client: zh-CN and zh-Hans are zh, en-US is en."""
        wanted = _normal(language)
        by_normal = {_normal(code): code for code in reversed(self.languages)}
        if wanted in by_normal:
            return by_normal[wanted]
        if wanted == _TRADITIONAL:
            return None  # traditional characters are not what a model of simplified ones writes
        same_base = [code for code in self.languages if base_of(code) == base_of(wanted)]
        return next((code for code in same_base if _normal(code) != _TRADITIONAL), None)

    def bundle(self, source: str, target: str) -> str:
        """Return the name of the bundle for two codes of clients."""
        for language in (source, target):
            if self.code(language) is None:
                raise ProblemError(
                    400, _("{language} is not supported. {pairs}", language=_short(language), pairs=self.shown())
                )
        name = self.bundles.get((self.code(source) or "", self.code(target) or ""))
        if name is None:
            raise ProblemError(
                400,
                _(
                    "{source} → {target} is not supported. {pairs}",
                    source=_short(source),
                    target=_short(target),
                    pairs=self.shown(),
                ),
            )
        return name

    def shown(self) -> str:
        """All pairs as a sentence."""
        if not self.bundles:
            return _("This server has no translation bundle.")
        pairs = [f"{source} → {target}" for source, target in sorted(self.bundles)]
        listed, n_more = ", ".join(pairs[:_MAX_SHOWN]), len(pairs) - _MAX_SHOWN
        if n_more > 0:
            return _("Supported: {pairs} and {n_more} more.", pairs=listed, n_more=n_more)
        return _("Supported: {pairs}.", pairs=listed)


def _normal(code: str) -> str:
    lower = code.strip().replace("_", "-").lower()
    return _ALIASES.get(lower, lower)


def _short(language: str) -> str:
    return language if len(language) <= 40 else language[:40] + "…"


def language_name(code: str) -> str:
    """Return the English name of a language, with its script or region: zh-Hant is "Chinese (Hant)".

    A code without a known name is its own name.
    """
    base = base_of(code)
    if base not in _BY_CODE:
        return code
    variant = code.replace("_", "-").partition("-")[2]
    return f"{_BY_CODE[base]} ({variant})" if variant else _BY_CODE[base]


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
