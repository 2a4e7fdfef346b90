"""Rows in memory become a JSONL file; data frames are recognized by their methods."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyheads.errors import DataError
from manyheads.text.reading.python_rows import is_rows, records_of, rows_file
from manyheads.text.reading.readers import read_rows

FIELDS = ("text", "label")
ROWS = [("a good film", "good"), ("a bad\nfilm", "bad")]
RECORDS = [{"text": "a good film", "label": "good"}, {"text": "a bad\nfilm", "label": "bad"}]


@dataclass
class Frame:
    """As pandas has it: columns, and rows as dicts."""

    records: list[dict[str, Any]]

    @property
    def columns(self) -> list[str]:
        return list(self.records[0])

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self.records


@dataclass
class OtherFrame:
    """As polars has it."""

    records: list[dict[str, Any]]

    def to_dicts(self) -> list[dict[str, Any]]:
        return self.records


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        [list(row) for row in ROWS],
        RECORDS,
        {"text": ["a good film", "a bad\nfilm"], "label": np.array(["good", "bad"])},
        Frame(RECORDS),
        OtherFrame(RECORDS),
        (row for row in ROWS),
    ],
)
def test_every_kind_of_rows(data: Any, tmp_path: Path) -> None:
    assert is_rows(data)
    path = rows_file(data, FIELDS, tmp_path)
    assert list(read_rows([path], FIELDS)) == ROWS
    assert rows_file(RECORDS, FIELDS, tmp_path) == path  # named by its content
    assert len(list(tmp_path.iterdir())) == 1


def test_real_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    assert records_of(pandas.DataFrame({"n": [1, None], "text": ["a", None]}), FIELDS) == [
        {"n": 1.0, "text": "a"},
        {"n": None, "text": None},
    ]
    polars = pytest.importorskip("polars")
    assert records_of(polars.DataFrame({"n": [1, 2], "words": [["a"], ["b", "c"]]}), FIELDS) == [
        {"n": 1, "words": ["a"]},
        {"n": 2, "words": ["b", "c"]},
    ]


def test_values_of_data_frames() -> None:
    row = {"a": np.int64(3), "b": float("nan"), "c": np.array([1, 2]), "d": date(2026, 1, 2), "e": {"f": (1,)}, 7: True}
    assert records_of([row], FIELDS) == [
        {"a": 3, "b": None, "c": [1, 2], "d": "2026-01-02", "e": {"f": [1]}, "7": True}
    ]


def test_files_are_not_rows(tmp_path: Path) -> None:
    assert not any(map(is_rows, ("a.csv", tmp_path, ["a.en", "a.de"], [tmp_path])))


def test_faults(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There are no rows"):
        rows_file([], FIELDS, tmp_path)
    with pytest.raises(DataError, match=r"Row 1 has 3 values, but the fields are text, label\."):
        rows_file([("a", "b"), ("a", "b", "c")], FIELDS, tmp_path)
    with pytest.raises(DataError, match=r"The columns have different lengths \(text: 2, label: 1\)\."):
        rows_file({"text": ["a", "b"], "label": ["c"]}, FIELDS, tmp_path)
