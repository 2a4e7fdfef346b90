"""What is examined is what training reads, and lines are numbered as an editor does."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.data import CleanSettings
from manyheads.doctor.corpus_stats import collect_stats
from manyheads.doctor.diagnosis import clean_settings, pair_sources
from manyheads.run import Recipe


def test_a_few_lines_that_are_not_utf8_are_borne_as_in_training(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"one\teins\n\xff\xfe\tzwei\nthree\tdrei\n")
    recipe = Recipe.from_table({"data": {"train": [str(path)]}})
    found = collect_stats(pair_sources(recipe)[0], clean_settings(recipe))
    assert (len(found), found.read_error) == (3, "")
    strict = replace(recipe, clean=CleanSettings(drop_bad_encoding=False))
    found = collect_stats(pair_sources(strict)[0], clean_settings(strict))
    assert (len(found), "line 2" in found.read_error) == (1, True)


@pytest.mark.parametrize(
    ("name", "columns", "first"),
    [
        ("a.csv", ("", ""), 2),
        ("a.csv", ("en", "de"), 2),
        ("a.csv.gz", ("1", "2"), 1),
        ("a.tsv", ("", ""), 1),
        ("a.tsv", ("en", "de"), 2),
        ("a.jsonl", ("en", "de"), 1),
    ],
)
def test_a_header_is_a_line(name: str, columns: tuple[str, str], first: int) -> None:
    data = {"train": [name], "source_column": columns[0], "target_column": columns[1]}
    assert pair_sources(Recipe.from_table({"data": data}))[0].first_line == first
