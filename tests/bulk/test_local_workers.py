"""Worker processes of this machine: what reaches them, how they end, and what is reported when they die."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest
import torch

from manyheads.bulk.line_shards import Segment, Shard
from manyheads.bulk.local_workers import LocalWorkers, _exit_reason
from manyheads.bulk.shard_folder import ShardFolder
from manyheads.bulk.shard_schedule import Outcome, WorkerTask, use_one_thread
from manyheads.errors import BundleError, JobError

SHARDS = [Shard(number, 1000 * number, (Segment(0, 10 * number, 7), Segment(1, 0, 3))) for number in range(3)]


def open_shards(spec: dict[str, Any]) -> Any:
    """Answer each shard with what arrived of it; the shard `dies_at` ends the worker."""
    if spec.get("is_damaged"):
        raise BundleError("The bundle is damaged.")
    if spec.get("dies_at_start"):
        os._exit(3)

    def answer(shard: Shard, stream: TextIO) -> dict[str, Any]:
        if shard.number == spec.get("dies_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        stream.write(f"{shard}\n")
        return {}

    return answer


def workers_for(folder: Path, n_processes: int, **spec: Any) -> LocalWorkers:
    (folder / "records").mkdir()
    return LocalWorkers(WorkerTask(open_shards, spec, str(folder), len(SHARDS), ".txt"), n_processes)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[LocalWorkers]:
    started = workers_for(tmp_path, 2, dies_at=2)
    yield started
    started.close()


def test_shards_arrive_whole_a_death_is_reported_and_close_ends_all(workers: LocalWorkers, tmp_path: Path) -> None:
    for shard in SHARDS[:2]:
        workers.submit(shard)
    outcomes: list[Outcome] = []
    while len(outcomes) < 2:
        outcomes += workers.wait()
    assert sorted(outcomes, key=lambda one: one.shard.number) == [Outcome(shard) for shard in SHARDS[:2]]
    folder = ShardFolder(tmp_path, len(SHARDS))
    assert [folder.file(number).read_text() for number in (0, 1)] == [f"{shard}\n" for shard in SHARDS[:2]]
    before = [worker.process.pid for worker in workers._workers]
    for worker in workers._workers:  # Ctrl-C reaches all processes of a terminal; only the command decides
        os.kill(worker.process.pid or 0, signal.SIGINT)
    workers.submit(SHARDS[2])
    death = "the worker process was ended by SIGKILL, perhaps for lack of memory"
    assert list(workers.wait()) == [Outcome(SHARDS[2], death=death)]
    (left,) = workers._workers
    assert left.process.pid in before  # an idle worker is used before a new one is started
    workers.close()
    assert left.connection.closed
    assert not left.process.is_alive()
    assert workers._workers == []


def test_a_bundle_that_cannot_be_loaded_ends_the_job(tmp_path: Path) -> None:
    workers = workers_for(tmp_path, 1, is_damaged=True)
    workers.submit(SHARDS[0])
    with pytest.raises(JobError, match=r"^The bundle is damaged\.$"):
        workers.wait()
    workers.close()


def test_workers_that_die_while_loading_end_the_job(tmp_path: Path) -> None:
    workers = workers_for(tmp_path, 1, dies_at_start=True)
    workers.submit(SHARDS[0])
    with pytest.raises(JobError, match=r"3 worker processes ended while they were loading the bundle: .* exit code 3"):
        workers.wait()
    workers.close()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (None, "the worker process closed its pipe"),
        (0, "the worker process ended with exit code 0"),
        (3, "the worker process ended with exit code 3"),
        (-9, "the worker process was ended by SIGKILL, perhaps for lack of memory"),
        (-11, "the worker process was ended by SIGSEGV"),
        (-99, "the worker process was ended by 99"),
    ],
)
def test_the_reason_names_the_signal_or_the_exit_code(code: int | None, reason: str) -> None:
    assert _exit_reason(code) == reason


def test_a_worker_computes_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    n_threads: list[int] = []
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(torch, "set_num_threads", n_threads.append)
    use_one_thread()
    assert (os.environ["OMP_NUM_THREADS"], n_threads) == ("1", [1])
