"""`WorkerPool`: worker processes, the queue before them, and what happens when one of them dies.

Workers are forked from a server process that has imported torch once (multiprocessing's "forkserver"), so a new one is
ready in about a second. The texts of a worker that dies are given to another one, twice at most. Messages to a worker
are buffered, so that one that does not read delays nobody but those who wait for its answers.
"""

import asyncio
import json
import logging
import multiprocessing
import os
import socket
import struct
import sys
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from manyheads.errors import BundleError
from manyheads.language import Language, current, using
from manyheads.messages import Message, _
from manyheads.serve.service.batch_queue import BatchQueue, QueuedText
from manyheads.serve.service.bundle_description import BundleDescription
from manyheads.serve.service.problems import ProblemError

logger = logging.getLogger(__name__)
T = TypeVar("T")
_MAX_ATTEMPTS = 3  # a text during which this many workers died is refused
_MAX_PAUSE = 5.0  # seconds before a worker that dies again and again is started again
_GRACE = 2.0  # seconds after the deadline of a batch before its worker is ended
_START_TIMEOUT = 300.0  # seconds until a worker must have loaded its bundles
_SECONDS_PER_TOKEN = 1e-4  # of a bundle that has not answered yet; a small model needs about as much
_NEWEST = 0.1  # weight of the latest batch in the estimate
_SIZE = struct.Struct("!i")  # before each message, as in multiprocessing's connections


def _context() -> Any:
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    context.set_forkserver_preload(["manyheads.serve.service.worker"])
    return context


def _run_worker(
    connection: socket.socket, folders: Mapping[str, str], share_examples: bool, language: Language
) -> None:
    """Run in the new process, which has torch; the process of the service does not import it."""
    from manyheads.serve.service.worker import run_worker

    run_worker(connection, folders, share_examples=share_examples, language=language)


@dataclass(eq=False)
class _Batch:
    """Texts that a worker answers together."""

    number: int
    texts: list[QueuedText]
    started: float


