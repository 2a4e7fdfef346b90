"""JSON: one array of objects, such as a Label Studio export; whole in memory.

A task of Label Studio becomes one row: its data, its spans as `spans`, its choice as `label`. Tasks without a finished
annotation are left out. Other arrays are read as they are.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.reading.files import OnBad, read_text
from manyheads.text.reading.formats.jsonl_format import JsonlFormat
from manyheads.text.reading.row_spec import RowSpec
from manyheads.text.reading.table_format import NumberedRow, TableFormat

_MOST_BYTES = 1 << 28


class JsonFormat(TableFormat):
    """Rows are numbered from 1."""

    suffixes = (".json",)
    has_lines = False

    def rows(self, path: Path, spec: RowSpec) -> Iterator[NumberedRow]:
        """Yield the rows of a file."""
        for number, record in enumerate(self.records(path, spec.on_bad), start=1):
            yield number, JsonlFormat.row(record, path, number, spec)

    def columns(self, path: Path) -> list[str]:
        """Return the keys of all rows; a Label Studio task may lack some."""
        return list({key: None for record in self.records(path) for key in record})

    def records(self, path: Path, on_bad: OnBad | None = None) -> Iterator[dict[str, object]]:
        """Yield the objects of the array."""
        try:
            tasks = json.loads(read_text(path, _MOST_BYTES, on_bad))
        except (ValueError, RecursionError) as error:
            reason = str(error).partition("; use sys")[0]
            raise DataError(_("{path} is not JSON ({reason}).", path=path, reason=reason)) from None
        if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
            raise DataError(
                _("{path} is not an array of JSON objects. For one object per line, rename it to .jsonl.", path=path)
            )
        rows = [row for row in map(_row, tasks) if row is not None]
        if not rows:
            raise DataError(_("{path} has no labeled row. Give a file with rows.", path=path))
        return iter(rows)


def _row(task: dict[str, Any]) -> dict[str, object] | None:
    """Return the row of a Label Studio task, or the object as it is; None if the task is not annotated."""
    data = task.get("data")
    if not isinstance(data, dict) or not isinstance(task.get("annotations"), list):
        return task
    finished = [one for one in task["annotations"] if isinstance(one, dict) and not one.get("was_cancelled")]
    if not finished:
        return None
    results = finished[-1].get("result")
    values = [one["value"] for one in results or () if isinstance(one, dict) and isinstance(one.get("value"), dict)]
    spans = [value for value in values if "start" in value and "labels" in value]
    choices = [choice for value in values for choice in value.get("choices", ())]
    row: dict[str, object] = dict(data)
    if choices:
        row["label"] = choices[0] if len(choices) == 1 else choices
    return row | ({} if choices and not spans else {"spans": spans})


FORMAT = JsonFormat()
