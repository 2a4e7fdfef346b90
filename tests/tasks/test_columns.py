"""The columns of a table: what their values are."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from manyheads.tasks import columns
from manyheads.tasks.columns import Column, columns_in


def column(path: Path, values: Sequence[object]) -> Column:
    (path / "rows.jsonl").write_text("".join(json.dumps({"x": value}) + "\n" for value in values))
    (found,) = columns_in(path / "rows.jsonl")
    return found


@pytest.mark.parametrize(
    ("values", "are_numbers", "are_lists"),
    [
        ([1, 2.5, 3], True, False),
        ([1, None, 3], True, False),  # a missing number
        ([None, None], False, False),
        ([1, "two", 3], False, False),
        ([True, False], False, False),
        ([["a", "b"], ["c"]], False, True),
        (["1", "2"], False, False),  # text
    ],
)
def test_numbers_lists_and_texts_of_json(
    tmp_path: Path, values: list[object], are_numbers: bool, are_lists: bool
) -> None:
    found = column(tmp_path, values)
    assert (found.are_numbers, found.are_lists) == (are_numbers, are_lists)
    assert len(found.values) == len(values)


def test_no_more_is_read_than_memory_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_CHARACTERS", 100)
    assert len(column(tmp_path, ["x" * 42] * 9).values) == 3  # each counts as 50
    assert len(column(tmp_path, [None] * 50).values) == 13  # as 8
    (tmp_path / "rows.tsv").write_text("".join(f"{'x' * 42}\t{n}{'y' * 41}\n" for n in range(9)))
    assert {len(one.values) for one in columns_in(tmp_path / "rows.tsv")} == {2}
    monkeypatch.setattr(columns, "_ROWS", 1)
    assert len(column(tmp_path, ["x"] * 9).values) == 1


def test_a_column_that_most_rows_share_holds_labels_by_its_name_or_its_values() -> None:
    few = ["good", "bad"] * 20
    assert Column("x", few).repeats
    assert not Column("id", few).repeats
    assert not Column("x", few[:19]).repeats  # ten rows of each, unless the name says it
    assert Column("Label ", few[:4]).repeats
    assert not Column("label", ["good"] * 9).repeats
    assert not Column("label", ["good", "x" * 81] * 9).repeats
    assert Column("x", few).summary == "2 values (good, bad)"
    assert Column("x", [*"abcd"]).summary == "4 values (a, b, c, …)"
