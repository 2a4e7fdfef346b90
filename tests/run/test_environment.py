"""The number of threads of a run: stored at its start, kept when it resumes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from manyheads.run import Event, Interrupted, Prepared, Recipe, RunFolder, delete_run, read_recipe, run
from manyheads.run.environment import Environment, original_environment

from faults.running import write_recipe


@pytest.fixture(autouse=True)
def same_threads_afterwards() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return read_recipe(write_recipe(tmp_path_factory.mktemp("data")), ["train.steps=3", "model.width=128"])


def train(recipe: Recipe, folder: Path, n_threads: int, n_steps: int | None = None) -> tuple[list[Event], set[int]]:
    """Run with so many threads, as OMP_NUM_THREADS sets them; return the events, and the numbers of threads in use."""
    torch.set_num_threads(n_threads)
    seen: list[int] = []

    def should_stop() -> bool:
        seen.append(torch.get_num_threads())
        return len(seen) == n_steps

    return list(run(recipe, folder, should_stop)), set(seen)


def prepared(events: list[Event]) -> Prepared:
    return next(event for event in events if isinstance(event, Prepared))


def weights(folder: Path) -> bytes:
    return (folder / "bundle" / "weights.safetensors").read_bytes()


def test_resumed_run_keeps_its_threads_and_its_bytes(tmp_path: Path, recipe: Recipe) -> None:
    train(recipe, tmp_path / "whole", n_threads=1)
    events, _ = train(recipe, tmp_path / "parts", n_threads=1, n_steps=2)
    assert events[-1] == Interrupted(2)
    assert json.loads((tmp_path / "parts" / "environment.json").read_text()) == {
        "threads": 1,
        "torch": torch.__version__,
        "processes": 1,
    }
    events, seen = train(recipe, tmp_path / "parts", n_threads=2)
    assert seen == {1}
    assert prepared(events).n_threads == 1
    assert torch.get_num_threads() == 2  # of the caller, as before
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")


def test_run_without_a_checkpoint_takes_the_present_threads(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        with original_environment(folder) as environment:
            assert environment.threads == n_threads
    assert json.loads(folder.environment_file.read_text())["threads"] == 2


def test_fewer_cores_and_another_torch_are_reported(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not prepared(train(recipe, tmp_path, n_threads=2, n_steps=1)[0]).has_too_few_cores
    RunFolder(tmp_path).environment_file.write_text('{"threads": 2, "torch": "2.0.1"}')
    monkeypatch.setattr("manyheads.run.environment.count_cores", lambda: 1)
    event = prepared(train(recipe, tmp_path, n_threads=1, n_steps=1)[0])
    assert (event.n_threads, event.has_too_few_cores, event.old_torch) == (2, True, "2.0.1")


_DAMAGED = [None, "[]", "[" * 100_000, *(f'{{"threads": {n}, "torch": ""}}' for n in ("0", '"two"', "Infinity", "1e8"))]


@pytest.mark.parametrize("content", _DAMAGED)
def test_missing_or_damaged_record_is_replaced(tmp_path: Path, content: str | None) -> None:
    """As in runs of earlier versions, which have no record."""
    folder = RunFolder(tmp_path)
    (folder.checkpoints / "step-00000001").mkdir(parents=True)
    if content is not None:
        folder.environment_file.write_text(content)
    with original_environment(folder) as environment:
        assert environment == Environment.here()
    assert json.loads(folder.environment_file.read_text())["threads"] == torch.get_num_threads()


def test_deleted_run_has_no_record(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.claim()
    folder.environment_file.write_text("{}")
    delete_run(tmp_path)
    assert not folder.environment_file.exists()
