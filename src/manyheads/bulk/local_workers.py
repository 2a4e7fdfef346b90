"""`LocalWorkers`: worker processes of this machine.

They are forked from a server process that has imported torch once (multiprocessing's "forkserver"), so one that dies is
replaced in about a second. A worker ends as soon as the process that started it does. Messages are JSON over a pipe.
"""

import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any

from manyheads.bulk.line_shards import Shard
from manyheads.bulk.shard_schedule import Outcome, WorkerTask, answer_shard, outcome_of, shard_from, use_one_thread
from manyheads.errors import JobError, ManyheadsError
from manyheads.messages import _

_MAX_STARTS = 3  # failed ones in a row, before the job fails
_JOIN_SECONDS = 5.0


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    shard: Shard | None = None  # that it is working on
    is_ready: bool = False


class LocalWorkers:
    """A number of worker processes, which answer one shard at a time."""

    def __init__(self, task: WorkerTask, n_processes: int) -> None:
        self.task, self.n_slots = task, n_processes
        self._workers: list[_Worker] = []
        self._n_failed_starts = 0

    def submit(self, shard: Shard) -> None:
        """Give a shard to an idle worker; start one if there is none."""
        worker = next((worker for worker in self._workers if worker.shard is None), None) or self._start()
        worker.shard = shard
        with suppress(OSError):  # if it has died, `wait` sees it
            worker.connection.send_bytes(json.dumps(shard).encode())

    def wait(self) -> Sequence[Outcome]:
        """Return the outcomes of the workers that report or die first."""
        outcomes: list[Outcome] = []
        while not outcomes:
            ready = wait([worker.connection for worker in self._workers])
            for worker in [worker for worker in self._workers if worker.connection in ready]:
                try:
                    message = json.loads(worker.connection.recv_bytes())
                except (EOFError, OSError):
                    outcomes += self._remove_dead(worker)
                    continue
                if "ready" in message:
                    worker.is_ready, self._n_failed_starts = True, 0
                elif "failed" in message:
                    raise JobError(message["failed"])
                elif worker.shard is not None:
                    outcomes.append(outcome_of(worker.shard, message))
                    worker.shard = None
        return outcomes

    def close(self) -> None:
        """End all workers at once; what they have not finished is not written."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.join(_JOIN_SECONDS)
        self._workers.clear()

    def _start(self) -> _Worker:
        context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
        if sys.platform != "win32":
            context.set_forkserver_preload(["manyheads.bundle"])
        ours, theirs = context.Pipe()
        process = context.Process(target=_run_worker, args=(theirs, self.task), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _remove_dead(self, worker: _Worker) -> list[Outcome]:
        """Remove a worker that has died; return the outcome for its shard, if it was working on one."""
        self._workers.remove(worker)
        worker.connection.close()
        worker.process.join(_JOIN_SECONDS)
        reason = _exit_reason(worker.process.exitcode)
        if worker.is_ready:
            return [] if worker.shard is None else [Outcome(worker.shard, death=reason)]
        self._n_failed_starts += 1
        if self._n_failed_starts == _MAX_STARTS:
            raise JobError(
                _(
                    "{n_starts} worker processes ended while they were loading the bundle: {reason}. Use fewer "
                    "--processes if memory is short.",
                    n_starts=_MAX_STARTS,
                    reason=reason,
                )
            )
        if worker.shard is not None:  # the shard is not to blame
            self.submit(worker.shard)
        return []


def _exit_reason(code: int | None) -> str:
    if code is None:
        return _("the worker process closed its pipe")
    if code >= 0:
        return _("the worker process ended with exit code {code}", code=code)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    if -code == getattr(signal, "SIGKILL", 9):
        return _("the worker process was ended by {signal}, perhaps for lack of memory", signal=name)
    return _("the worker process was ended by {signal}", signal=name)


def _run_worker(connection: Connection, task: WorkerTask) -> None:
    """Answer shards until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command handles it for all
    use_one_thread()
    shards: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        try:
            while True:
                shards.put(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)  # the command has ended; what is unfinished is not needed

    threading.Thread(target=read, daemon=True).start()
    try:
        answer = task.open_answers(task.spec)
    except (ManyheadsError, OSError, MemoryError) as error:
        _send(connection, {"failed": str(error) or type(error).__name__})
        return
    _send(connection, {"ready": True})
    while True:
        _send(connection, answer_shard(task, answer, shard_from(json.loads(shards.get()))))


def _send(connection: Connection, message: dict[str, Any]) -> None:
    try:
        connection.send_bytes(json.dumps(message).encode())
    except OSError:
        os._exit(0)
