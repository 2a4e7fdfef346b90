"""Resuming a run after its files moved, its records were lost, or its number of steps changed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.errors import CheckpointError, DataError, RecipeError, TrainingError
from manyheads.run import Finished, Interrupted, Recipe, RecipeChanged, Saved, Validated, delete_run, run
from manyheads.storage import locked
from manyheads.training import Step

Table = Callable[..., dict[str, object]]
TRAIN = {"steps": 9, "validate_every": 4, "save_every": 3, "warmup": 2, "batch_tokens": 200, "learning_rate": 0.01}


def stop_at(recipe: Recipe, folder: Path, n_steps: int) -> None:
    calls = iter([False] * (n_steps - 1) + [True])
    assert list(run(recipe, folder, lambda: next(calls)))[-1] == Interrupted(n_steps)


def own_files(folder: Path, recipe_table: Table, **changes: object) -> Recipe:
    folder.mkdir(exist_ok=True)
    files = [str(folder / "a.en"), str(folder / "a.zh")]
    pairs = list(corpora.pairs("en", "zh", "train", 300))
    for side, file in enumerate(files):
        Path(file).write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")
    return Recipe.from_table(recipe_table(data={"train": files}, train=TRAIN) | changes)


def test_run_finishes_if_steps_is_reduced_to_the_current_step(tmp_path: Path, recipe_table: Table) -> None:
    stop_at(Recipe.from_table(recipe_table(train=TRAIN)), tmp_path, 5)
    events = list(run(Recipe.from_table(recipe_table(train=TRAIN | {"steps": 5})), tmp_path))
    assert [type(event) for event in events if isinstance(event, Step | Validated | Saved)] == [Validated, Saved]
    assert isinstance(events[-1], Finished)
    assert sorted(folder.name for folder in (tmp_path / "snapshots").iterdir())[-1] == "step-00000005"


def test_run_with_patience_finishes_if_steps_is_reduced(tmp_path: Path, recipe_table: Table) -> None:
    train = TRAIN | {"patience": 3}
    stop_at(Recipe.from_table(recipe_table(train=train)), tmp_path, 2)
    events = list(run(Recipe.from_table(recipe_table(train=train | {"steps": 2})), tmp_path))
    assert isinstance(events[-1], Finished)


def test_steps_below_the_current_step_are_refused_and_not_saved(tmp_path: Path, recipe_table: Table) -> None:
    recipe = Recipe.from_table(recipe_table(train=TRAIN))
    stop_at(recipe, tmp_path, 5)
    before = (tmp_path / "recipe.toml").read_bytes()
    with pytest.raises(RecipeError, match=r"train.steps = 4, but .* is at step 5 already"):
        list(run(Recipe.from_table(recipe_table(train=TRAIN | {"steps": 4})), tmp_path))
    assert (tmp_path / "recipe.toml").read_bytes() == before


def test_changed_steps_of_a_cosine_schedule_are_reported(tmp_path: Path, recipe_table: Table) -> None:
    train = TRAIN | {"schedule": "cosine"}
    stop_at(Recipe.from_table(recipe_table(train=train)), tmp_path, 2)
    first = next(run(Recipe.from_table(recipe_table(train=train | {"steps": 12})), tmp_path))
    assert isinstance(first, RecipeChanged)
    assert "from here on the learning rate decays to 0 at the new last step" in first.changes[0]


def test_data_files_may_move_but_not_change(tmp_path: Path, recipe_table: Table) -> None:
    stop_at(own_files(tmp_path / "here", recipe_table), tmp_path / "run", 2)
    shutil.rmtree(tmp_path / "here")
    moved = own_files(tmp_path / "there", recipe_table)
    assert isinstance(list(run(moved, tmp_path / "run"))[-1], Finished)
    file = tmp_path / "there" / "a.en"
    file.write_text(file.read_text("utf-8").replace("the", "The"), "utf-8")
    with pytest.raises(DataError, match=r"a\.en changed since this run started"):
        list(run(moved, tmp_path / "run"))


@pytest.mark.parametrize("content", [None, b"x", b"[]", b'{"text": 3}'])
def test_missing_or_damaged_data_file_is_refused(tmp_path: Path, recipe_table: Table, content: bytes | None) -> None:
    recipe = Recipe.from_table(recipe_table(train=TRAIN))
    stop_at(recipe, tmp_path, 2)
    (tmp_path / "data.json").unlink()
    if content is not None:
        (tmp_path / "data.json").write_bytes(content)
    with pytest.raises(DataError, match=r"data\.json is missing or damaged"):
        list(run(recipe, tmp_path))


def test_unused_checkpoints_do_not_count(tmp_path: Path, recipe_table: Table) -> None:
    recipe = Recipe.from_table(recipe_table(train=TRAIN))
    stop_at(recipe, tmp_path, 3)
    checkpoint = tmp_path / "checkpoints" / "step-00000003"
    checkpoint.rename(checkpoint.with_name("step-00000003.unused"))
    with pytest.raises(CheckpointError, match="the checkpoints are missing, but the log records one at step 3"):
        list(run(recipe, tmp_path))


def test_running_run_is_not_deleted(tmp_path: Path, recipe_table: Table) -> None:
    stop_at(Recipe.from_table(recipe_table(train=TRAIN)), tmp_path, 3)
    with locked(tmp_path), pytest.raises(TrainingError, match="in use by another run"):
        delete_run(tmp_path)
    assert (tmp_path / "checkpoints" / "step-00000003").exists()
    delete_run(tmp_path)
    assert not (tmp_path / "checkpoints").exists()


def test_faulty_test_set_is_reported_before_training(tmp_path: Path, recipe_table: Table) -> None:
    recipe = own_files(tmp_path / "text", recipe_table)
    files = []
    for name, text in (("t.en", "a\nb\n"), ("t.zh", "c\n")):
        (tmp_path / name).write_text(text)
        files.append(str(tmp_path / name))
    table = recipe_table(data={"train": list(recipe.data.train), "test": files}, train=TRAIN)
    table["clean"] = {"drop_leaked": False}
    with pytest.raises(DataError, match="has 2 lines, but"):
        list(run(Recipe.from_table(table), tmp_path / "run"))
    assert not (tmp_path / "run" / "checkpoints").exists()
