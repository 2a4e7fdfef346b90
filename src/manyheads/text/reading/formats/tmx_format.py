"""TMX: translation memories."""

from manyheads.text.reading.translation_units import UnitReader, UnitsFormat, language_code


class _TmxReader(UnitReader):
    """Reads `<tu>` with a `<tuv>` for each language."""

    _variant = ""  # the language of the variant that is being read

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a variant or its text."""
        if name == "tuv":
            self._variant = language_code(attributes.get("xml:lang") or attributes.get("lang") or "")
        elif name == "seg":
            self.start_text(self._variant)

    def end(self, name: str) -> None:
        """End a text or a unit."""
        if name == "seg":
            self.end_text()
        elif name == "tu":
            self.end_unit()


class TmxFormat(UnitsFormat):
    """Translation memories."""

    suffixes = (".tmx",)
    reader = _TmxReader


FORMAT = TmxFormat()
