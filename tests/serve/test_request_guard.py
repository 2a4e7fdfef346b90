"""The guard before every handler: requests under way are limited, and health checks are not."""

import asyncio
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from manyheads.serve.service.access import Access, current_client
from manyheads.serve.service.request_guard import RequestGuard
from manyheads.serve.service.service_metrics import ServiceMetrics
from manyheads.serve.service.settings import ServeSettings

from own_thread import in_own_thread


async def _ask(
    guard: RequestGuard,
    path: str,
    host: bytes = b"127.0.0.1",
    origin: bytes = b"",
    *,
    address: str = "127.0.0.1",
    body: bytes = b"{}",
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> tuple[int, dict[bytes, bytes]]:
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(b"host", host), *([(b"origin", origin)] if origin else []), *headers],
        "client": (address, 1),
    }
    sent: list[Message] = []
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

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


async def _fine(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(current_client.get())(scope, receive, send)


@in_own_thread
def test_of_too_many_requests_those_of_the_client_with_the_most_are_refused() -> None:
    async def run() -> None:
        finish, n_begun = asyncio.Event(), 0

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal n_begun
            n_begun += 1
            await finish.wait()
            await _fine(scope, receive, send)

        settings = ServeSettings(max_requests=4)
        guard = RequestGuard(app, settings, Access({}), ServiceMetrics(), lambda: 7, ["/v1/predict"])
        asked = [asyncio.create_task(_ask(guard, "/v1/predict", address="a")) for _ in range(4)]
        async with asyncio.timeout(60):
            while n_begun < 4:
                await asyncio.sleep(0)
        assert (await _ask(guard, "/v1/predict", address="a"))[0] == 429
        asked += [asyncio.create_task(_ask(guard, "/v1/predict", address="b")) for _ in range(2)]
        async with asyncio.timeout(60):
            while n_begun < 6:
                await asyncio.sleep(0)
        assert (await _ask(guard, "/v1/predict", address="b"))[0] == 429  # two of four are its share
        assert (await _ask(guard, "/v1/predict", address="a"))[0] == 429
        asked.append(asyncio.create_task(_ask(guard, "/v1/predict", address="c")))
        async with asyncio.timeout(60):
            while n_begun < 7:
                await asyncio.sleep(0)
        finish.set()
        assert {(await one)[0] for one in asked} == {200}

    asyncio.run(run())


@in_own_thread
def test_a_body_has_at_most_as_many_bytes_as_allowed() -> None:
    async def run() -> None:
        guard = RequestGuard(_fine, ServeSettings(max_body=10), Access({}), ServiceMetrics(), lambda: 1)
        length = ((b"content-length", b"10"),)
        assert (await _ask(guard, "/v1/predict", body=b"x" * 10))[0] == 200
        assert (await _ask(guard, "/v1/predict", body=b"x" * 10, headers=length))[0] == 200
        assert (await _ask(guard, "/v1/predict", body=b"x" * 11))[0] == 413
        assert (await _ask(guard, "/v1/predict", body=b"", headers=((b"content-length", b"11"),)))[0] == 413

    asyncio.run(run())


KEY, OTHER = "k" * 16, "o" * 16
MULTIPART = b'--b\r\nContent-Disposition: form-data; name="api_key"\r\n\r\n%s\r\n--b--\r\n'


@in_own_thread
def test_a_key_may_be_inside_the_body_of_what_clients_of_libretranslate_use() -> None:
    async def run() -> None:
        guard = RequestGuard(_fine, ServeSettings(), Access({KEY: "ours"}, rate=100), ServiceMetrics(), lambda: 1)
        for kind, body in (
            (b"application/json", b'{"api_key": "%s"}'),
            (b"application/x-www-form-urlencoded", b"q=a&api_key=%s"),
            (b"multipart/form-data; boundary=b", MULTIPART),
        ):
            headers = ((b"content-type", kind),)
            for path in ("/translate", "/detect"):
                assert (await _ask(guard, path, body=body % KEY.encode(), headers=headers))[0] == 200
                assert (await _ask(guard, path, body=body % OTHER.encode(), headers=headers))[0] == 401
            assert (await _ask(guard, "/v1/predict", body=body % KEY.encode(), headers=headers))[0] == 401
        assert (await _ask(guard, "/translate", body=b"{}"))[0] == 401
        both = ((b"content-type", b"application/json"), (b"x-api-key", OTHER.encode()))
        assert (await _ask(guard, "/translate", body=b'{"api_key": "%s"}' % KEY.encode(), headers=both))[0] == 401

    asyncio.run(run())


@in_own_thread
def test_handlers_know_whose_request_they_answer() -> None:
    async def run() -> None:
        seen: list[str] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(current_client.get())
            await _fine(scope, receive, send)

        for access in (Access({}), Access({KEY: "ours"})):
            guard = RequestGuard(app, ServeSettings(), access, ServiceMetrics(), lambda: 1)
            await _ask(guard, "/v1/predict", address="1.2.3.4", headers=((b"x-api-key", KEY.encode()),))
        assert seen == ["address 1.2.3.4", "key ours"]

    asyncio.run(run())


@in_own_thread
def test_a_client_with_a_key_is_refused_early_and_one_without_is_told_so() -> None:
    async def run() -> None:
        finish, n_begun = asyncio.Event(), 0

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal n_begun
            n_begun += 1
            await finish.wait()
            await _fine(scope, receive, send)

        access = Access({"h" * 32: "heavy", "l" * 32: "light"}, rate=3.0)
        guard = RequestGuard(app, ServeSettings(max_requests=2), access, ServiceMetrics(), lambda: 7, ["/v1/predict"])
        heavy, light = (((b"x-api-key", letter * 32),) for letter in (b"h", b"l"))
        asked = [asyncio.create_task(_ask(guard, "/v1/predict", headers=heavy)) for _ in range(2)]
        async with asyncio.timeout(60):
            while n_begun < 2:
                await asyncio.sleep(0)
        bearer = ((b"authorization", b"Bearer " + b"h" * 32),)
        for headers in (heavy, bearer, heavy, bearer):  # more than the rate: what is refused early does not count
            status, answered = await _ask(guard, "/v1/predict", headers=headers)
            assert (status, answered[b"retry-after"]) == (429, b"7")
        for headers in ((), ((b"x-api-key", b"x" * 32),), ((b"authorization", b"Basic " + b"h" * 32),)):
            assert (await _ask(guard, "/v1/predict", headers=headers))[0] == 401
        asked.append(asyncio.create_task(_ask(guard, "/v1/predict", headers=light)))
        async with asyncio.timeout(60):
            while n_begun < 3:
                await asyncio.sleep(0)
        finish.set()
        assert [(await one)[0] for one in asked] == [200, 200, 200]
        assert (guard._n_under_way, len(guard._under_way)) == (0, 0)

    asyncio.run(run())
