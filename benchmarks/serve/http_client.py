"""A small HTTP/1.1 client for load generation: one asyncio protocol per connection, no header objects, no copies.

It sends prepared bytes and parses just what a load generator needs: the status, the length and the body. It refuses to
hide anything: a connection that ends before the whole response has arrived raises `LostError`.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class LostError(Exception):
    """The connection ended before the whole response arrived."""


@dataclass(frozen=True)
class Response:
    """A response: its status, its body, and whether the server closes the connection."""

    status: int
    body: bytes
    closes: bool = False
    head: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


class ResponseParser:
    """Collects bytes until a response is complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Response | None:
        """Add bytes; return the response if it is complete."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._buffer[:end]).lower()
        status = int(head[9:12])
        closes = b"\r\nconnection: close" in head
        start = end + 4
        if b"\r\ntransfer-encoding: chunked" in head:
            found = _dechunk(self._buffer, start)
            if found is None:
                return None
            body, used = found
        else:
            length = _content_length(head, status)
            if len(self._buffer) < start + length:
                return None
            body, used = bytes(self._buffer[start : start + length]), start + length
        del self._buffer[:used]
        return Response(status, body, closes, head)


def _content_length(head: bytes, status: int) -> int:
    if status in (204, 304) or status < 200:
        return 0
    name = b"\r\ncontent-length:"
    place = head.find(name)
    if place < 0:
        return 0
    return int(head[place + len(name) :].split(b"\r\n", 1)[0])


def _dechunk(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    parts = []
    while True:
        end = buffer.find(b"\r\n", start)
        if end < 0:
            return None
        size = int(bytes(buffer[start:end]).split(b";")[0], 16)
        start = end + 2
        if len(buffer) < start + size + 2:
            return None
        parts.append(bytes(buffer[start : start + size]))
        start += size + 2
        if not size:
            return b"".join(parts), start


class Connection(asyncio.Protocol):
    """A connection that has at most one request under way."""

    def __init__(self) -> None:
        self._parser = ResponseParser()
        self._answer: asyncio.Future[Response] | None = None
        self.transport: asyncio.Transport | None = None
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.is_open = transport, True

    def data_received(self, data: bytes) -> None:
        response = self._parser.feed(data)
        if response is None:
            return
        if response.closes:
            self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(LostError(str(exc or "closed")))

    async def ask(self, request: bytes) -> Response:
        """Send the bytes of a request and return the response."""
        if not self.is_open:
            raise LostError("closed before the request was sent")
        assert self.transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer

    def close(self) -> None:
        self.is_open = False
        if self.transport is not None:
            self.transport.close()


async def connect(port: int, host: str = "127.0.0.1") -> Connection:
    """Open a connection."""
    _, connection = await asyncio.get_running_loop().create_connection(Connection, host, port)
    return connection


def make_request(
    port: int, path: str, payload: Mapping[str, Any] | None = None, *, closes: bool = False, method: str = ""
) -> bytes:
    """Return the bytes of a request: POST with JSON if there is a payload, else GET."""
    body = b"" if payload is None else json.dumps(payload, ensure_ascii=False).encode()
    method = method or ("GET" if payload is None else "POST")
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    if payload is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if closes:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def fetch(port: int, path: str, payload: Mapping[str, Any] | None = None, timeout: float = 60.0) -> Response:
    """Send one request on a connection of its own."""
    async with asyncio.timeout(timeout):
        connection = await connect(port)
        try:
            return await connection.ask(make_request(port, path, payload, closes=True))
        finally:
            connection.close()


def fetch_now(port: int, path: str, payload: Mapping[str, Any] | None = None, timeout: float = 60.0) -> Response:
    """`fetch` for code that is not asynchronous."""
    return asyncio.run(fetch(port, path, payload, timeout))


def wait_until_ready(port: int, path: str, seconds: float, is_alive: Any = lambda: True) -> float:
    """Return the seconds until a GET answers 200; raise TimeoutError, or RuntimeError if the server has ended."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if not is_alive():
            raise RuntimeError("the server ended while it started")
        try:
            if fetch_now(port, path, timeout=5).status == 200:
                return time.monotonic() - start
        except (OSError, LostError, TimeoutError):
            pass
        time.sleep(0.05)
    raise TimeoutError(f"the server was not ready within {seconds:g} s")
