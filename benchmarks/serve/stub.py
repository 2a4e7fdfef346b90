"""A server that does nothing, to measure the load generator and to test the scripts of this folder.

    python benchmarks/serve/stub.py --trivial                    one fixed answer
    python benchmarks/serve/stub.py --seconds 0.01 --queue 8     answers after a while, 429 if too many wait

It prints its port, and on SIGTERM it answers what is under way and ends.
"""

import argparse
import asyncio
import json
import signal
from typing import Any


def answer(status: int, content: Any) -> bytes:
    body = json.dumps(content).encode()
    reason = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests"}[status]
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Trivial(asyncio.Protocol):
    """Answers every packet with the same bytes."""

    content = answer(200, {"predictions": [{"answer": ""}]})

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.content)


class Stub:
    """Answers /v1/predict with the texts in upper case after a while, one request at a time."""

    def __init__(self, seconds: float, queue: int) -> None:
        self.seconds, self.queue, self.n_waiting = seconds, queue, 0
        self.turn = asyncio.Lock()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0
                )
                body = await reader.readexactly(length)
                writer.write(await self.respond(head.split(b" ")[1].decode(), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def respond(self, path: str, body: bytes) -> bytes:
        if path in ("/live", "/ready"):
            return answer(200, {"status": "ready"})
        if path != "/v1/predict":
            return answer(404, {"status": 404})
        try:
            texts = json.loads(body)["texts"]
        except (ValueError, KeyError, TypeError):
            return answer(400, {"status": 400})
        if self.n_waiting >= self.queue:
            return answer(429, {"status": 429})
        self.n_waiting += 1
        try:
            async with self.turn:
                await asyncio.sleep(self.seconds)
        finally:
            self.n_waiting -= 1
        return answer(200, {"predictions": [{"answer": text.upper()} for text in texts]})


async def run(given: argparse.Namespace) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    if given.trivial:
        server = await loop.create_server(Trivial, "127.0.0.1", given.port)
    else:
        server = await asyncio.start_server(Stub(given.seconds, given.queue).serve, "127.0.0.1", given.port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stopped.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--trivial", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.01)
    parser.add_argument("--queue", type=int, default=64)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
