"""Run the service: uvicorn with time limits for clients, and an end that answers every request under way."""

import asyncio
import gc
import logging
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from manyheads.serve.local_server import ReportingServer
from manyheads.serve.service.access import Access
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service import Service
from manyheads.serve.service.service_app import make_service_app
from manyheads.serve.service.settings import ServeSettings

logger = logging.getLogger(__name__)
_MAX_HEADERS = 64 * 1024  # bytes of the headers of one request
_MAX_PIPELINED = 32  # requests of a connection that wait for the answer to another one; each takes 2 KB of memory
_MIN_READ = 64 * 1024  # bytes of an answer that a client must read in `write_timeout`, unless fewer are left
_MAX_JOINED = 64 * 1024  # bytes of a body that are copied to send them with its head
_tasks: set[asyncio.Task[None]] = set()  # references, so that tasks are not garbage-collected
_AT_ONCE = 16  # connections that are accepted, sockets that are served, requests that begin in a turn of the event loop
_WAITING = 1024  # connections that wait to be accepted
_ACCEPT_PAUSE = 0.05  # seconds in which connections that wait at the listening socket are accepted before it is closed


def run_service(
    folders: Mapping[str, str],
    settings: ServeSettings,
    access: Access,
    listener: socket.socket,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serve bundles until SIGINT or SIGTERM, then answer the requests under way.

    `on_start` is called when the server answers. A bundle that cannot be loaded raises BundleError.
    """
    service = Service(folders, settings)
    app = make_service_app(service, access)
    selector = _TimedSelector()
    service.metrics.watch_pauses(selector.longest_pause)
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(_serve(service, app, listener, settings, on_start))


async def _serve(
    service: Service,
    app: ASGIApp,
    listener: socket.socket,
    settings: ServeSettings,
    on_start: Callable[[], None],
) -> None:
    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _reload_all, service)
    try:
        await service.start()
        gc.freeze()  # the garbage collector need not visit modules again and again, which takes 0.1 s
        await _run_server(app, listener, settings, on_start)
    finally:  # also after a second Ctrl-C, when uvicorn skips the end of the application
        await service.close()


async def _run_server(
    app: ASGIApp, listener: socket.socket, settings: ServeSettings, on_start: Callable[[], None]
) -> None:
    config = uvicorn.Config(
        app,
        http=_protocol(settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),  # anybody can send them
        forwarded_allow_ips=list(settings.proxies),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(settings.drain),
        lifespan="on",
        backlog=_AT_ONCE,  # asyncio accepts as many connections before it does anything else
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # "Invalid HTTP request" is the client's fault
    server = _Server(config, on_start)
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them once more after a graceful end
        signal.signal(number, lambda *_: None)
    await server.serve(sockets=[listener])


def _reload_all(service: Service) -> None:
    """Load every bundle again, in the background; a damaged one is logged, and its old version serves on."""

    async def reload() -> None:
        for name in list(service.bundles):
            try:
                bundle = await service.reload(name)
                logger.info("Reloaded %s: version %s", name, bundle.version)
            except ProblemError as error:
                logger.error("%s could not be loaded again: %s", name, error)

    task = asyncio.get_running_loop().create_task(reload())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


class _TimedSelector(selectors.DefaultSelector):
    """Measures how long the event loop is busy between two looks at its sockets, while it answers nobody else.

    Of hundreds of sockets that are ready, some come at a time, in turn: timers and workers do not wait for all of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._awake, self._longest, self._first = time.monotonic(), 0.0, 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._longest = max(self._longest, time.monotonic() - self._awake)
        events = super().select(timeout)
        self._awake = time.monotonic()
        if len(events) <= _AT_ONCE:
            return events
        self._first = (self._first + _AT_ONCE) % len(events)
        return (events[self._first :] + events[: self._first])[:_AT_ONCE]

    def longest_pause(self) -> float:
        """Return the longest time in seconds since the last call."""
        longest, self._longest = self._longest, 0.0
        return longest


def _protocol(settings: ServeSettings) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with limits of connections, and of the times to send headers and to read answers.

    Some requests begin at a time: the event loop runs whatever is ready before it looks at its sockets again, and a
    client may have thousands of requests in what it has sent.
    """
    waiting: deque[Callable[[], None]] = deque()

    def start_some(loop: asyncio.AbstractEventLoop) -> None:
        for _number in range(min(_AT_ONCE, len(waiting))):
            waiting.popleft()()
        if waiting:
            loop.call_soon(start_some, loop)

    class TimedProtocol(HttpToolsProtocol):
        _header_timer: asyncio.TimerHandle | None = None
        _write_timer: asyncio.TimerHandle | None = None
        _n_bytes = 0  # since the headers of the latest request began
        _n_header = 0  # bytes of the names and values among them

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > settings.max_connections:
                # 503 to this one. uvicorn's own limit also counts tasks, of which a client that pipelines has several.
                self.limit_concurrency = 0
            transport.set_write_buffer_limits(high=0)  # `pause_writing` is called if anything could not be sent
            self._wait_for_headers()

        def data_received(self, data: bytes) -> None:
            if self._is_between_requests():
                if self._header_timer is None:
                    self._wait_for_headers()
                self._n_bytes += len(data)
                if self._n_bytes > _MAX_HEADERS + 65_536:  # asyncio reads at most 65,536 bytes at once
                    self.transport.close()
                    return
            super().data_received(data)
            if not self._is_between_requests():
                self._stop_timer()

        def on_message_begin(self) -> None:
            self._n_header = 0
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            # Also counted here, since a pipelined request may come while another one is answered.
            self._n_header += len(name) + len(value)
            if self._n_header > _MAX_HEADERS:
                self.transport.abort()
                return
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            if len(self.pipeline) >= _MAX_PIPELINED:
                self.transport.abort()
                return
            super().on_headers_complete()
            cycle: Any = self.cycle  # that of an earlier request if this one is to become a web socket
            if cycle is not None and cycle.transport is self.transport and self.scope["method"] != "HEAD":
                cycle.transport = _JoinedWrites(cycle)

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            waiting.append(partial(super()._start_asgi_task, cycle, app))
            if len(waiting) == 1:
                self.loop.call_soon(start_some, self.loop)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            if self._write_timer is not None:
                self._write_timer.cancel()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._wait_for_reader()

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._write_timer is not None:
                self._write_timer.cancel()

        def _wait_for_reader(self) -> None:
            n_unread = self.transport.get_write_buffer_size()
            self._write_timer = self.loop.call_later(settings.write_timeout, self._close_unread, n_unread)

        def _close_unread(self, n_before: int) -> None:
            if self.transport.get_write_buffer_size() > n_before - _MIN_READ:
                self.transport.abort()  # `close` would wait until everything is sent
            else:
                self._wait_for_reader()

        def _is_between_requests(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait_for_headers(self) -> None:
            self._header_timer = self.loop.call_later(settings.read_timeout, self._close_slow)

        def _stop_timer(self) -> None:
            self._n_bytes = 0
            if self._header_timer is not None:
                self._header_timer.cancel()
                self._header_timer = None

        def _close_slow(self) -> None:
            self._header_timer = None
            if self._is_between_requests() and not self.transport.is_closing():
                self.transport.close()

    return TimedProtocol


class _JoinedWrites:
    """The transport of an answer, which sends its head with the beginning of its body: one system call, not two.

    The answer to HEAD, which has no body, must not have it.
    """

    def __init__(self, cycle: Any) -> None:
        self._cycle, self._transport, self._head = cycle, cycle.transport, b""
        self._has_begun = False

    def __getattr__(self, name: str) -> Any:  # whatever else another version of uvicorn asks of a transport
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._cycle.response_started and not self._has_begun:  # before, it is "100 Continue"
            self._head, self._has_begun = data, True
            return
        if len(data) <= _MAX_JOINED:
            self._transport.write(self._head + data)
        else:
            self._transport.write(self._head)
            self._transport.write(data)
        self._head = b""

    def close(self) -> None:
        self._transport.write(self._head)
        self._transport.close()


class _Server(ReportingServer):
    """A server that accepts what has arrived before it stops listening."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; more connections may wait than are accepted at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_WAITING)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept waiting connections and read what they have sent, then stop listening and finish."""
        await asyncio.sleep(_ACCEPT_PAUSE)
        await super().shutdown(sockets)
