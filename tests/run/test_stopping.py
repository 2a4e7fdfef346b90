"""SIGTERM in every phase of a run: it is obeyed at once, and the same command finishes with identical bytes."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from manyheads.bundle import Bundle
from manyheads.run import Event, Finished, Interrupted, Recipe, StopRequest, Validated, read_recipe, run
from manyheads.tasks import Seq2Seq
from manyheads.training import Checkpoints, Step

from faults.running import write_recipe

STEPS = 4


def bundle_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "bundle").iterdir()}


def terminate_in(patch: pytest.MonkeyPatch, owner: type, name: str, call: int = 1) -> list[float]:
    """Send SIGTERM to this process at the nth call of a method; return a list to which the time is added."""
    original, n_calls, times = getattr(owner, name), 0, list[float]()

    def terminate(*arguments: Any, **options: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls == call:
            times.append(time.process_time())
            os.kill(os.getpid(), signal.SIGTERM)
        return original(*arguments, **options)

    patch.setattr(owner, name, terminate)
    return times


def run_with_signals(recipe: Recipe, folder: Path) -> list[Event]:
    with StopRequest() as stop:
        return list(run(recipe, folder, stop))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    changes = [f"train.steps={STEPS}", "train.validate_every=2", "train.save_every=2"]
    return read_recipe(write_recipe(tmp_path_factory.mktemp("data")), changes)


@pytest.fixture(scope="module")
def whole(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    list(run(recipe, folder))
    return folder


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (Seq2Seq, "validate", 2),  # the one after the last step
        (Checkpoints, "save", 2),  # the checkpoint of the last step
        (Checkpoints, "averaged", 1),
        (Seq2Seq, "calibrate", 1),
        (Seq2Seq, "score", 1),
        (Bundle, "save", 1),
    ],
)
def test_stop_after_the_last_step(
    tmp_path: Path, recipe: Recipe, whole: Path, owner: type, name: str, call: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        times = terminate_in(patch, owner, name, call)
        events = run_with_signals(recipe, tmp_path)
    assert events[-1] == Interrupted(STEPS)
    assert time.process_time() - times[0] < 2.0  # the clock of a busy machine says nothing
    assert not (tmp_path / "bundle").exists()
    again = run_with_signals(recipe, tmp_path)
    assert not any(isinstance(event, Step) for event in again)
    assert isinstance(again[-1], Finished)
    assert bundle_files(tmp_path) == bundle_files(whole)


def test_stop_in_a_validation_during_training(tmp_path: Path, recipe: Recipe) -> None:
    """The validation is repeated on resumption, so that early stopping counts as in a whole run."""
    recipe = replace(recipe, train=replace(recipe.train, steps=6, patience=2))
    whole = list(run(recipe, tmp_path / "whole"))
    with pytest.MonkeyPatch.context() as patch:
        terminate_in(patch, Seq2Seq, "validate", 2)
        stopped = run_with_signals(recipe, tmp_path / "parts")
    assert stopped[-1] == Interrupted(4)
    resumed = run_with_signals(recipe, tmp_path / "parts")
    assert [event for event in stopped + resumed if isinstance(event, Validated)] == [
        event for event in whole if isinstance(event, Validated)
    ]
    assert bundle_files(tmp_path / "parts") == bundle_files(tmp_path / "whole")


def test_request_after_the_last_step_ends_the_run(tmp_path: Path, recipe: Recipe) -> None:
    answers = iter([False] * (STEPS - 1) + [True])
    assert list(run(recipe, tmp_path, lambda: next(answers)))[-1] == Interrupted(STEPS)
    assert isinstance(list(run(recipe, tmp_path))[-1], Finished)


def test_second_signal_interrupts_at_once() -> None:
    with StopRequest() as stop, stop.deferred():
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


def test_remembered_signal_interrupts_what_may_be_interrupted() -> None:
    with StopRequest() as stop, stop.deferred():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), stop.immediate():
            pytest.fail("not reached")


def test_a_signal_that_the_caller_ignores_stays_ignored() -> None:
    """A shell starts a job with `&` so that Ctrl-C, meant for what runs in the foreground, does not end it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with StopRequest() as stop, stop.deferred():
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop()
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_without_a_stop_request_is_not_swallowed(tmp_path: Path, recipe: Recipe) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Seq2Seq, "validate", _press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            list(run(recipe, tmp_path))


def _press_ctrl_c(*arguments: object) -> None:
    raise KeyboardInterrupt
