"""Run folders with missing or damaged files: each gets one clear line, and nothing is lost."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.errors import CheckpointError
from manyheads.run import Finished, Interrupted, Recipe, Resumed, run

Table = Callable[..., dict[str, object]]


@pytest.fixture
def folder(tmp_path: Path, recipe_table: Table) -> Path:
    """A run interrupted after step 3."""
    calls = iter([False, False, True])
    assert list(run(Recipe.from_table(recipe_table()), tmp_path / "run", lambda: next(calls)))[-1] == Interrupted(3)
    return tmp_path / "run"


def test_run_without_its_log_resumes(folder: Path, recipe_table: Table) -> None:
    (folder / "log.jsonl").unlink()
    events = list(run(Recipe.from_table(recipe_table()), folder))
    assert Resumed(3, []) in events
    assert isinstance(events[-1], Finished)


def test_run_without_its_checkpoints_does_not_start_over(folder: Path, recipe_table: Table) -> None:
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(
        CheckpointError, match=r"the checkpoints are missing, but the log records one at step 3\. Restore"
    ):
        list(run(Recipe.from_table(recipe_table()), folder))
    assert [path.name for path in (folder / "snapshots").iterdir()] == ["step-00000002"]


def test_damaged_tokenizer_is_detected(folder: Path, recipe_table: Table) -> None:
    model = folder / "tokenizer.model"
    good = model.read_bytes()
    position = good.index("▁the".encode()) + 3
    model.write_bytes(good[:position] + b"q" + good[position + 1 :])
    with pytest.raises(CheckpointError, match=r"No checkpoint can be used .* its tokenizer or seed differs"):
        list(run(Recipe.from_table(recipe_table()), folder))
    model.write_bytes(good)
    assert Resumed(3, []) in list(run(Recipe.from_table(recipe_table()), folder))


def test_damaged_log_does_not_prevent_resuming(folder: Path, recipe_table: Table) -> None:
    with (folder / "log.jsonl").open("ab") as log:
        log.write(b'\0\0\0\n{"event": "Valid\n[1]\n\xff\n{"event": "Validated", "ste')
    events = list(run(Recipe.from_table(recipe_table()), folder))
    assert Resumed(3, []) in events
    assert (folder / "log.jsonl").read_bytes().count(b'"ste{') == 0
