"""JSONL: one JSON object a line. A value that is not a string is passed to the converter of its field, if any."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import OnBad, file_lines, line_name, raise_or_report
from manyheads.text.reading.row_spec import MAX_COLUMNS, Converter, Row, RowSpec
from manyheads.text.reading.table_format import Fill, NumberedRow, TableFormat, TextCopy, free_names, paired
from manyheads.text.suggestions import missing_name, shortened

_MAX_DEPTH = 100  # of nested JSON values; Python itself fails at about a thousand, at a different depth each time


class JsonlFormat(TableFormat):
    """The columns are the keys of the objects."""

    suffixes = (".jsonl",)

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows of a file."""
        for number, record in enumerate(self.records(path, spec.on_bad), start=1):
            if not (spec.leaves_out_rejected and _is_rejected(record)):
                yield number, self.row(record, path, number, spec)

    @staticmethod
    def row(record: dict[str, object], path: Path, number: int, spec: RowSpec) -> Row:
        """Return the fields of one object."""
        keys = zip(spec.column_names, spec.converters, strict=True)
        return tuple(_text(record, key, converter, path, number, spec) for key, converter in keys)

    def columns(self, path: Path) -> list[str]:
        """Return the keys of the first object."""
        return list(next(self.records(path)))

    def records(self, path: Path, on_bad: OnBad | None = None) -> Iterator[dict[str, object]]:
        """Yield the object on each line."""
        return (record for _line, record in self._lines(path, on_bad))

    def append(self, path: Path, output: BinaryIO, spec: RowSpec, fill: Fill) -> None:
        """Write every line as it is, with the new keys at the end of its object."""
        taken = list({key: None for record in self.records(path, spec.on_bad) for key in record})
        pair = zip(self._lines(path, spec.on_bad), self.rows(path, spec), strict=True)
        copy = TextCopy(path, output)
        for (line, record), new in paired(pair, fill):
            names = free_names(list(new), taken)
            cells = json.dumps(dict(zip(names, new.values(), strict=True)), ensure_ascii=False)
            body = line.rstrip().removesuffix("}")
            copy.write(body + (", " if record else "") + cells.removeprefix("{") + "\n")

    def _lines(self, path: Path, on_bad: OnBad | None) -> Iterator[tuple[str, dict[str, object]]]:
        for number, line in enumerate(file_lines(path, on_bad), start=1):
            try:
                record = json.loads(line)
            except RecursionError:
                raise _too_deep(path, number) from None
            except ValueError as error:
                raise DataError(
                    _(
                        "{where} is not JSON ({reason}). Write one object per line.",
                        where=line_name(path, number),
                        reason=str(error).partition("; use sys")[0],  # the rest is advice for programmers
                    )
                ) from None
            if not isinstance(record, dict):
                raise DataError(
                    _(
                        "{where} is not a JSON object. Write one object per line, in {{ }}.",
                        where=line_name(path, number),
                    )
                )
            if len(record) > MAX_COLUMNS:
                raise DataError(
                    _(
                        "{where} has {n_keys:,} keys, but at most {most:,} are supported.",
                        where=line_name(path, number),
                        n_keys=len(record),
                        most=MAX_COLUMNS,
                    )
                )
            if "\\u" in line and any(map(_has_surrogate, record)):
                raise DataError(
                    _(
                        "{where}: a key contains half of a surrogate pair (\\ud800 to \\udfff). Rename the key.",
                        where=line_name(path, number),
                    )
                )
            if line.count("[") + line.count("{") > _MAX_DEPTH and _is_deeper(record, _MAX_DEPTH):
                raise _too_deep(path, number)
            yield line, record


def _is_rejected(record: dict[str, object]) -> bool:
    """Return whether an annotator of Prodigy rejected or ignored the example."""
    return record.get("answer") in ("reject", "ignore") and "_input_hash" in record


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _too_deep(path: Path, number: int) -> DataError:
    return DataError(
        _(
            "{where} is nested more than {most} levels deep. Write the text as a string.",
            where=line_name(path, number),
            most=_MAX_DEPTH,
        )
    )


def _is_deeper(value: object, n_levels: int) -> bool:
    """Return whether lists and objects are nested more than `n_levels` deep."""
    if not isinstance(value, list | dict):
        return False
    items = value.values() if isinstance(value, dict) else value
    return n_levels == 0 or any(_is_deeper(item, n_levels - 1) for item in items)


def _text(
    record: dict[str, object], key: str, converter: Converter | None, path: Path, number: int, spec: RowSpec
) -> str:
    if key not in record:
        raise DataError(missing_name(line_name(path, number), "key", key, record, spec.settings))
    value = record[key]
    if converter is not None and not isinstance(value, str):
        converted = converter(value)
        if converted is None:
            raise DataError(
                _(
                    '{where}: "{key}" is {value}, which is not supported. Use a string.',
                    where=line_name(path, number),
                    key=key,
                    value=shortened(json.dumps(value, ensure_ascii=False)),
                )
            )
        value = converted
    if not isinstance(value, str):
        raise DataError(
            _(
                '{where}: "{key}" is {value}, not a string. Write it in quotes.',
                where=line_name(path, number),
                key=key,
                value=shortened(json.dumps(value)),
            )
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        fault = _(
            '{where}: "{key}" contains {surrogate}, half of a surrogate pair. Write the whole character.',
            where=line_name(path, number),
            key=key,
            surrogate=f"\\u{ord(value[error.start]):04x}",
        )
        raise_or_report(DataError(fault), spec.on_bad)
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


FORMAT = JsonlFormat()
