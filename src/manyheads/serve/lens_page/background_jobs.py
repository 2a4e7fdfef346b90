"""`BackgroundJobs`: long computations of the lens in one thread, with progress, while the page stays responsive."""

import logging
import queue
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from manyheads.errors import ManyheadsError
from manyheads.language import LANGUAGES, Language
from manyheads.messages import Message

logger = logging.getLogger(__name__)
_SECONDS_TO_STOP = 3.0

Work = Callable[[Callable[[float], None]], Any]  # takes a function that receives the share done


@dataclass
class Job:
    """One computation: its state, how much of it is done, and its result."""

    work: Work
    state: str = "running"  # running, ready or failed
    done: float = 0.0
    result: Any = None
    message: dict[Language, str] | None = None


class BackgroundJobs:
    """Runs jobs one after the other; each is known by a key and runs once."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._queue: queue.Queue[Job | None] = queue.Queue()  # None: stop
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lens-jobs", daemon=True)
        self._thread.start()

    def submit(self, key: str, work: Work) -> Job:
        """Return the job of this key; the first call starts it."""
        with self._lock:
            if key not in self._jobs:
                self._jobs[key] = Job(work)
                self._queue.put(self._jobs[key])
            return self._jobs[key]

    def stop(self) -> None:
        """Stop at the next report of progress; wait for it, but not long: the process is about to end."""
        self._stopped.set()
        self._queue.put(None)
        self._thread.join(_SECONDS_TO_STOP)

    def _run(self) -> None:
        while True:
            job = self._queue.get()
            if job is None:
                return
            try:
                job.result = job.work(lambda done, job=job: self._report(job, done))  # type: ignore[misc]
                job.done, job.state = 1.0, "ready"
            except _StoppedError:
                return
            except ManyheadsError as error:
                job.message, job.state = dict.fromkeys(LANGUAGES, str(error)), "failed"
            except Exception as error:  # a bug must not leave the page waiting for ever
                job.message = _bug(error)
                job.state = "failed"

    def _report(self, job: Job, done: float) -> None:
        if self._stopped.is_set():
            raise _StoppedError
        job.done = done


def _bug(error: Exception) -> dict[Language, str]:
    """Log where an error was raised, but show its type only: the message may contain a path, or somebody's text."""
    name = type(error).__name__
    logger.error("A bug in manyheads: %s at\n%s", name, "".join(traceback.format_tb(error.__traceback__)))
    return Message("This is a bug in manyheads: {error}. The terminal shows where.", error=name).by_language()


class _StoppedError(Exception):
    """The server is shutting down."""
