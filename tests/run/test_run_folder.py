"""`RunFolder`: the log reader, and folders written by older versions."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.errors import RecipeError
from manyheads.run import Interrupted, Recipe, RunFolder, check_same_recipe, delete_run, run

Table = Callable[..., dict[str, object]]


def append(folder: Path, content: bytes) -> None:
    with (folder / "log.jsonl").open("ab") as log:
        log.write(content)


def test_log_yields_entries_and_counts_unreadable_lines(tmp_path: Path) -> None:
    append(tmp_path, b'{"event": "Step", "step": 1}\n\0\0\n[1]\n\xff\n\n{"event": "Saved", "step": 2}\n')
    log = RunFolder(tmp_path).log()
    assert list(log) == [{"event": "Step", "step": 1}, {"event": "Saved", "step": 2}]
    assert log.n_unreadable == 4
    assert list(RunFolder(tmp_path).log().of_kind("Saved")) == [{"event": "Saved", "step": 2}]


def test_log_yields_only_new_entries_the_second_time(tmp_path: Path) -> None:
    append(tmp_path, b'{"event": "Step", "step": 1}\n{"event": "Step", "st')
    log = RunFolder(tmp_path).log()
    assert [entry["step"] for entry in log] == [1]
    append(tmp_path, b'ep": 2}\n')
    assert [entry["step"] for entry in log] == [2]
    assert list(log) == []
    assert log.n_unreadable == 0


def test_log_that_is_longer_than_what_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.run.run_folder._CHUNK", 30)
    append(tmp_path, b"".join(b'{"event": "Saved", "step": %d}\n' % step for step in range(20)) + b'{"event"')
    log = RunFolder(tmp_path).log()
    assert [entry["step"] for entry in log] == list(range(20))
    append(tmp_path, b': "Saved", "step": 20}\n')
    assert [entry["step"] for entry in log] == [20]
    assert log.n_unreadable == 0


def test_entry_after_a_truncated_one_on_the_same_line_is_read(tmp_path: Path) -> None:
    append(tmp_path, b'{"event": "Step", "st{"event": "Step", "step": 7}\n')
    assert list(RunFolder(tmp_path).log()) == [{"event": "Step", "step": 7}]


def test_folder_that_cannot_be_made_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecipeError) as caught:
        RunFolder(tmp_path / "file" / "run").claim()
    where = tmp_path / "file" / "run"
    assert str(caught.value) == f"{where} cannot be written (Not a directory). Choose another folder with -o."


def test_folder_whose_name_is_not_in_utf_8_is_refused_before_training(tmp_path: Path) -> None:
    named = tmp_path / os.fsdecode("你好".encode("gbk"))
    with pytest.raises(RecipeError, match=r"the name of this folder is not in UTF-8\. Choose another with -o\."):
        RunFolder(named).claim()
    assert not named.exists()


def test_folder_without_a_log_is_not_a_run_folder(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"is not a run folder: it has no log\.jsonl"):
        RunFolder(tmp_path).log()


@pytest.mark.parametrize(("number", "shown"), [(None, "1 or 2"), (2, "2"), (4, "4")])
def test_run_folder_of_another_format_is_refused_in_one_line(
    tmp_path: Path, recipe_table: Table, number: int | None, shown: str
) -> None:
    recipe = Recipe.from_table(recipe_table())
    assert list(run(recipe, tmp_path, lambda: True))[-1] == Interrupted(1)
    data = json.loads((tmp_path / "data.json").read_text())
    assert data.pop("format") == 3
    (tmp_path / "data.json").write_text(json.dumps(data | ({} if number is None else {"format": number})))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"}
    for attempt in (lambda: list(run(recipe, tmp_path)), lambda: check_same_recipe(recipe, tmp_path)):
        with pytest.raises(RecipeError) as caught:
            attempt()
        assert str(caught.value) == (
            f"{tmp_path} was written by another version of manyheads (run format {shown}; this version reads 3). "
            "Train into another folder with -o."
        )
    assert {path: path.read_bytes() for path in before} == before
    delete_run(tmp_path)
    next(run(recipe, tmp_path))


def test_log_skips_lines_that_are_too_long_or_too_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.run.run_folder._CHUNK", 100)
    monkeypatch.setattr("manyheads.run.run_folder._MAX_LINE", 200)
    entries = [b'{"event": "Step", "step": %d}\n' % step for step in range(50)]
    long, deep = b'{"event": "' + b"x" * 2000 + b'"}\n', b"[" * 100_000 + b"\n"
    append(tmp_path, b"".join([*entries[:20], long, *entries[20:40], long, long, *entries[40:]]))
    log = RunFolder(tmp_path).log()
    assert [entry["step"] for entry in log] == list(range(50))
    assert log.n_unreadable == 3
    monkeypatch.setattr("manyheads.run.run_folder._MAX_LINE", 1_000_000)
    append(tmp_path, deep + b'{"event": "Step", "step": 99}\n')
    assert [entry["step"] for entry in log] == [99]
    assert log.n_unreadable == 4


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"text": "a", "files": []}', b"\xff", b" " * 9_000_000, b"[1]"])
def test_hostile_record_of_the_data_counts_as_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.json").write_bytes(content)
    assert RunFolder(tmp_path).read_data() is None


def test_run_on_very_many_files_can_be_resumed(tmp_path: Path) -> None:
    data = {"format": 3, "text": "text", "files": {f"/texts/{number:070}.txt": "0" * 64 for number in range(60_000)}}
    (tmp_path / "data.json").write_text(json.dumps(data))
    assert RunFolder(tmp_path).read_data() == data


def test_recipe_with_too_many_files_to_be_read_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyheads.run.training_run.MAX_BYTES", 2000)
    files = [f"/texts/{number}.txt" for number in range(1000)]
    recipe = Recipe.from_table({"task": {"kind": "language"}, "data": {"train": files}})
    with pytest.raises(RecipeError, match="Join small files into larger ones"):
        next(run(recipe, tmp_path / "run"))
