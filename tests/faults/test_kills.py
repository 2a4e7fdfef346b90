"""A run that is killed repeatedly produces the same bytes as an undisturbed one.

`make test` kills before file operations, with two controls; `make proofs` also kills at every moment of a run.
"""

import json
import random
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from manyheads.model.weights import save_tensors
from manyheads.storage import write_manifest

from faults.killing import MOMENTS, Tally, kill_until_done
from faults.running import STEPS, ForkedRun, differences, outcome, output_of, write_recipe

SEED = 4


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("kills"))


@pytest.fixture(scope="module")
def whole(recipe: Path) -> dict[str, object]:
    """The outcome of an undisturbed run."""
    folder = recipe.parent / "whole"
    run = ForkedRun(recipe, folder)
    assert run.wait() == 0, output_of(folder)
    expected = outcome(folder)
    assert sum(key.startswith("loss ") for key in expected) == STEPS
    return expected


@pytest.fixture(scope="module")
def stopped(recipe: Path, whole: dict[str, object]) -> Path:
    """The folder of a run killed between two saves."""
    folder = recipe.parent / "stopped"
    rng = random.Random(SEED)
    while len(list(folder.glob("checkpoints/step-*"))) < 2:
        assert ForkedRun(recipe, folder, die_at=rng.randrange(100, 140)).wait() == -9, output_of(folder)
    return folder


@pytest.mark.proof
def test_twenty_kills_at_chosen_and_random_moments(recipe: Path, whole: dict[str, object]) -> None:
    rng = random.Random(SEED)
    tally = Tally()
    for number in range(9):
        folder = recipe.parent / f"killed-{number}"
        kill_until_done(folder, lambda folder=folder: ForkedRun(recipe, folder), rng, MOMENTS, 2.0, tally)  # type: ignore[misc]
        assert differences(outcome(folder), whole) == [], (number, tally)
        assert not [path for path in folder.rglob(".*") if path.is_dir()]  # no partial folder remains
        if tally.total >= 20 and set(tally.kills) == set(MOMENTS):
            break
    assert tally.total >= 20, tally
    assert set(tally.kills) == set(MOMENTS), tally
    assert tally.kills["save"] >= 3, tally


def test_kills_before_file_operations(recipe: Path, whole: dict[str, object]) -> None:
    """An audit hook kills just before the n-th file operation, for instance between two operations of a save."""
    rng = random.Random(SEED)
    folder = recipe.parent / "operations"
    killed = [ForkedRun(recipe, folder, die_at=rng.randrange(40, 150)).wait() == -9 for _ in range(8)]
    assert sum(killed) >= 5
    assert ForkedRun(recipe, folder).wait() == 0, output_of(folder)
    assert differences(outcome(folder), whole) == []


def reset_moments(checkpoint: Path) -> None:
    state = load_file(checkpoint / "optimizer.safetensors")
    moments = {name: value * 0 if name.startswith("exp_avg") else value for name, value in state.items()}
    assert moments
    save_tensors(moments, checkpoint / "optimizer.safetensors")


def reset_ema(checkpoint: Path) -> None:
    shutil.copy(checkpoint / "weights.safetensors", checkpoint / "ema.safetensors")


def change_progress(checkpoint: Path, name: str) -> None:
    progress = json.loads((checkpoint / "progress.json").read_text())
    progress[name] += 1
    (checkpoint / "progress.json").write_text(json.dumps(progress))


@pytest.mark.parametrize(
    "lost", ["nothing", "moments", *(pytest.param(one, marks=pytest.mark.proof) for one in ("ema", "position", "step"))]
)
def test_comparison_detects_lost_state(recipe: Path, stopped: Path, whole: dict[str, object], lost: str) -> None:
    """Negative controls: if one part of the state is lost, the comparison finds a difference."""
    folder = recipe.parent / f"without-{lost}"
    shutil.copytree(stopped, folder)
    (checkpoint,) = sorted(folder.glob("checkpoints/step-*"))[-1:]
    step = int(checkpoint.name.removeprefix("step-"))
    if lost == "moments":
        reset_moments(checkpoint)
    elif lost == "ema":
        reset_ema(checkpoint)
    elif lost in ("position", "step"):
        change_progress(checkpoint, lost)
    write_manifest(checkpoint)
    if lost == "step":  # other dropout masks, other batches, another learning rate
        checkpoint.rename(checkpoint.with_name(f"step-{step + 1:08d}"))
    assert ForkedRun(recipe, folder).wait() == 0, output_of(folder)
    different = differences(outcome(folder), whole)
    if lost == "nothing":
        assert different == []
    else:
        assert "bundle/weights.safetensors" in different
        assert (f"loss {STEPS}" in different) == (lost != "ema")  # the EMA does not affect training
