"""XLIFF 1.2 and 2.x: the files of translation tools. Units without a finished translation are no rows."""

from manyheads.text.reading.translation_units import UnitReader, UnitsFormat, language_code

_UNITS = ("trans-unit", "segment")
_SUGGESTIONS = ("alt-trans", "matches")
_UNFINISHED = frozenset(("new", "initial", "needs-translation"))


class _XliffReader(UnitReader):
    """Reads `<trans-unit>` of 1.2 and `<segment>` of 2.x."""

    def __init__(self) -> None:
        super().__init__()
        self._languages = {"source": "", "target": ""}
        self._state = ""
        self._n_suggestions = 0  # open elements with a source and a target of their own

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a file, a unit or a text."""
        if name in ("xliff", "file"):
            for side, names in (("source", ("srcLang", "source-language")), ("target", ("trgLang", "target-language"))):
                found = next((attributes[one] for one in names if one in attributes), "")
                self._languages[side] = language_code(found) or self._languages[side]
        elif name in _SUGGESTIONS:
            self._n_suggestions += 1
        elif name in _UNITS:
            self._state = attributes.get("state", "")
        elif name in self._languages and not self._n_suggestions:
            own = attributes.get("xml:lang", "")
            is_unfinished = name == "target" and (attributes.get("state") or self._state) in _UNFINISHED
            self.start_text("" if is_unfinished else language_code(own) or self._languages[name])

    def end(self, name: str) -> None:
        """End a text or a unit."""
        if name in _SUGGESTIONS:
            self._n_suggestions -= 1
        elif name in self._languages and self.language:
            self.end_text()
        elif name in _UNITS:
            self.end_unit()


class XliffFormat(UnitsFormat):
    """Files of translation tools."""

    suffixes = (".xliff", ".xlf", ".sdlxliff", ".mqxliff")
    reader = _XliffReader


FORMAT = XliffFormat()
