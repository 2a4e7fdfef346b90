"""Shards on Ray, with a stand-in for Ray; `make bulk-kills` uses Ray itself."""

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import pytest

from manyheads.bulk.line_shards import Segment, Shard
from manyheads.bulk.ray_workers import RayWorkers
from manyheads.bulk.shard_folder import ShardFolder
from manyheads.bulk.shard_schedule import WorkerTask, run_shards
from manyheads.errors import BundleError, JobError

SHARDS = [Shard(number, 1000 * number, (Segment(0, 0, 1000),)) for number in range(4)]


class StandIn(ModuleType):
    """The functions of Ray that are used; tasks run when their result is asked for."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.exceptions = ModuleType("ray.exceptions")
        self.exceptions.RayError = type("RayError", (Exception,), {})  # type: ignore[attr-defined]
        self.exceptions.RayTaskError = type("RayTaskError", (self.exceptions.RayError,), {})  # type: ignore[attr-defined]
        self.started: dict[str, Any] = {}
        self.options: dict[str, Any] = {}
        self.crashes: list[int] = []  # shards whose worker crashes, once each
        self.task_error: Exception | None = None  # raised in the worker, outside of our code
        self.is_running = False

    def init(self, **options: Any) -> None:
        if os.environ.get("RAY_ADDRESS") == "nowhere:1":
            raise ConnectionError("Could not find any running Ray instance.\nMore words.")
        self.started, self.is_running = options, True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def put(self, value: Any) -> Any:
        return value

    def remote(self, **options: Any) -> Any:
        self.options = options

        def decorate(function: Any) -> Any:
            function.remote = lambda *values: (function, values)
            return function

        return decorate

    def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        if num_returns > len(references):  # as Ray does
            raise ValueError("num_returns cannot be greater than the number of ray_waitables provided to ray.wait")
        return references[-num_returns:], references[:-num_returns]

    def get(self, reference: Any) -> str:
        function, (task, shard) = reference
        if shard.number in self.crashes:
            self.crashes.remove(shard.number)
            raise self.exceptions.RayError
        if self.task_error is not None:
            error = self.exceptions.RayTaskError()
            error.cause = self.task_error
            raise error
        return str(function(task, shard))

    def shutdown(self) -> None:
        self.is_running = False


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    for name in ("RAY_ADDRESS", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "")  # what is changed here is restored
        monkeypatch.delenv(name)
    return stand_in


def open_numbers(spec: dict[str, Any]) -> Any:
    """Answer each shard with its number."""
    if spec.get("is_damaged"):
        raise BundleError("The bundle is damaged.")

    def answer(shard: Shard, stream: TextIO) -> dict[str, Any]:
        if shard.number == spec.get("fails_at"):
            raise ZeroDivisionError
        stream.write(f"{shard.number}\n")
        return {}

    return answer


def task_for(folder: Path, **spec: Any) -> WorkerTask:
    (folder / "records").mkdir()
    return WorkerTask(open_numbers, {"folder": str(folder), **spec}, str(folder), len(SHARDS), ".txt")


def test_shards_are_written_by_tasks_and_crashes_made_up_for(
    ray: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[str] = []
    monkeypatch.setattr("manyheads.bulk.ray_workers.use_one_thread", lambda: limits.append("one thread"))
    ray.crashes = [1, 3]
    workers = RayWorkers(task_for(tmp_path), 2)
    assert workers.n_slots == 4
    run_shards(workers, SHARDS, lambda shard: None)
    folder = ShardFolder(tmp_path, len(SHARDS))
    assert [folder.file(number).read_text() for number in range(4)] == ["0\n", "1\n", "2\n", "3\n"]
    assert all(folder.is_finished(number) for number in range(4))
    assert ray.options == {"num_cpus": 1, "max_retries": 0}  # Ray itself repeats nothing
    assert limits == ["one thread"]  # once in a process
    workers.close()
    assert not ray.is_running


def test_a_local_ray_is_private_and_small(ray: StandIn, tmp_path: Path) -> None:
    RayWorkers(task_for(tmp_path), 3)
    assert ray.started["address"] == "local"
    assert ray.started["include_dashboard"] is False
    assert ray.started["_node_ip_address"] == "127.0.0.1"
    assert ray.started["num_cpus"] == 3
    assert ray.started["object_store_memory"] <= 200_000_000
    # Ray replaces 127.0.0.1 by another address otherwise.
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_a_cluster_is_joined_at_its_address(ray: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.7:6379")
    RayWorkers(task_for(tmp_path), 3)
    assert not {"address", "num_cpus", "_node_ip_address"} & set(ray.started)
    monkeypatch.setenv("RAY_ADDRESS", "nowhere:1")
    (tmp_path / "other").mkdir()
    with pytest.raises(JobError) as error:
        RayWorkers(task_for(tmp_path / "other"), 3)
    assert str(error.value) == (
        "Ray cannot be reached or started (nowhere:1): Could not find any running Ray instance."
    )


def test_errors_of_workers_end_the_job_or_fail_the_shard(ray: StandIn, tmp_path: Path) -> None:
    for name in ("damaged", "fails"):
        (tmp_path / name).mkdir()
    with pytest.raises(JobError, match=r"The bundle is damaged\."):
        run_shards(RayWorkers(task_for(tmp_path / "damaged", is_damaged=True), 1), SHARDS, lambda shard: None)
    finished: list[int] = []
    with pytest.raises(JobError, match=r"Shard 2 \(lines 2,001 to 3,000\) failed 2 times: ZeroDivisionError in answer"):
        run_shards(
            RayWorkers(task_for(tmp_path / "fails", fails_at=2), 1),
            SHARDS,
            lambda shard: finished.append(shard.number),
        )
    assert sorted(finished) == [0, 1, 3]


def test_a_task_that_fails_outside_of_our_code_ends_the_job(ray: StandIn, tmp_path: Path) -> None:
    ray.task_error = ModuleNotFoundError("No module named 'manyheads'\nTraceback")
    with pytest.raises(JobError, match=r"^A worker of Ray failed: No module named 'manyheads'\.$"):
        run_shards(RayWorkers(task_for(tmp_path), 1), SHARDS, lambda shard: None)


@pytest.mark.parametrize("resources", [{}, {"CPU": 0.0}, {"CPU": 1.0}])
def test_a_cluster_that_names_no_processor_gets_the_tasks_of_one(
    ray: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resources: dict[str, float]
) -> None:
    monkeypatch.setattr(ray, "cluster_resources", lambda: resources)
    assert RayWorkers(task_for(tmp_path), 3).n_slots == 2
