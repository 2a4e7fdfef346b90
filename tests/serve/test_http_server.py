"""The process that answers HTTP."""

import asyncio
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from manyheads.serve.service.http_server import _AT_ONCE, _JoinedWrites, _protocol, _TimedSelector
from manyheads.serve.service.settings import ServeSettings

from own_thread import in_own_thread

LARGE = b"x" * 20_000_000
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with much more than the sockets hold, or with little, or with nothing after the head."""
    if scope["path"] == "/body":
        message = await receive()
        await Response(message["body"])(scope, receive, send)
        return
    if scope["path"] == "/head":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
        return
    await Response(LARGE if scope["path"] == "/" else b"little")(scope, receive, send)


@contextmanager
def serving(**limits: Any) -> Iterator[uvicorn.Server]:
    protocol = _protocol(ServeSettings(read_timeout=60, **limits))
    config = uvicorn.Config(app, port=0, http=protocol, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    _wait(lambda: server.started)
    try:
        yield server
    finally:
        server.should_exit = server.force_exit = True
        thread.join(60)


def _connect(server: uvicorn.Server, request: bytes = REQUEST) -> socket.socket:
    client = socket.create_connection(server.servers[0].sockets[0].getsockname(), timeout=60)
    client.sendall(request)
    return client


def _wait(is_done: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_does_not_import_torch() -> None:
    script = "import sys, manyheads.serve.service.http_server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_clients_that_do_not_read_their_answers_are_disconnected() -> None:
    with serving(write_timeout=0.2) as server:
        clients = [_connect(server) for _ in range(3)]
        _wait(lambda: len(server.server_state.connections) == 3)
        _wait(lambda: not server.server_state.connections)
        for client in clients:
            client.close()


def test_a_client_that_reads_slowly_gets_all_of_its_answer() -> None:
    with serving(write_timeout=3) as server, _connect(server) as client:
        n_read, end = 0, time.monotonic() + 4  # longer than the time limit
        while time.monotonic() < end:
            n_read += len(client.recv(500_000))
            time.sleep(0.2)
        while n_read < len(LARGE):
            data = client.recv(1_000_000)
            assert data
            n_read += len(data)


def test_connections_are_limited_however_many_requests_each_sends() -> None:
    little = REQUEST.replace(b"/ ", b"/little ", 1)
    with serving(max_connections=3) as server, ExitStack() as stack:
        clients = [stack.enter_context(_connect(server, little * 20)) for _ in range(3)]
        for client in clients:
            content = b""
            while content.count(b"little") < 20:
                content += client.recv(100_000)
            assert content.count(b"200 OK") == 20
        assert b"503 Service Unavailable" in stack.enter_context(_connect(server, little)).recv(1000)
        clients[0].close()
        _wait(lambda: len(server.server_state.connections) <= 2)
        assert b"200 OK" in stack.enter_context(_connect(server, little)).recv(1000)


def test_requests_that_wait_on_a_connection_are_limited() -> None:
    little = REQUEST.replace(b"/ ", b"/little ", 1)
    with serving() as server:
        with _connect(server, little * 33) as client:  # one is answered, and 32 wait
            content = b""
            while content.count(b"little") < 33:
                content += client.recv(100_000)
        with _connect(server, little * 34) as client:
            content = b"-"
            with suppress(ConnectionError):
                while data := client.recv(100_000):
                    content += data
            assert content.count(b"little") < 34


def test_the_longest_pause_is_measured_from_one_look_at_the_sockets_to_the_next() -> None:
    with _TimedSelector() as selector:
        selector.select(0)
        selector.longest_pause()
        time.sleep(0.05)
        selector.select(0)
        assert selector.longest_pause() >= 0.05
        assert selector.longest_pause() == 0


def test_of_many_ready_sockets_each_has_its_turn() -> None:
    pairs = [socket.socketpair() for _ in range(_AT_ONCE * 2 + 5)]
    with _TimedSelector() as selector:
        for ours, theirs in pairs:
            selector.register(ours, selectors.EVENT_READ)
            theirs.send(b"x")
        seen: set[int] = set()
        for _ in range(4):
            events = selector.select(0)
            assert len(events) == _AT_ONCE
            seen |= {key.fd for key, _ in events}
        assert len(seen) == len(pairs)  # although none of them was read
    for pair in pairs:
        for one in pair:
            one.close()


def _read_all(client: socket.socket) -> bytes:
    with client:
        return b"".join(iter(lambda: client.recv(65_536), b""))


def test_answers_are_whole_whatever_was_asked_and_in_order() -> None:
    with serving() as server:
        little = REQUEST.replace(b"GET /", b"GET /little")
        last = little.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        heads_only = last.replace(b"GET", b"HEAD")
        assert _read_all(_connect(server, little * 20 + last)).count(b"\r\n\r\nlittle") == 21
        answer = _read_all(_connect(server, heads_only))
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b"\r\n\r\n")
        asked = (
            b"POST /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        )
        client = _connect(server, asked)
        assert client.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"text")
        assert _read_all(client).endswith(b"\r\n\r\ntext")
        assert b"content-length: 3" in _read_all(_connect(server, REQUEST.replace(b"GET /", b"GET /head")))


@pytest.mark.parametrize(("size", "n_writes"), [(3, 1), (64 * 1024, 1), (64 * 1024 + 1, 2)])
def test_the_head_of_an_answer_is_sent_with_a_body_that_is_not_large(size: int, n_writes: int) -> None:
    written: list[bytes] = []
    transport = SimpleNamespace(write=written.append, close=lambda: None, is_closing=lambda: False)
    cycle = SimpleNamespace(transport=transport, response_started=False)
    joined = _JoinedWrites(cycle)
    joined.write(b"100 Continue")
    cycle.response_started = True
    joined.write(b"head")
    assert written == [b"100 Continue"]
    joined.write(b"x" * size)
    joined.write(b"more")
    assert len(written) == 1 + n_writes + 1
    assert b"".join(written) == b"100 Continue" + b"head" + b"x" * size + b"more"


@in_own_thread
def test_few_requests_begin_in_one_turn_of_the_event_loop() -> None:
    async def main() -> None:
        protocol: Any = object.__new__(_protocol(ServeSettings()))
        protocol.loop, protocol.tasks = asyncio.get_running_loop(), set()
        protocol.config = SimpleNamespace(reset_contextvars=False)
        begun: list[int] = []

        async def run(number: int) -> None:
            begun.append(number)

        for number in range(3 * _AT_ONCE + 1):
            cycle = SimpleNamespace(run_asgi=lambda _app, number=number: run(number))
            protocol._start_asgi_task(cycle, None)
        counts = []
        for _turn in range(6):
            n_before = len(begun)
            await asyncio.sleep(0)
            counts.append(len(begun) - n_before)
        assert max(counts) == _AT_ONCE
        assert begun == list(range(3 * _AT_ONCE + 1))

    asyncio.run(main())
