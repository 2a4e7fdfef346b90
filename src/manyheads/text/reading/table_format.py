"""`TableFormat`: what a reader of tables defines, one file a format in `formats/`."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from manyheads.text.reading.files import OnBad
from manyheads.text.reading.row_spec import Row, RowSpec

NumberedRow = tuple[int, Row]  # the number of the row's first line, from 1, and the row


class TableFormat(ABC):
    """A format of tables. The files exist when a method is called; what is in them is checked while reading."""

    suffixes: ClassVar[tuple[str, ...]]  # of file names, in lower case
    has_lines: ClassVar[bool] = True  # whether rows are numbered by lines; else errors speak of rows
    may_be_compressed: ClassVar[bool] = True  # as .gz or .zst
    may_lack_header: ClassVar[bool] = False  # whether the first line may be a row: columns are then given by number
    is_tab_separated: ClassVar[bool] = False  # whether two columns without a header are pairs, or words and their tags

    @abstractmethod
    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows with their numbers: the fields of `spec`, each from its column."""

    @abstractmethod
    def columns(self, path: Path) -> list[str]:
        """Return the names of the columns."""

    def has_header(self, columns: Mapping[str, str]) -> bool:
        """Return whether the first line names the columns if these are chosen."""
        return False

    def records(self, path: Path, on_bad: OnBad | None = None) -> Iterator[dict[str, object]]:
        """Yield each row as its values by column; `manyheads init` looks at them. A value may be a number or a list."""
        names = tuple(self.columns(path))
        spec = RowSpec(names, names, (_encode,) * len(names), on_bad)
        for _, row in self.rows(path, spec):
            yield dict(zip(names, map(_decode, row), strict=True))


def _encode(value: object) -> str:
    """Convert a value that is not a string to text from which `_decode` restores it."""
    return f"\0{json.dumps(value, default=str)}"


def _decode(text: str) -> object:
    return json.loads(text[1:]) if text.startswith("\0") else text
