"""What a reader of rows is asked for: the fields of a row, the columns they stand in, and how errors speak of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from manyheads.text.files import OnBad

Row = tuple[str, ...]
# The text of a value of JSON or Parquet that is no text itself; None for a value that may not stand there.
Converter = Callable[[object], str | None]

PAIR = ("source", "target")
_NUMBERS = ("no", "one", "two", "three", "four", "five")


@dataclass(frozen=True)
class RowSpec:
    """The fields of each row, and for each of them its column, where one is chosen, and its conversion, if any."""

    fields: tuple[str, ...]
    columns: tuple[str | None, ...]
    converters: tuple[Converter | None, ...]
    on_bad: OnBad | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that were chosen, and the fields' own names for the others."""
        return tuple(column or field for column, field in zip(self.columns, self.fields, strict=True))

    @property
    def has_columns(self) -> bool:
        """Whether any column was chosen."""
        return any(column is not None for column in self.columns)

    @property
    def are_pairs(self) -> bool:
        """Whether each row is a text and its translation, so that errors may say so."""
        return self.fields == PAIR

    @property
    def noun(self) -> str:
        """What to call these rows."""
        return "pairs" if self.are_pairs else "rows"

    @property
    def number(self) -> str:
        """How many fields there are, in a word."""
        count = len(self.fields)
        return _NUMBERS[count] if count < len(_NUMBERS) else str(count)

    @property
    def settings(self) -> str:
        """The names of the settings that choose the columns."""
        *others, last = (f"{field}_column" for field in self.fields)
        return f"{', '.join(others)} and {last}" if others else last


def label_text(value: object) -> str | None:
    """The text of a label that is a number or a truth value: 1 of 1 and of 1.0, true of True."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else str(value)
    return str(value) if isinstance(value, int) else None


def join_labels(separator: str) -> Converter:
    """A conversion of labels that are a list as well as of a single one; no label may hold the separator."""

    def text(value: object) -> str | None:
        if not isinstance(value, list):
            return label_text(value)
        labels = [label if isinstance(label, str) else label_text(label) for label in value]
        return _join(labels, separator)

    return text


def join_turns(separator: str) -> Converter:
    """A conversion of a dialogue that is a list of turns: the turns with the separator between them."""

    def text(value: object) -> str | None:
        if not isinstance(value, list) or not all(isinstance(turn, str) for turn in value):
            return None
        return separator.join(value)

    return text


def _join(labels: Sequence[str | None], separator: str) -> str | None:
    texts = [label for label in labels if label and separator not in label]
    return separator.join(texts) if len(texts) == len(labels) else None
