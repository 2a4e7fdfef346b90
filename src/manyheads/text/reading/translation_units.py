"""Units of XML files that hold translations, as rows: `UnitsFormat` reads them in bounded memory.

The columns are languages. A unit without text in one of the chosen languages is no row. Codes inside a text, such as
the tags of a page, are left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import ClassVar
from xml.parsers import expat

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.language_codes import base_of
from manyheads.text.markup.xml_scanner import safe_parser, xml_error
from manyheads.text.reading.files import OnBad, file_lines
from manyheads.text.reading.row_spec import RowSpec
from manyheads.text.reading.table_format import NumberedRow, TableFormat
from manyheads.text.suggestions import missing_name

Unit = dict[str, str]  # texts by language

_MAX_CHARACTERS = 1 << 24  # of a unit
_N_EXAMINED = 1000  # units whose languages are the columns
# Elements whose content is no text.
_CODES = frozenset(["bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec", "cp"])


class UnitReader(ABC):
    """Collects the units of a file from the events of a parser. `language` of a text is set when it starts."""

    def __init__(self) -> None:
        self.units: list[Unit] = []  # that are complete
        self.unit: Unit = {}
        self.language = ""  # of the text that is being read; "" outside a text
        self._text: list[str] = []
        self._n_characters = 0
        self._n_codes = 0  # that are open

    @abstractmethod
    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin an element, which is no code in a text."""

    @abstractmethod
    def end(self, name: str) -> None:
        """End an element."""

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        name = name.rpartition(":")[2]
        if self.language and name in _CODES:
            self._n_codes += 1
        elif not self._n_codes:
            self.start(name, attributes)

    def end_element(self, name: str) -> None:
        """End an element."""
        name = name.rpartition(":")[2]
        if self.language and name in _CODES:
            self._n_codes -= 1
        elif not self._n_codes:
            self.end(name)

    def add_text(self, text: str) -> None:
        """Add characters."""
        if self.language and not self._n_codes:
            self._text.append(text)
            self._n_characters += len(text)
            if self._n_characters > _MAX_CHARACTERS:
                raise DataError(_("A text has more than {most:,} characters.", most=_MAX_CHARACTERS))

    def start_text(self, language: str) -> None:
        """Begin the text of the unit in a language."""
        self.language = language
        self._text, self._n_characters = [], 0

    def end_text(self) -> None:
        """Add the text to the unit; the first of a language counts."""
        text = " ".join("".join(self._text).split())
        if text:
            self.unit.setdefault(self.language, text)
        self.language = ""

    def end_unit(self) -> None:
        """Add the unit, if it has any text."""
        if self.unit:
            self.units.append(self.unit)
        self.unit = {}


class UnitsFormat(TableFormat):
    """A format of translations. The columns are the languages of the first thousand units."""

    has_lines = False
    has_languages = True
    reader: ClassVar[type[UnitReader]]

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the units that have a text in every chosen language."""
        columns = self.columns(path)
        chosen = spec.column_names
        if not spec.has_columns:
            if len(columns) != len(chosen):
                raise DataError(
                    _(
                        "{path}: its languages are {languages}. Choose two with source_column and target_column.",
                        path=path,
                        languages=", ".join(columns),
                    )
                )
            chosen = tuple(columns)
        names = [_column(column, columns, path, spec) for column in chosen]
        n_rows = 0
        for number, unit in enumerate(self._units(path, spec.on_bad), start=1):
            if all(name in unit for name in names):
                n_rows += 1
                yield number, tuple(unit[name] for name in names)
        if not n_rows:
            raise DataError(_("{path}: no unit has texts in {languages}.", path=path, languages=", ".join(names)))

    def columns(self, path: Path) -> list[str]:
        """Return the languages, in the order in which they occur."""
        first = islice(self._units(path, lambda error: None), _N_EXAMINED)
        languages = list(dict.fromkeys(language for unit in first for language in unit))
        if not languages:
            raise DataError(_("{path} has no texts in any language.", path=path))
        return languages

    def records(self, path: Path, on_bad: OnBad | None = None) -> Iterator[dict[str, object]]:
        """Yield each unit; a language that it lacks is an empty text."""
        columns = self.columns(path)
        for unit in self._units(path, on_bad):
            yield {column: unit.get(column, "") for column in columns}

    def _units(self, path: Path, on_bad: OnBad | None) -> Iterator[Unit]:
        reader = self.reader()
        parser = safe_parser(reader.start_element, reader.end_element)
        parser.CharacterDataHandler = reader.add_text
        for line in file_lines(path, on_bad, with_ends=True, split_long=True):
            _parse(parser, line, path)
            yield from reader.units
            reader.units.clear()
        _parse(parser, "", path, is_final=True)


def _parse(parser: expat.XMLParserType, text: str, path: Path, *, is_final: bool = False) -> None:
    """Parse a part of a file; an error names it."""
    try:
        parser.Parse(text, is_final)
    except DataError as error:
        raise DataError(_("{path}: {reason}", path=path, reason=error)) from None
    except expat.ExpatError as error:
        raise DataError(_("{path}: {reason}", path=path, reason=xml_error(error))) from None


def language_code(language: str) -> str:
    """Return a language as columns name it: EN-us becomes en-US."""
    base, separator, region = language.replace("_", "-").partition("-")
    return f"{base.lower()}{separator}{region.upper() if len(region) == 2 else region}"


def _column(column: str, columns: list[str], path: Path, spec: RowSpec) -> str:
    """Return the language that a column names: itself, or the only one of its regions."""
    code = language_code(column)
    regions = [name for name in columns if base_of(name) == code]
    if code in columns:
        return code
    if len(regions) == 1:
        return regions[0]
    raise DataError(missing_name(str(path), "column", column, columns, spec.settings))
