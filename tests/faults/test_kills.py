"""A run that is killed again and again ends in the same bytes as one that never was."""

import json
import random
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from manyheads.model.weights import save_tensors
from manyheads.storage import write_manifest

from faults.killing import MOMENTS, Tally, kill_until_done
from faults.running import STEPS, ForkedRun, differences, outcome, told, write_recipe

pytestmark = pytest.mark.slow
SEED = 4


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("kills"))


@pytest.fixture(scope="module")
def whole(recipe: Path) -> dict[str, object]:
    """What the run comes to when nobody disturbs it."""
    folder = recipe.parent / "whole"
    run = ForkedRun(recipe, folder)
    assert run.wait() == 0, told(folder)
    found = outcome(folder)
    assert sum(key.startswith("loss ") for key in found) == STEPS
    return found


@pytest.fixture(scope="module")
def stopped(recipe: Path, whole: dict[str, object]) -> Path:
    """The folder of a run that was killed in the middle, after a save and before the next."""
    folder = recipe.parent / "stopped"
    chance = random.Random(SEED)
    while len(list(folder.glob("checkpoints/step-*"))) < 2:
        assert ForkedRun(recipe, folder, die_at=chance.randrange(100, 140)).wait() == -9, told(folder)
    return folder


def test_twenty_kills_at_chosen_and_random_moments(recipe: Path, whole: dict[str, object]) -> None:
    chance = random.Random(SEED)
    tally = Tally()
    for number in range(9):
        folder = recipe.parent / f"killed-{number}"
        kill_until_done(folder, lambda folder=folder: ForkedRun(recipe, folder), chance, MOMENTS, 2.0, tally)  # type: ignore[misc]
        assert differences(outcome(folder), whole) == [], (number, tally)
        assert not [path for path in folder.rglob(".*") if path.is_dir()]  # nothing half-written is left lying about
        if tally.total >= 20 and set(tally.kills) == set(MOMENTS):
            break
    assert tally.total >= 20, tally
    assert set(tally.kills) == set(MOMENTS), tally
    assert tally.kills["save"] >= 3, tally


def test_killed_before_operations_on_files_one_after_another(recipe: Path, whole: dict[str, object]) -> None:
    """An audit hook kills just before the so-manieth operation: between any two steps of a save, too."""
    chance = random.Random(SEED)
    folder = recipe.parent / "operations"
    killed = [ForkedRun(recipe, folder, die_at=chance.randrange(40, 150)).wait() == -9 for _ in range(8)]
    assert sum(killed) >= 5
    assert ForkedRun(recipe, folder).wait() == 0, told(folder)
    assert differences(outcome(folder), whole) == []


def forget_moments(checkpoint: Path) -> None:
    state = load_file(checkpoint / "optimizer.safetensors")
    moments = {name: value * 0 if name.startswith("exp_avg") else value for name, value in state.items()}
    assert moments
    save_tensors(moments, checkpoint / "optimizer.safetensors")


def forget_mean(checkpoint: Path) -> None:
    shutil.copy(checkpoint / "weights.safetensors", checkpoint / "ema.safetensors")


def change_progress(checkpoint: Path, name: str) -> None:
    progress = json.loads((checkpoint / "progress.json").read_text())
    progress[name] += 1
    (checkpoint / "progress.json").write_text(json.dumps(progress))


@pytest.mark.parametrize("forgotten", ["nothing", "moments", "ema", "position", "step"])
def test_the_comparison_can_fail(recipe: Path, stopped: Path, whole: dict[str, object], forgotten: str) -> None:
    """Negative controls: with one part of the state dropped, the same comparison finds a difference."""
    folder = recipe.parent / f"without-{forgotten}"
    shutil.copytree(stopped, folder)
    (checkpoint,) = sorted(folder.glob("checkpoints/step-*"))[-1:]
    step = int(checkpoint.name.removeprefix("step-"))
    if forgotten == "moments":
        forget_moments(checkpoint)
    elif forgotten == "ema":
        forget_mean(checkpoint)
    elif forgotten in ("position", "step"):
        change_progress(checkpoint, forgotten)
    write_manifest(checkpoint)
    if forgotten == "step":  # another dropout, another sample, another learning rate
        checkpoint.rename(checkpoint.with_name(f"step-{step + 1:08d}"))
    assert ForkedRun(recipe, folder).wait() == 0, told(folder)
    found = differences(outcome(folder), whole)
    if forgotten == "nothing":
        assert found == []
    else:
        assert "bundle/weights.safetensors" in found
        assert (f"loss {STEPS}" in found) == (forgotten != "ema")  # the mean is not trained on
