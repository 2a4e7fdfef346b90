"""Doctor examines the rows that training reads, and numbers lines as an editor does."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.data import CleanSettings
from manyheads.doctor.corpus_stats import collect_stats
from manyheads.doctor.diagnosis import _check_faulty_lines, clean_settings, data_sources, detect_kind, examine
from manyheads.errors import DataError
from manyheads.run import Recipe


def test_lines_that_are_not_utf8_are_skipped_as_in_training(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"one\teins\n\xff\xfe\tzwei\nthree\tdrei\n")
    recipe = Recipe.from_table({"data": {"train": [str(path)]}})
    found = collect_stats(data_sources(recipe)[0], clean_settings(recipe))
    assert (len(found), found.read_error) == (3, "")
    strict = replace(recipe, clean=CleanSettings(drop_bad_encoding=False))
    found = collect_stats(data_sources(strict)[0], clean_settings(strict))
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
def test_header_counts_as_a_line(name: str, columns: tuple[str, str], first: int) -> None:
    data = {"train": [name], "source_column": columns[0], "target_column": columns[1]}
    assert data_sources(Recipe.from_table({"data": data}))[0].first_line == first


def test_dialogue_recipe_is_examined(tmp_path: Path) -> None:
    turns = [(["Good morning.", f"Is room {number} free?"], f"Yes, room {number} is free.") for number in range(400)]
    lines = [json.dumps({"history": history, "reply": reply}) for history, reply in turns]
    (tmp_path / "chat.jsonl").write_text("\n".join(lines), "utf-8")
    path = tmp_path / "recipe.toml"
    path.write_text(
        '[data]\ntrain = ["chat.jsonl"]\nsource_column = "history"\ntarget_column = "reply"\n'
        '[task]\npurpose = "dialogue"\n',
        "utf-8",
    )
    findings = {finding.check: finding for finding in examine(path, quick=True)}
    assert findings["recipe"].verdict == "good"
    assert len(findings) > 5
    assert [finding.message for finding in findings.values() if finding.verdict == "bad"] == []


def test_large_data_is_counted_but_not_tokenized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'{{"text": "text {n}", "label": "{"ab"[n % 2]}"}}\n' for n in range(100))
    (tmp_path / "a.jsonl").write_text(rows, "utf-8")
    path = tmp_path / "recipe.toml"
    path.write_text('[data]\ntrain = ["a.jsonl"]\n[task]\nkind = "classify"\n[model]\npreset = "tiny"\n', "utf-8")
    checks = [finding.check for finding in examine(path)]
    assert ("rows" in checks, "sizes" in checks) == (True, True)
    monkeypatch.setattr("manyheads.doctor.diagnosis._MAX_PREPARED_BYTES", 100)
    checks = [finding.check for finding in examine(path)]
    assert ("rows" in checks, "sizes" in checks) == (True, False)


def test_very_many_faulty_lines_are_counted_but_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"caf\xe9\tKaffee\n" * 20_000)
    (finding,) = _check_faulty_lines(Recipe.from_table({"data": {"train": [str(path)]}}))
    assert "20,000 lines" in finding.message and len(finding.examples) == 3


def test_data_in_place_of_a_recipe_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "tickets.CSV"
    data.write_text("text,label\nhello,a\n")
    with pytest.raises(DataError, match=r"tickets\.CSV is data, not a recipe\. .* manyheads init .*tickets\.CSV$"):
        detect_kind(data)
