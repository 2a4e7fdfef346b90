"""`WorkerPool`: worker processes, the queue before them, and what happens when one of them dies.

Workers are forked from a server process that has imported torch once (multiprocessing's "forkserver"), so a new one is
ready in about a second. The texts of a worker that dies are given to another one, twice at most.
"""

import asyncio
import json
import logging
import multiprocessing
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from manyheads.errors import BundleError
from manyheads.serve.batch_queue import BatchQueue, QueuedText, QueueFullError
from manyheads.serve.problems import ProblemError
from manyheads.serve.work import ServedBundle

logger = logging.getLogger(__name__)
_MAX_ATTEMPTS = 3  # a text during which this many workers died is refused
_MAX_PAUSE = 5.0  # seconds before a worker that dies again and again is started again
_GRACE = 2.0  # seconds after the deadline of a batch before its worker is ended
_START_TIMEOUT = 300.0  # seconds until a worker must have loaded its bundles
_RECENT = 50  # batches that the speed is estimated from


def _context() -> Any:
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    context.set_forkserver_preload(["manyheads.serve.worker"])
    return context


def _run_worker(connection: Connection, folders: Mapping[str, str], share_examples: bool) -> None:
    """Run in the new process, which has torch; the process of the service does not import it."""
    from manyheads.serve.worker import run_worker

    run_worker(connection, folders, share_examples=share_examples)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Texts that a worker answers together."""

    number: int
    texts: list[QueuedText]


@dataclass(eq=False)
class _Worker:
    """A worker process as the service sees it."""

    number: int
    process: BaseProcess
    connection: Connection
    is_ready: bool = False
    batches: deque[_Batch] = field(default_factory=deque)  # the one that it is answering, and perhaps the next
    started: float = 0.0  # when it began the first
    streams: dict[int, "asyncio.Queue[dict[str, Any]]"] = field(default_factory=dict)
    calls: dict[int, "asyncio.Future[dict[str, Any]]"] = field(default_factory=dict)


class WorkerPool:
    """Answers texts with a number of worker processes."""

    def __init__(
        self,
        folders: Mapping[str, str],
        n_workers: int,
        queue: BatchQueue,
        on_batch: Callable[[int, float], None],
        *,
        share_examples: bool = False,
    ) -> None:
        self.folders, self.n_workers, self.queue, self.on_batch = dict(folders), n_workers, queue, on_batch
        self.share_examples = share_examples
        self.bundles: dict[str, ServedBundle] = {}
        self.n_restarts = 0
        self.n_failures = 0  # starts that failed since the last that succeeded
        self._workers: list[_Worker] = []
        self._ids = count(1)
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[Any]] = set()  # references, so that they are not garbage-collected
        self._is_closing = False
        self._recent: deque[tuple[int, float]] = deque(maxlen=_RECENT)
        self._seconds_per_text = 0.1  # of one worker
        self._reloading = asyncio.Lock()
        self.on_change: Callable[[], None] = lambda: None

    @property
    def n_ready(self) -> int:
        """The number of workers that can answer."""
        return sum(worker.is_ready for worker in self._workers)

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    async def start(self) -> None:
        """Start the workers; raise BundleError if a bundle cannot be loaded."""
        await asyncio.gather(*(self._start_worker() for _ in range(self.n_workers)))

    async def close(self) -> None:
        """End the workers; whatever is still waiting is refused. A second call does nothing."""
        self._is_closing = True
        self.queue.refuse_all(ProblemError(503, "The server is shutting down. Try again later."))
        for task in self._tasks:
            task.cancel()
        for worker in self._workers:
            self._forget(worker)
            worker.connection.close()
        for worker in self._workers:
            await asyncio.to_thread(worker.process.join, 2.0)
            if worker.process.is_alive():
                worker.process.kill()
                await asyncio.to_thread(worker.process.join)
        self._workers.clear()

    def submit(self, texts: Sequence[QueuedText]) -> None:
        """Queue the texts of a request; raise a ProblemError with status 429 if the queue is full."""
        if self._is_closing:
            raise ProblemError(503, "The server is shutting down. Try again later.")
        try:
            self.queue.add(list(texts))
        except QueueFullError as error:
            wait = self.seconds_for(error.n_waiting)
            raise ProblemError(
                429,
                f"The queue is full: {error.n_waiting:,} texts are waiting. Try again in {wait} s.",
                headers={"Retry-After": str(wait)},
            ) from None
        self._dispatch()

    def seconds_for(self, n_texts: int) -> int:
        """About how long the workers need for this many texts, in whole seconds."""
        return max(1, round(n_texts * self._seconds_per_text / max(1, self.n_ready)))

    async def stream(self, how: str, text: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of one stream."""
        ready = [worker for worker in self._workers if worker.is_ready]
        if not ready or self._is_closing:
            raise ProblemError(503, "No worker is ready. Try again later.")
        worker = min(ready, key=lambda one: (len(one.streams), len(one.batches)))
        number, events = next(self._ids), asyncio.Queue[dict[str, Any]]()
        worker.streams[number] = events
        try:
            self._send(worker, {"id": number, "stream": how, "texts": [text]})
            while True:
                event = await events.get()
                if "error" in event:
                    raise ProblemError(*event["error"])
                yield event
                if "done" in event:
                    return
        finally:
            if worker.streams.pop(number, None) is not None and worker in self._workers:
                self._send(worker, {"cancel": number})

    @property
    def n_streams(self) -> int:
        """The number of streams under way."""
        return sum(len(worker.streams) for worker in self._workers)

    async def reload(self, name: str) -> ServedBundle:
        """Load a bundle again in every worker; if the first cannot, the old one goes on serving.

        It goes on when the client that asked for it disconnects: otherwise workers would have different versions.
        """
        task = asyncio.get_running_loop().create_task(self._reload(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # marks it as seen
        return await asyncio.shield(task)

    async def _reload(self, name: str) -> ServedBundle:
        async with self._reloading:
            reloaded = None
            for worker in [worker for worker in self._workers if worker.is_ready]:
                number = next(self._ids)
                future = worker.calls[number] = asyncio.get_running_loop().create_future()
                self._send(worker, {"id": number, "load": name, "path": self.folders[name]})
                event = await future
                if worker not in self._workers:  # it has died; the one that replaces it loads the folder
                    continue
                if "error" not in event:
                    reloaded = self.bundles[name] = _served(event["loaded"])
                elif reloaded is None:
                    raise ProblemError(422, f"{event['error'][1]} The version that was loaded before is still served.")
                else:  # the folder was damaged meanwhile; this worker must not go on with the old version
                    worker.process.kill()
            if reloaded is None:
                raise ProblemError(503, "No worker is ready. Try again later.")
            return reloaded

    async def _start_worker(self) -> None:
        """Start one worker and wait until it has loaded the bundles."""
        context = _context()
        ours, theirs = context.Pipe()
        number = next(self._numbers)
        given = (theirs, self.folders, self.share_examples)
        process = context.Process(target=_run_worker, args=given, name=f"manyheads-worker-{number}")
        process.daemon = True
        await asyncio.to_thread(process.start)
        theirs.close()
        worker = _Worker(number, process, ours)
        self._workers.append(worker)
        loop = asyncio.get_running_loop()
        started: asyncio.Future[dict[str, Any]] = loop.create_future()
        worker.calls[0] = started
        loop.add_reader(ours.fileno(), self._receive, worker)
        try:
            event = await asyncio.wait_for(started, _START_TIMEOUT)
        except TimeoutError:
            process.kill()
            raise
        if "ready" not in event:
            raise BundleError(event.get("failed", event.get("error", [500, "A worker ended while it started."]))[1])
        loaded = {one["name"]: _served(one) for one in event["ready"]}
        is_new = any(self.bundles[name].version != one.version for name, one in loaded.items() if name in self.bundles)
        self.bundles |= loaded
        worker.is_ready = True
        self.n_failures = 0
        self.on_change()
        self._dispatch()
        if is_new:  # the folder has changed since the others loaded it
            for name in self.folders:
                await self.reload(name)

    def _receive(self, worker: _Worker) -> None:
        """Read one message of a worker, or notice that it has ended."""
        try:
            message = json.loads(worker.connection.recv_bytes())
        except (EOFError, OSError):
            self._lose(worker)
            return
        number = message.get("id", 0)
        if "answers" in message:
            self._finish(worker, message["answers"])
        elif number in worker.calls:
            future = worker.calls.pop(number)
            if not future.done():
                future.set_result(message)
        elif number in worker.streams:
            del message["id"]
            worker.streams[number].put_nowait(message)
            if "delta" not in message:
                del worker.streams[number]

    def _finish(self, worker: _Worker, answers: Sequence[dict[str, Any]]) -> None:
        batch, now = worker.batches.popleft().texts, asyncio.get_running_loop().time()
        seconds, worker.started = now - worker.started, now
        self._recent.append((len(batch), seconds))
        n_done, total = (sum(column) for column in zip(*self._recent, strict=True))
        self._seconds_per_text = total / max(1, n_done)
        self.on_batch(len(batch), seconds)
        self._dispatch()
        for one, answer in zip(batch, answers, strict=True):
            if one.answer.done():
                continue
            if "ok" in answer:
                one.answer.set_result(answer["ok"])
            else:
                one.answer.set_exception(ProblemError(*answer["error"]))

    def _dispatch(self) -> None:
        """Give batches to idle workers; if many texts wait, also the next batch to busy ones, which then never idle."""
        ready = sorted((worker for worker in self._workers if worker.is_ready), key=lambda worker: len(worker.streams))
        idle = [worker for worker in ready if not worker.batches]
        for position, worker in enumerate(idle):
            self._give(worker, len(idle) - position)
        for worker in ready:
            if len(worker.batches) == 1 and self.queue.n_texts >= self.queue.batch_texts * len(ready):
                self._give(worker, 1)

    def _give(self, worker: _Worker, n_idle: int) -> None:
        """Send a worker the next batch, if there is one."""
        loop = asyncio.get_running_loop()
        texts = self.queue.take(loop.time(), n_idle)
        if not texts:
            return
        batch = _Batch(next(self._ids), texts)
        if not worker.batches:
            worker.started = loop.time()
        worker.batches.append(batch)
        message = {"id": batch.number, "predict": texts[0].how, "texts": [one.text for one in texts]}
        self._send(worker, message)
        loop.call_at(max(one.deadline for one in texts) + _GRACE, self._stop_useless, worker, batch.number)

    def _stop_useless(self, worker: _Worker, number: int) -> None:
        """End a worker that is still busy with a batch that nobody waits for any more; another one is started.

        It is called for every batch, long after it is done: the number does not keep the texts in memory until then.
        """
        late = [batch for batch in worker.batches if batch.number == number] if worker in self._workers else []
        if late and all(one.answer.done() for one in late[0].texts):
            logger.warning("Worker %d needs too long for a batch that nobody waits for.", worker.number)
            worker.process.kill()

    def _send(self, worker: _Worker, message: Mapping[str, Any]) -> None:
        try:
            worker.connection.send_bytes(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        except OSError:
            logger.debug("worker %d does not read: its end is noticed when its pipe is read", worker.number)

    def _forget(self, worker: _Worker) -> None:
        asyncio.get_running_loop().remove_reader(worker.connection.fileno())
        worker.is_ready = False

    def _lose(self, worker: _Worker) -> None:
        """Take back what a dead worker was doing, and start another one."""
        self._forget(worker)
        worker.connection.close()
        self._workers.remove(worker)
        ended: dict[str, Any] = {"error": [503, "A worker stopped. Try again."]}
        for future in worker.calls.values():
            if not future.done():
                future.set_result(ended)
        for events in worker.streams.values():
            events.put_nowait(ended)
        retried = []
        for position, batch in enumerate(worker.batches):
            for one in batch.texts:
                one.n_attempts += position == 0
                if one.answer.done():
                    continue
                if one.n_attempts >= _MAX_ATTEMPTS:
                    one.answer.set_exception(ProblemError(500, "Three workers stopped while they had this text."))
                else:
                    retried.append(one)
        self.queue.add(retried, is_retry=True)
        if self._is_closing or not self.bundles:
            return
        self.n_restarts += 1
        logger.warning("Worker %d stopped; another one is started.", worker.number)
        self.on_change()
        task = asyncio.get_running_loop().create_task(self._replace())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._dispatch()

    async def _replace(self) -> None:
        """Start a worker, with pauses if that fails again and again."""
        while not self._is_closing:
            if self.n_failures:
                await asyncio.sleep(min(_MAX_PAUSE, 0.1 * 2 ** min(self.n_failures, 6)))
            self.n_failures += 1
            try:
                await self._start_worker()
                return
            except (BundleError, TimeoutError, ProblemError) as error:  # it ended: `_lose` starts another one
                logger.error("A worker could not load the bundles: %s", error)
                return
            except (OSError, EOFError, RuntimeError) as error:  # there is no process
                logger.error("A worker could not be started: %s", error)


def _served(table: Mapping[str, Any]) -> ServedBundle:
    fields: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in table.items()}
    return ServedBundle(**fields)
