"""Rows that are in memory: lists of tuples or of dicts, a dict of columns, a data frame of pandas or polars.

They become a JSONL file, so that everything that reads files reads them, too. Data frames are recognized by their
methods: neither library is imported.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.storage import user_cache_folder


def is_rows(data: object) -> bool:
    """Return whether `data` are rows, not the names of files."""
    if isinstance(data, str | Path):
        return False
    return not (isinstance(data, Sequence) and data and all(isinstance(item, str | Path) for item in data))


def rows_file(data: Any, fields: Sequence[str], folder: Path | None = None) -> Path:
    """Write rows to a JSONL file, and return its path; the name of the file is a digest of the rows.

    `fields` are the keys for rows that are tuples. Without a folder, the file is in the user's cache.
    """
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records_of(data, fields)]
    if not lines:
        raise DataError(_("There are no rows. Give at least one."))
    content = "".join(lines).encode("utf-8", "surrogatepass")
    folder = folder or user_cache_folder("rows")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rows-{hashlib.sha256(content).hexdigest()[:16]}.jsonl"
    if not path.exists():
        aside = path.with_suffix(f".{os.getpid()}.partial")
        aside.write_bytes(content)
        aside.replace(path)
    return path


def records_of(data: Any, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows as JSON objects: their values by column."""
    return [
        {str(name): _json_value(value) for name, value in record.items()} for record in _records(data, list(fields))
    ]


def _records(data: Any, fields: list[str]) -> Iterable[Mapping[Any, Any]]:
    if hasattr(data, "to_dicts"):  # polars
        return data.to_dicts()
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # pandas
        return data.to_dict("records")
    if isinstance(data, Mapping):
        columns = {name: list(values) for name, values in data.items()}
        if len({len(values) for values in columns.values()}) > 1:
            lengths = ", ".join(f"{name}: {len(values)}" for name, values in columns.items())
            raise DataError(_("The columns have different lengths ({lengths}).", lengths=lengths))
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [_record(number, row, fields) for number, row in enumerate(data)]


def _record(number: int, row: Any, fields: list[str]) -> Mapping[Any, Any]:
    if isinstance(row, Mapping):
        return row
    values = [row] if isinstance(row, str) else list(row)
    if len(values) != len(fields):
        raise DataError(
            _(
                "Row {number} has {n_values} values, but the fields are {fields}. Give tuples of these, or dicts.",
                number=number,
                n_values=len(values),
                fields=", ".join(fields),
            )
        )
    return dict(zip(fields, values, strict=True))


def _json_value(value: Any) -> Any:
    """Return a value of a data frame as JSON: a missing one is null, a number of numpy one of Python."""
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _json_value(item) for name, item in value.items()}
    if hasattr(value, "tolist"):  # an array, or a single number, of numpy
        return _json_value(value.tolist())
    if isinstance(value, Iterable):
        return [_json_value(item) for item in value]
    return None if type(value).__name__ in ("NaTType", "NAType") else str(value)
