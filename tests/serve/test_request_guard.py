"""The guard before every handler: requests under way are limited, and health checks are not."""

import asyncio
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from manyheads.serve.access import Access
from manyheads.serve.request_guard import RequestGuard
from manyheads.serve.service_metrics import ServiceMetrics
from manyheads.serve.settings import ServeSettings

from own_thread import in_own_thread


async def _ask(
    guard: RequestGuard, path: str, host: bytes = b"127.0.0.1", origin: bytes = b""
) -> tuple[int, dict[bytes, bytes]]:
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(b"host", host), (b"content-length", b"2"), *([(b"origin", origin)] if origin else [])],
        "client": ("127.0.0.1", 1),
    }
    sent: list[Message] = []
    messages = iter([{"type": "http.request", "body": b"{}", "more_body": False}])

    async def receive() -> Any:
        message = next(messages, None)
        if message is None:
            await asyncio.Event().wait()
        return message

    async def send(message: Message) -> None:
        sent.append(message)

    await guard(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])


@in_own_thread
def test_more_requests_than_allowed_are_refused_at_once_and_health_checks_are_not() -> None:
    async def run() -> None:
        finish, begun = asyncio.Event(), asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/v1/predict":
                begun.set()
                await finish.wait()
            await PlainTextResponse("fine")(scope, receive, send)

        metrics = ServiceMetrics()
        guard = RequestGuard(app, ServeSettings(max_requests=1), Access({}), metrics, lambda: 7, ["/v1/predict"])
        first = asyncio.create_task(_ask(guard, "/v1/predict"))
        await begun.wait()
        status, headers = await _ask(guard, "/v1/predict")
        assert status == 429
        assert headers[b"retry-after"] == b"7"
        # A page's request, which is not refused early, gets the same answer.
        assert await _ask(guard, "/v1/predict", origin=b"http://127.0.0.1") == (status, headers)
        assert (await _ask(guard, "/ready"))[0] == 200
        finish.set()
        assert (await first)[0] == 200
        assert (await _ask(guard, "/v1/predict"))[0] == 200
        assert b'manyheads_requests_total{path="/v1/predict",status="429"} 2.0' in metrics.text()

    asyncio.run(run())


@in_own_thread
def test_the_address_that_is_served_is_answered_for_and_no_other() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("fine")(scope, receive, send)

    async def run() -> None:
        guard = RequestGuard(app, ServeSettings(host="2001:db8::1"), Access({}), ServiceMetrics(), lambda: 1)
        assert (await _ask(guard, "/ready", b"[2001:db8::1]:8876"))[0] == 200
        assert (await _ask(guard, "/ready", b"[::1]"))[0] == 200
        assert (await _ask(guard, "/ready", b"[2001:db8::2]:8876"))[0] == 421

    asyncio.run(run())
