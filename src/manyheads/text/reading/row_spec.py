"""`RowSpec`: the fields that a reader extracts from each row, their columns, and how their values become text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from manyheads.errors import DataError
from manyheads.messages import _, join_and
from manyheads.text.reading.files import OnBad

Row = tuple[str, ...]
# Converts a JSON or Parquet value that is not a string to text; returns None for an unsupported value.
Converter = Callable[[object], str | None]

MAX_COLUMNS = 10_000
PAIR = ("source", "target")


@dataclass(frozen=True)
class RowSpec:
    """The fields of each row, with the chosen column and the converter of each field, or None."""

    fields: tuple[str, ...]
    columns: tuple[str | None, ...]
    converters: tuple[Converter | None, ...]
    on_bad: OnBad | None = None
    leaves_out_rejected: bool = True  # examples that annotators rejected, as labeling tools mark them

    @property
    def column_names(self) -> tuple[str, ...]:
        """The column of each field: the chosen one, or else the column with the field's own name."""
        return tuple(column or field for column, field in zip(self.columns, self.fields, strict=True))

    @property
    def has_columns(self) -> bool:
        """Whether any column was chosen."""
        return any(column is not None for column in self.columns)

    @property
    def are_pairs(self) -> bool:
        """Whether each row is a source text and its translation."""
        return self.fields == PAIR

    @property
    def settings(self) -> str:
        """The names of the settings that choose the columns, for error messages."""
        return join_and(f"{field}_column" for field in self.fields)


def check_width(n_columns: int, where: str) -> None:
    """Raise if a table has more than `MAX_COLUMNS` columns."""
    if n_columns > MAX_COLUMNS:
        raise DataError(
            _(
                "{where}: the number of columns is {n_columns:,}, but at most {most:,} are supported. "
                "Remove columns that are not needed, and check that no line ends are missing.",
                where=where,
                n_columns=n_columns,
                most=MAX_COLUMNS,
            )
        )


def single_label(value: object) -> str | None:
    """Convert a label as `label_text` does; it may be the only item of a list, as doccano writes it."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else label_text(value)


def label_text(value: object) -> str | None:
    """Convert a numeric or boolean label to text: 1 and 1.0 to "1", True to "true"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else str(value)
    return str(value) if isinstance(value, int) else None


def labels_converter(separator: str) -> Converter:
    """Return a converter of one label or a list of labels; a label that contains the separator is unsupported."""

    def convert(value: object) -> str | None:
        if not isinstance(value, list):
            return label_text(value)
        labels = [label if isinstance(label, str) else label_text(label) for label in value]
        return _join(labels, separator)

    return convert


def turns_converter(separator: str) -> Converter:
    """Return a converter of a dialogue, a list of strings, that joins the strings with the separator."""

    def convert(value: object) -> str | None:
        if not isinstance(value, list) or not all(isinstance(turn, str) for turn in value):
            return None
        return separator.join(value)

    return convert


def _join(labels: Sequence[str | None], separator: str) -> str | None:
    texts = [label for label in labels if label and separator not in label]
    return separator.join(texts) if len(texts) == len(labels) else None
