"""Runs of several processes: the same as one, and refused if the processes disagree."""

from pathlib import Path
from typing import Any, cast

import pytest

from manyheads.errors import DataError, RecipeError
from manyheads.run import Interrupted, Prepared, RunFolder, follow_run, read_recipe, run
from manyheads.run.follower import refuse_start
from manyheads.training import ProcessGroup

from faults.running import differences, outcome, write_recipe
from training.ranks import run_ranks

SET = ["train.steps=4", "train.validate_every=4"]


def take_part(group: ProcessGroup, recipes: list[Path], folder: Path, overrides: list[str], stop_at: int = 0) -> Any:
    """Run a recipe as this rank; return the names of the events."""
    recipe = read_recipe(recipes[group.rank % len(recipes)], overrides)
    if not group.is_first:
        return follow_run(recipe, folder, group)
    n_calls = 0

    def should_stop() -> bool:
        nonlocal n_calls
        n_calls += 1
        return n_calls == stop_at

    return list(run(recipe, folder, should_stop, group))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("data"))


def losses(folder: Path) -> list[float]:
    return [entry["loss"] for entry in RunFolder(folder).log().of_kind("Step")]


def test_a_run_is_the_same_with_other_processes_and_interruptions(tmp_path: Path, recipe: Path) -> None:
    whole = run_ranks(2, take_part, [recipe], tmp_path / "whole", SET)
    assert whole[1] is None
    prepared = next(event for event in whole[0] if isinstance(event, Prepared))
    assert prepared.n_processes == 2
    assert RunFolder(tmp_path / "whole").read_recipe_table()["train"]["micro_batches"] == 2  # of 2 batches per update

    stopped, _ = run_ranks(2, take_part, [recipe], tmp_path / "parts", SET, 1)
    assert stopped[-1] == Interrupted(1)
    run_ranks(2, take_part, [recipe], tmp_path / "parts", SET)
    assert differences(outcome(tmp_path / "whole"), outcome(tmp_path / "parts")) == []

    take_part(ProcessGroup(), [recipe], tmp_path / "one", [*SET, "train.micro_batches=2"])
    assert losses(tmp_path / "one") == pytest.approx(losses(tmp_path / "whole"), rel=1e-5)


def test_another_recipe_or_other_data_are_refused_by_all(tmp_path: Path, recipe: Path) -> None:
    other = write_recipe(tmp_path / "other")
    (tmp_path / "other" / "train.en").write_text("a changed line\n" * 60, "utf-8")
    messages = [str(error) for error in run_ranks(2, take_part, [recipe, other], tmp_path / "run", SET)]
    assert messages[0] == messages[1]
    assert "Process 1 of 2 (on " in messages[0] and ") has other data than process 0. Start all" in messages[0]
    text = recipe.read_text("utf-8").replace("dropout = 0.2", "dropout = 0.3")
    changed = recipe.with_name("changed.toml")
    changed.write_text(text, "utf-8")
    for error in run_ranks(2, take_part, [recipe, changed], tmp_path / "run", SET):
        with pytest.raises(RecipeError, match="has another recipe than process 0"):
            raise error
    (tmp_path / "other" / "train.de").unlink()
    for error in run_ranks(2, take_part, [recipe, other], tmp_path / "run", SET):
        with pytest.raises(DataError, match=r"Process 1 of 2 \(on .*train\.de"):
            raise error
    assert not RunFolder(tmp_path / "run").is_started


def test_what_rank_0_prepared_must_be_readable_elsewhere(tmp_path: Path, recipe: Path) -> None:
    first, second = run_ranks(2, apart, recipe, tmp_path)
    assert str(first).startswith("Process 1 of 2: what process 0 prepared cannot be read on ")
    assert "on a filesystem that they share" in str(first)
    assert isinstance(second, DataError)


def apart(group: ProcessGroup, recipe: Path, folder: Path) -> Any:
    return take_part(group, [recipe], folder / str(group.rank), SET)


def test_settings_that_do_not_fit(tmp_path: Path, recipe: Path) -> None:
    with pytest.raises(RecipeError, match=r"train\.compile = true needs a GPU, but the device is cpu\. Leave it out"):
        list(run(read_recipe(recipe, [*SET, "train.compile=true"]), tmp_path / "compiled"))
    refused, _ = run_ranks(2, take_part, [recipe], tmp_path / "run", [*SET, 'model.norm="batch"'])
    with pytest.raises(RecipeError, match=r'model\.norm = "batch" averages over a batch'):
        raise refused
    refused, _ = run_ranks(
        2, take_part, [recipe], tmp_path / "run", [*SET, "train.micro_batches=1", "train.accumulation_steps=1"]
    )
    with pytest.raises(RecipeError, match=r"2 processes cannot share .* Use train\.micro_batches = 2"):
        raise refused


def test_an_error_before_the_start_is_sent_to_the_others_and_raised_here() -> None:
    sent: list[Any] = []

    class Group:
        def exchange(self, _: str, message: dict[str, str]) -> None:
            sent.append(message["error"])

    with pytest.raises(DataError, match="no such file"), refuse_start(cast(ProcessGroup, Group())):
        raise DataError("no such file")
    assert sent == ["no such file"]