@dataclass(eq=False)
class _Worker:
    """A worker process as the service sees it."""

    number: int
    process: BaseProcess
    writer: asyncio.StreamWriter
    is_ready: bool = False
    batches: deque[_Batch] = field(default_factory=deque)  # the one that it is answering, and perhaps the next
    long: _Batch | None = None  # a long text, which it answers beside them
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
        self._given = dict(folders)  # which may be symbolic links
        # What is loaded: a worker that replaces another loads the same, even if a link points elsewhere by then.
        self.folders = {name: os.path.realpath(folder) for name, folder in folders.items()}
        self.n_workers, self.queue, self.on_batch = n_workers, queue, on_batch
        self.share_examples = share_examples
        self.bundles: dict[str, BundleDescription] = {}
        self.n_restarts = 0
        self.n_failures = 0  # starts that failed since the last that succeeded
        self._workers: list[_Worker] = []
        self._ids = count(1)
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[Any]] = set()  # references, so that they are not garbage-collected
        self._is_closing = False
        self._seconds_per_token: dict[str, float] = {}  # by bundle; of short batches, so that it is high for long texts
        self._stream_clients: Counter[str] = Counter()
        self._reloading = asyncio.Lock()
        self._waiting_reloads: dict[str, asyncio.Task[BundleDescription]] = {}
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
        await asyncio.gather(*(self._start_worker() for _number in range(self.n_workers)))

    async def close(self) -> None:
        """End the workers; whatever is still waiting is refused. A second call does nothing."""
        self._is_closing = True
        self.queue.refuse_all(ProblemError(503, Message("The server is shutting down. Try again later.")))
        for task in self._tasks:
            task.cancel()
        for worker in self._workers:
            worker.is_ready = False
            worker.writer.transport.abort()  # `close` would wait until everything is sent
        for worker in self._workers:
            await asyncio.to_thread(worker.process.join, 2.0)
            if worker.process.is_alive():
                worker.process.kill()
                await asyncio.to_thread(worker.process.join)
        self._workers.clear()

    def submit(self, texts: Sequence[QueuedText]) -> None:
        """Queue the texts of a request; raise a ProblemError with status 429 if the queue is full."""
        if self._is_closing:
            raise ProblemError(503, _("The server is shutting down. Try again later."))
        for queued in texts:
            queued.seconds = queued.cost * self._seconds_per_token.get(queued.bundle, _SECONDS_PER_TOKEN)
        self.queue.add(list(texts), asyncio.get_running_loop().time())
        self._dispatch()

    async def stream(
        self, key: str, text: str, deadline: float, client: str = ""
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of one stream; `key` is that of its request. Raise TimeoutError after the deadline."""
        ready = [worker for worker in self._workers if worker.is_ready]
        if not ready or self._is_closing:
            raise ProblemError(503, _("No worker is ready. Try again later."))
        worker = min(ready, key=lambda worker: (len(worker.streams), len(worker.batches)))
        number, events = next(self._ids), asyncio.Queue[dict[str, Any]]()
        worker.streams[number] = events
        self._stream_clients[client] += 1
        try:
            self._send(worker, {"id": number, "stream": key, "texts": [text]})
            while True:
                async with asyncio.timeout_at(deadline):  # not around a `yield`: it would cancel whoever reads this
                    event = await events.get()
                if "error" in event:
                    raise ProblemError(*event["error"])
                yield event
                if "done" in event:
                    return
        finally:
            self._stream_clients -= Counter([client])
            if worker.streams.pop(number, None) is not None and worker in self._workers:
                self._send(worker, {"cancel": number})

    @property
    def n_streams(self) -> int:
        """The number of streams under way."""
        return sum(len(worker.streams) for worker in self._workers)

    def n_streams_of(self, client: str) -> int:
        """The number of streams of one client under way."""
        return self._stream_clients[client]

    async def reload(self, name: str) -> BundleDescription:
        """Load a bundle again in every worker; if the first cannot, the old one goes on serving.

        It goes on when the client that asked for it disconnects: otherwise workers would have different versions.
        Everybody who asks before it begins gets the same.
        """
        if name not in self._waiting_reloads:
            task = self._waiting_reloads[name] = self._run(self._reload(name))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # marks it as seen
        return await asyncio.shield(self._waiting_reloads[name])

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _reload(self, name: str) -> BundleDescription:
        async with self._reloading:
            del self._waiting_reloads[name]  # whoever asks from now on may mean newer files
            reloaded = None
            folder = os.path.realpath(self._given[name])
            for worker in [worker for worker in self._workers if worker.is_ready]:
                number = next(self._ids)
                future = worker.calls[number] = asyncio.get_running_loop().create_future()
                self._send(worker, {"id": number, "load": name, "path": folder})
                event = await future
                if worker not in self._workers:  # it has died; the one that replaces it loads the folder
                    continue
                if "error" not in event:
                    reloaded = self.bundles[name] = BundleDescription.from_table(event["loaded"])
                    self.folders[name] = folder
                elif reloaded is None:
                    raise ProblemError(
                        422,
                        Message("{error} The version that was loaded before is still served.", error=event["error"][1]),
                    )
                else:  # the folder was damaged meanwhile; this worker must not go on with the old version
                    worker.process.kill()
            if reloaded is None:
                raise ProblemError(503, Message("No worker is ready. Try again later."))
            return reloaded

    async def _start_worker(self) -> None:
        """Start one worker and wait until it has loaded the bundles."""
        context = _context()
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        given = (theirs, self.folders, self.share_examples, current())
        process = context.Process(target=_run_worker, args=given, name=f"manyheads-worker-{number}")
        process.daemon = True
        try:
            await asyncio.to_thread(process.start)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        worker = _Worker(number, process, writer)
        self._workers.append(worker)
        started: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        worker.calls[0] = started
        self._run(self._read(worker, reader))
        try:
            event = await asyncio.wait_for(started, _START_TIMEOUT)
        except TimeoutError:
            process.kill()
            raise
        if "ready" not in event:
            failure = event.get("failed") or event.get("error") or [500, _("A worker ended while it started.")]
            raise BundleError(str(failure[1]))
        loaded = {table["name"]: BundleDescription.from_table(table) for table in event["ready"]}
        is_new = any(self.bundles[name].version != new.version for name, new in loaded.items() if name in self.bundles)
        self.bundles |= loaded
        worker.is_ready = True
        self.n_failures = 0
        self.on_change()
        self._dispatch()
        if is_new:  # the folder has changed since the others loaded it
            for name in self.folders:
                await self.reload(name)

    async def _read(self, worker: _Worker, reader: asyncio.StreamReader) -> None:
        """Read the messages of a worker until it ends."""
        try:
            while True:
                (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
                self._receive(worker, json.loads(await reader.readexactly(size)))
        except (EOFError, OSError):
            self._lose(worker)

    def _receive(self, worker: _Worker, message: dict[str, Any]) -> None:
        number = message.get("id", 0)
        if "answers" in message:
            self._finish(worker, number, message["answers"])
        elif "stopped" in message:
            if worker.long is not None and worker.long.number == number:
                batch, worker.long = worker.long, None
                self._retry(batch.texts)
                self._dispatch()
        elif number in worker.calls:
            future = worker.calls.pop(number)
            if not future.done():
                future.set_result(message)
        elif number in worker.streams:
            del message["id"]
            worker.streams[number].put_nowait(message)
            if "delta" not in message:
                del worker.streams[number]

    def _finish(self, worker: _Worker, number: int, answers: Sequence[dict[str, Any]]) -> None:
        now = asyncio.get_running_loop().time()
        if worker.long is not None and worker.long.number == number:
            batch, worker.long = worker.long, None
        elif worker.batches and worker.batches[0].number == number:
            batch = worker.batches.popleft()
            if worker.batches:
                worker.batches[0].started = now
        else:  # a long text that was cancelled when its answer was under way
            return
        self._measure(batch, now - batch.started)
        self._dispatch()
        for queued, answer in zip(batch.texts, answers, strict=True):
            if queued.answer.done():
                continue
            if "ok" in answer:
                queued.answer.set_result(answer["ok"])
            else:
                queued.answer.set_exception(ProblemError(*answer["error"]))

    def _measure(self, batch: _Batch, seconds: float) -> None:
        """Learn from the time of a batch how fast its bundle is."""
        self.on_batch(len(batch.texts), seconds)
        bundle, now = batch.texts[0].bundle, seconds / max(1.0, sum(queued.cost for queued in batch.texts))
        before = self._seconds_per_token.get(bundle, now)
        self._seconds_per_token[bundle] = before + _NEWEST * (now - before)

    def _dispatch(self) -> None:
        """Give batches to idle workers, and a long text to each worker without one.

        If many texts of one client wait, busy workers get the next batch, too, and then never idle. With several
        clients, whoever comes next would wait for it.
        """
        ready = sorted((worker for worker in self._workers if worker.is_ready), key=lambda worker: len(worker.streams))
        for worker in ready:
            if not worker.batches:
                self._give(worker)
            if worker.long is None:
                self._give_long(worker)
        if self.queue.n_clients == 1:
            for worker in ready:
                if len(worker.batches) == 1 and self.queue.n_texts >= self.queue.batch_texts * len(ready):
                    self._give(worker)

    def _give(self, worker: _Worker) -> None:
        """Send a worker the next batch, if there is one."""
        loop = asyncio.get_running_loop()
        texts = self.queue.take(loop.time())
        if not texts:
            return
        batch = _Batch(next(self._ids), texts, loop.time())
        worker.batches.append(batch)
        message = {"id": batch.number, "predict": texts[0].key, "texts": [queued.text for queued in texts]}
        self._send(worker, message)
        loop.call_at(max(queued.deadline for queued in texts) + _GRACE, self._stop_useless, worker, batch.number)

    def _give_long(self, worker: _Worker) -> None:
        """Send a worker the next long text, if there is one; it is cancelled when nobody waits for it."""
        now = asyncio.get_running_loop().time()
        texts = self.queue.take(now, is_long=True)
        if not texts:
            return
        batch = worker.long = _Batch(next(self._ids), texts, now)
        (queued,) = texts
        seconds = queued.deadline - now + _GRACE
        self._send(worker, {"id": batch.number, "predict": queued.key, "texts": [queued.text], "seconds": seconds})
        queued.answer.add_done_callback(lambda _answer: self._cancel_long(worker, batch))

    def _cancel_long(self, worker: _Worker, batch: _Batch) -> None:
        if worker.long is batch and worker in self._workers:
            worker.long = None
            self._send(worker, {"cancel": batch.number})
            self._dispatch()

    def _stop_useless(self, worker: _Worker, number: int) -> None:
        """End a worker that is still busy with a batch that nobody waits for any more; another one is started.

        It is called for every batch, long after it is done: the number does not keep the texts in memory until then.
        """
        late = [batch for batch in worker.batches if batch.number == number] if worker in self._workers else []
        if late and all(queued.answer.done() for queued in late[0].texts):
            logger.warning("Worker %d needs too long for a batch that nobody waits for.", worker.number)
            worker.process.kill()

    def _send(self, worker: _Worker, message: Mapping[str, Any]) -> None:
        """Send a message; it is buffered here if the worker does not read, and lost if the worker has ended."""
        content = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
        worker.writer.write(_SIZE.pack(len(content)) + content)

    def _lose(self, worker: _Worker) -> None:
        """Take back what a dead worker was doing, and start another one."""
        worker.is_ready = False
        worker.writer.transport.abort()  # `close` would wait until everything is sent
        self._workers.remove(worker)
        ended: dict[str, Any] = {"error": [503, Message("A worker stopped. Try again.")]}
        for future in worker.calls.values():
            if not future.done():
                future.set_result(ended)
        for events in worker.streams.values():
            events.put_nowait(ended)
        if worker.long is not None:
            worker.batches.append(worker.long)
        begun, *others = [batch.texts for batch in worker.batches] or [[]]
        self._retry([queued for texts in others for queued in texts], n_attempts=0)
        self._retry(begun)
        if self._is_closing or not self.bundles:
            return
        self.n_restarts += 1
        logger.warning("Worker %d stopped; another one is started.", worker.number)
        self.on_change()
        self._run(self._replace())
        self._dispatch()

    def _retry(self, texts: Sequence[QueuedText], n_attempts: int = 1) -> None:
        """Queue texts again whose worker has died, unless too many workers did."""
        retried = []
        for queued in texts:
            queued.n_attempts += n_attempts
            if queued.answer.done():
                continue
            if queued.n_attempts >= _MAX_ATTEMPTS:
                queued.answer.set_exception(
                    ProblemError(500, Message("Three workers stopped while they had this text."))
                )
            else:
                retried.append(queued)
        self.queue.add(retried, asyncio.get_running_loop().time(), is_retry=True)

    async def _replace(self) -> None:
        """Start a worker, with pauses if that fails again and again."""
        while not self._is_closing:
            if self.n_failures:
                await asyncio.sleep(min(_MAX_PAUSE, 0.1 * 2 ** min(self.n_failures, 6)))
            self.n_failures += 1
            try:
                with using("en"):  # an error is logged
                    await self._start_worker()
                return
            except (BundleError, TimeoutError, ProblemError) as error:  # it ended: `_lose` starts another one
                logger.error("A worker could not load the bundles: %s", error)
                return
            except (OSError, EOFError, RuntimeError) as error:  # there is no process
                logger.error("A worker could not be started: %s", error)
