"""Threads spin on an idle machine and sleep on a busy one; a spare team of threads comes and goes."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest
import torch

from manyheads.model import ModelSettings, Transformer
from manyheads.train import waiting_threads
from manyheads.train.waiting_threads import LoadRule, SpareTeam, waiting_by_load

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="teams are counted by /proc")


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def n_threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def has_spare() -> bool:
    return any(thread.name == "manyheads-spare" for thread in threading.enumerate())


def test_load_rule() -> None:
    rule = LoadRule()
    shares = [0.0, 0.05, 0.3, 0.05, 0.0, 0.0, 0.0, 0.03, 0.0, 0.0, 0.0, 0.0, 0.05]
    busy = [rule.update(share) for share in shares]
    assert busy == [False, False, *repeat(True, 9), False, False]


@on_linux
@pytest.mark.usefixtures("two_threads")
def test_spare_team_has_threads_of_its_own_until_it_ends() -> None:
    before = n_threads()
    team = SpareTeam()
    during = n_threads()
    team.end()
    deadline = time.monotonic() + 20
    while n_threads() > before and time.monotonic() < deadline:  # the threads of OpenMP end a little later
        time.sleep(0.01)
    assert (during - before, n_threads() - before) == (2, 0)


@pytest.mark.usefixtures("two_threads")
def test_spare_team_changes_no_bit() -> None:
    def gradients() -> list[bytes]:
        torch.manual_seed(1)
        model = Transformer(ModelSettings.preset("tiny", vocab_size=500)).train()
        ids = torch.randint(4, 500, (40, 28))
        model.hidden(ids, ids).square().mean().backward()
        return [one.grad.numpy().tobytes() for one in model.parameters() if one.grad is not None]

    alone = gradients()
    team = SpareTeam()
    beside = gradients()
    team.end()
    assert len(alone) > 100
    assert alone == beside


@pytest.mark.usefixtures("two_threads")
def test_spare_team_exists_while_the_machine_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = chain([0.0, 1e3, 2e3], repeat(2e3))  # waited longer than the time that passed, then not at all
    monkeypatch.setattr(waiting_threads, "run_queue_clock", lambda: lambda: next(readings))
    monkeypatch.setattr(waiting_threads, "_PERIOD", 0.01)
    seen = []
    with waiting_by_load():
        deadline = time.monotonic() + 30
        while (not seen or seen[-1]) and time.monotonic() < deadline:
            if has_spare() or seen:
                seen.append(has_spare())
    assert seen[0]
    assert not seen[-1]
    assert not has_spare()


@pytest.mark.usefixtures("two_threads")
def test_spare_team_ends_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    ever = (1e3 * count for count in range(10**9))
    monkeypatch.setattr(waiting_threads, "run_queue_clock", lambda: lambda: next(ever))
    monkeypatch.setattr(waiting_threads, "_PERIOD", 0.01)
    with pytest.raises(KeyboardInterrupt), waiting_by_load():
        deadline = time.monotonic() + 30
        while not has_spare() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert has_spare()
        raise KeyboardInterrupt
    assert not has_spare()


def test_one_thread_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    with waiting_by_load():
        assert not any(thread.name == "manyheads-load" for thread in threading.enumerate())


@on_linux
def test_run_queue_clock_counts_what_a_thread_waits_for_its_core() -> None:
    clock = waiting_threads.run_queue_clock()
    if clock is None:
        pytest.skip("this kernel does not count how long threads wait")
    own = os.sched_getaffinity(0)
    core = {min(own)}
    busy = threading.Event()

    def spin() -> None:  # on the same core, without the interpreter's lock
        os.sched_setaffinity(0, core)
        while not busy.is_set():
            torch.ones(200, 200) @ torch.ones(200, 200)

    other = threading.Thread(target=spin)
    os.sched_setaffinity(0, core)
    try:
        other.start()
        before, deadline = clock(), time.monotonic() + 30
        while clock() - before < 0.05 and time.monotonic() < deadline:
            torch.ones(200, 200) @ torch.ones(200, 200)
        assert clock() - before >= 0.05
    finally:
        busy.set()
        other.join()
        os.sched_setaffinity(0, own)


def test_system_without_the_counter_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert waiting_threads.run_queue_clock() is None
