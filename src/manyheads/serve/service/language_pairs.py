"""`LanguagePairs`: which bundle translates from which language into which, by the codes that clients use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from manyheads.messages import _
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.problems import ProblemError
from manyheads.text.language_codes import base_of

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
