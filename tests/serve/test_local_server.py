import asyncio
import socket
import threading
import urllib.request
from types import SimpleNamespace

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from manyheads.errors import ServeError
from manyheads.serve import local_server
from manyheads.serve.local_server import address_of, is_loopback, listen, run

from own_thread import in_own_thread


def test_the_next_free_port_is_used() -> None:
    with listen("127.0.0.1", 18_877) as first, listen("127.0.0.1", first.getsockname()[1]) as second:
        assert second.getsockname()[1] > first.getsockname()[1]


def test_no_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "_N_PORTS", 1)
    with listen("127.0.0.1", 18_977) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServeError, match=f"No port from {port} to {port} of 127.0.0.1 is free."):
            listen("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ServeError, match="cannot be used"):
        listen("192.0.2.1", 18_900)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.9.9.9", True), ("0.0.0.0", False), ("x", False)],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [(("127.0.0.1", 8877), "http://127.0.0.1:8877/"), (("::1", 8877, 0, 0), "http://[::1]:8877/")],
)
def test_the_address_of_a_socket(name: tuple[object, ...], expected: str) -> None:
    assert address_of(SimpleNamespace(getsockname=lambda: name)) == expected  # type: ignore[arg-type]


def test_run_answers_when_it_reports_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hello(request: Request) -> Response:
        return PlainTextResponse("hello")

    servers: list[uvicorn.Server] = []
    original = uvicorn.Server.startup

    async def startup(self: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        servers.append(self)
        await original(self, sockets)

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    started = threading.Event()
    listener = listen("127.0.0.1", 18_990)
    app = Starlette(routes=[Route("/", hello)])
    thread = threading.Thread(target=run, args=(app, listener, started.set), daemon=True)
    thread.start()
    assert started.wait(10)
    with urllib.request.urlopen(address_of(listener), timeout=10) as answer:  # a loopback address
        assert answer.read() == b"hello"
        assert "server" not in {name.lower() for name in answer.headers}
    servers[0].should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@in_own_thread
def test_answers_do_not_wait_for_acknowledgements() -> None:
    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def look(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            own: socket.socket = writer.get_extra_info("socket")
            found.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        server = await asyncio.start_server(look, sock=listen("127.0.0.1", 19_077))
        async with server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.close()
            return await found

    assert asyncio.run(accepted()) != 0
