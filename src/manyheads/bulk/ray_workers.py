"""`RayWorkers`: shards as tasks of a Ray cluster.

Ray decides where and when a shard is answered, nothing else: the worker writes the files of its shard as a local one
does, into a folder that all machines share. Ray neither stores answers nor orders them, and it repeats no task.
"""

import json
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from manyheads.bulk.line_shards import Shard
from manyheads.bulk.shard_schedule import AnswerShard, Outcome, WorkerTask, answer_shard, outcome_of, use_one_thread
from manyheads.errors import JobError, ManyheadsError
from manyheads.messages import _

ADDRESS_VARIABLE = "RAY_ADDRESS"
_OBJECT_STORE_BYTES = 100_000_000  # tasks pass byte offsets, not text
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # it only silences a notice
}
_PER_CPU = 2  # tasks in flight, so that no worker waits for the next


class RayWorkers:
    """Answers shards on the cluster at RAY_ADDRESS, or on a new one of this machine."""

    def __init__(self, task: WorkerTask, n_processes: int) -> None:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        if not os.environ.get(ADDRESS_VARIABLE):
            # Ray replaces 127.0.0.1 by an address that other machines can reach, unless this is set before its import.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        try:
            import ray
        except ImportError:
            raise JobError(_("--on ray needs Ray, which is not installed: pip install 'manyheads[ray]'.")) from None
        self._ray: Any = ray
        self._start(n_processes)
        self.n_slots = _PER_CPU * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._task = ray.put(task)
        # max_retries=0: the schedule counts attempts, for local processes and for Ray alike.
        self._answer: Any = ray.remote(num_cpus=1, max_retries=0)(_answer_on_ray)
        self._running: dict[Any, Shard] = {}

    def _start(self, n_processes: int) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if not os.environ.get(ADDRESS_VARIABLE):
            options |= {
                "address": "local",
                "num_cpus": n_processes,
                "include_dashboard": False,
                "object_store_memory": _OBJECT_STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
            }
        try:
            self._ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            where = os.environ.get(ADDRESS_VARIABLE) or _("this machine")
            raise JobError(
                _(
                    "Ray cannot be reached or started ({where}): {reason}.",
                    where=where,
                    reason=_first_line(error),
                )
            ) from None

    def submit(self, shard: Shard) -> None:
        """Queue a shard as a task."""
        self._running[self._answer.remote(self._task, shard)] = shard

    def wait(self) -> Sequence[Outcome]:
        """Return the outcomes of the tasks that end first."""
        ended = self._ray.wait(list(self._running), num_returns=1)[0]
        return [self._outcome(reference, self._running.pop(reference)) for reference in ended]

    def _outcome(self, reference: Any, shard: Shard) -> Outcome:
        errors = self._ray.exceptions
        try:
            message = json.loads(self._ray.get(reference))
        except errors.RayTaskError as error:  # the worker could not load what it needs
            return Outcome(
                shard, error=JobError(_("A worker of Ray failed: {reason}.", reason=_first_line(error.cause)))
            )
        except errors.RayError as error:
            return Outcome(shard, death=_("the worker of Ray ended ({error})", error=type(error).__name__))
        return outcome_of(shard, message)

    def close(self) -> None:
        """Disconnect; a cluster that was started here ends."""
        self._ray.shutdown()


def _answer_on_ray(task: WorkerTask, shard: Shard) -> str:
    """Answer a shard in a worker process of Ray; return what `answer_shard` does as JSON."""
    try:
        answer = _open_answers(task)
    except (ManyheadsError, OSError) as error:
        return json.dumps({"error": str(error)})
    return json.dumps(answer_shard(task, answer, shard))


@lru_cache(maxsize=1)
def _open_answers(task: WorkerTask) -> AnswerShard:
    """Load the bundle once in each worker process, which answers many shards."""
    use_one_thread()
    return task.open_answers(task.spec)


def _first_line(error: object) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
