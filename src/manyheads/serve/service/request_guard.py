"""`RequestGuard`: middleware before every handler: who may ask, how much, how slowly, and for how long.

In this order: the Host and Origin headers (a page of another site could otherwise use a server on this machine, by DNS
rebinding or by posting a form), the API key and the rate, the size of the body and the time in which it must arrive.
The handler runs until the client disconnects; then it is cancelled, and what it waits for is not computed.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyheads.language import Language, using
from manyheads.messages import Message as Text
from manyheads.messages import _
from manyheads.serve.service.access import Access, current_client
from manyheads.serve.service.error_shapes import error_response
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.request_bodies import multipart_field, read_form, read_json
from manyheads.serve.service.service_metrics import ServiceMetrics
from manyheads.serve.service.settings import ServeSettings
from manyheads.serve.site_rules import SECURITY_HEADERS, SiteRules, language_of

access_log = logging.getLogger("manyheads.access")
_OPEN = ("/live", "/ready", "/", "/docs", "/openapi.json", "/health", "/frontend/settings", "/languages")  # need no key
_OPEN_FOLDERS = ("/static/", "/docs/", "/lens")  # a server that needs keys has no lens page
_MAX_ADDRESS = 64  # characters
_MAX_REFUSALS = 1000  # that are kept ready
_KEY_IN_BODY = ("/translate", "/detect")  # as clients of LibreTranslate send it


class RequestGuard:
    """Lets allowed requests through, and logs and counts all of them."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeSettings,
        access: Access,
        metrics: ServiceMetrics,
        wait: Callable[[], int],
        paths: Collection[str] = (),
    ) -> None:
        self.paths = frozenset(paths)  # that may be logged
        self.app, self.settings, self.access, self.metrics = app, settings, access, metrics
        self.wait = wait  # seconds after which a refused client should try again
        self._refusals: dict[tuple[str, int, Language], tuple[Message, Message]] = {}
        self._under_way: Counter[str] = Counter()  # POST requests by client that are not answered yet
        self._n_under_way = 0  # of all clients
        host = f"[{settings.host}]" if ":" in settings.host else settings.host  # as the Host header has IPv6 addresses
        self.site = SiteRules(
            frozenset((*settings.allowed_hosts, host)),
            frozenset(settings.cors_origins),
            Text("Start it with --allow-host {host}."),
            Text("Allow them with --cors."),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem, or pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self._n_under_way >= self.settings.max_requests and await self._refuse_early(scope, send):
            return
        headers = Headers(scope=scope)
        answer = _Answer(send, self._cors(headers))
        with using(language_of(headers.get("accept-language", ""))):
            try:
                self.site.check(headers)
                if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                    await _preflight(answer)
                else:
                    await self._run(scope, headers, receive, answer)
            except ProblemError as error:
                if not answer.status:
                    await error_response(scope["path"], error)(scope, receive, answer)
            finally:
                self._record(scope, answer)

    async def _run(self, scope: Scope, headers: Headers, receive: Receive, answer: "_Answer") -> None:
        """Check the key, read the body, and run the handler until the client disconnects."""
        path, key = scope["path"], _key(headers)
        is_open = path in _OPEN or (path.startswith(_OPEN_FOLDERS) and "/api/" not in path)
        key_is_inside = path in _KEY_IN_BODY and key is None and self.access.needs_key
        is_counted = not is_open and scope["method"] == "POST"
        if not is_open and not key_is_inside:
            self._admit(scope, key, is_counted=is_counted)  # before the body is read and parsed: refusing is cheap
        body = await _read(receive, headers, self.settings)
        if key_is_inside:
            self._admit(scope, _key_inside(body, headers), is_counted=is_counted)
        if not is_counted:
            await _run_while_connected(self.app, scope, body, receive, answer, self.metrics.request_cancelled)
            return
        client = current_client.get()
        self._under_way[client] += 1
        self._n_under_way += 1
        try:
            await _run_while_connected(self.app, scope, body, receive, answer, self.metrics.request_cancelled)
        finally:
            self._n_under_way -= 1
            self._under_way[client] -= 1
            if not self._under_way[client]:
                del self._under_way[client]

    def _is_full(self, client: str) -> bool:
        """Whether too many requests are under way, and this client has its share of them or more.

        Those that are still being read do not count.
        """
        if self._n_under_way < self.settings.max_requests:
            return False
        return self._under_way[client] * len(self._under_way) >= self.settings.max_requests

    async def _refuse_early(self, scope: Scope, send: Send) -> bool:
        """Refuse a request before anything else about it is checked, if it is one of those that count.

        Under overload nearly all requests end here, and each has to cost as little as possible.
        """
        started, path = time.monotonic(), scope["path"]
        if scope["method"] != "POST" or path not in self.paths or path in _OPEN:  # it does not count
            return False
        headers = Headers(scope=scope)
        name = self.access.find(_key(headers)) if self.access.needs_key else ""
        if name is None or "origin" in headers:  # a key in the body, or none; a page needs more headers
            return False
        if not self._is_full(_client(scope, name)):
            return False
        scope.setdefault("state", {})["key_name"] = name
        language = language_of(headers.get("accept-language", ""))
        head, body = self._refusal(path, self.wait(), language)
        await send({**head, "headers": [*head["headers"]]})
        await send(body)
        self._log(scope, path, 429, time.monotonic() - started)
        return True

    def _refusal(self, path: str, wait: int, language: Language) -> tuple[Message, Message]:
        """The messages of a refusal; they are the same for many requests."""
        key = path, wait, language
        if key not in self._refusals:
            if len(self._refusals) >= _MAX_REFUSALS:
                self._refusals.clear()
            with using(language):
                response = error_response(path, _overload(self.settings.max_requests, wait))
            headers = [*response.raw_headers, *SECURITY_HEADERS]
            head: Message = {"type": "http.response.start", "status": response.status_code, "headers": headers}
            self._refusals[key] = head, {"type": "http.response.body", "body": response.body}
        return self._refusals[key]

    def _admit(self, scope: Scope, key: str | None, *, is_counted: bool) -> None:
        """Find out who asks; raise a ProblemError if there are too many requests, of all or of this client."""
        name = self.access.name_of(key)
        scope.setdefault("state", {})["key_name"] = name
        client = _client(scope, name)
        current_client.set(client)
        if is_counted and self._is_full(client):
            raise _overload(self.settings.max_requests, self.wait())
        self.access.count(client)

    def _cors(self, headers: Headers) -> dict[str, str]:
        origin = headers.get("origin")
        if origin is None or origin not in self.settings.cors_origins:
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin", "Access-Control-Expose-Headers": "Retry-After"}

    def _known_path(self, path: str) -> str:
        """The path of a request that was refused early, or that belongs to the lens; others may contain anything."""
        if path.startswith("/lens/"):
            return "/lens"
        return path if path in self.paths else "other"

    def _record(self, scope: Scope, answer: "_Answer") -> None:
        seconds = time.monotonic() - answer.started
        route = getattr(scope.get("route"), "path", None) or self._known_path(str(scope["path"]))
        self._log(scope, route, answer.status, seconds)

    def _log(self, scope: Scope, route: str, status: int, seconds: float) -> None:
        self.metrics.request_done(route, status, seconds)
        if not access_log.isEnabledFor(logging.INFO):
            return
        entry = {
            "time": round(time.time(), 3),
            "method": scope["method"],
            "path": route,
            "status": status or 499,
            "seconds": round(seconds, 4),
            "key": scope.get("state", {}).get("key_name", ""),
        }
        access_log.info(json.dumps(entry))


class _Answer:
    """The `send` of a request: adds headers, and remembers the status."""

    def __init__(self, send: Send, cors: dict[str, str]) -> None:
        self._send, self._cors = send, cors
        self.status = 0  # of the response; 0 if none was sent
        self.is_complete = False
        self.started = time.monotonic()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = {name.lower() for name, _value in message["headers"]}
            added = (header for header in SECURITY_HEADERS if header[0] not in given)
            message["headers"] = [*message["headers"], *added]
            for name, value in self._cors.items():
                MutableHeaders(scope=message).setdefault(name, value)
        elif not message.get("more_body", False):
            self.is_complete = True
        await self._send(message)


async def _preflight(answer: _Answer) -> None:
    """Say what a page of an allowed site may send."""
    headers = [
        (b"access-control-allow-methods", b"GET, POST"),
        (b"access-control-allow-headers", b"authorization, content-type, x-api-key"),
        (b"access-control-max-age", b"600"),
    ]
    await answer({"type": "http.response.start", "status": 204, "headers": headers})
    await answer({"type": "http.response.body", "body": b""})


def _overload(n_requests: int, wait: int) -> ProblemError:
    return ProblemError(
        429,
        _(
            "{n_requests:,} requests are under way, as many as this server allows. Try again in {wait} s.",
            n_requests=n_requests,
            wait=wait,
        ),
        {"Retry-After": str(wait)},
    )


def _client(scope: Scope, key_name: str) -> str:
    """Who asks: the name of a key, or else an address."""
    if key_name:
        return f"key {key_name}"
    client = scope.get("client")
    return f"address {str(client[0])[:_MAX_ADDRESS]}" if client else ""  # a proxy may pass on what somebody made up


def _key(headers: Headers) -> str | None:
    scheme, _space, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    return headers.get("x-api-key")


def _key_inside(body: bytes, headers: Headers) -> str | None:
    """The `api_key` of a JSON object or a form; a body that is neither is refused later, by its handler."""
    kind = headers.get("content-type", "")
    try:
        if kind.startswith("multipart/form-data"):
            return multipart_field(body, kind, "api_key")
        if kind.startswith("application/x-www-form-urlencoded"):
            return next((value for name, value in read_form(body) if name == "api_key"), None)
        content = read_json(body)
    except (ValueError, ProblemError):
        return None
    key = content.get("api_key") if isinstance(content, dict) else None
    return key if isinstance(key, str) else None


async def _read(receive: Receive, headers: Headers, settings: ServeSettings) -> bytes:
    """Read the whole body, within the limits of size and time."""
    too_large = ProblemError(
        413, _("The body is too large; at most {max_body:,} bytes are allowed.", max_body=settings.max_body)
    )
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > settings.max_body:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(settings.read_timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ProblemError(400, _("The client disconnected before the body was complete."))
                body += message.get("body", b"")
                if len(body) > settings.max_body:
                    raise too_large
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise ProblemError(
            408,
            _("The body did not arrive within {read_timeout:g} s.", read_timeout=settings.read_timeout),
            {"Connection": "close"},
        ) from None


async def _run_while_connected(
    app: ASGIApp, scope: Scope, body: bytes, receive: Receive, answer: _Answer, on_cancel: Callable[[], None]
) -> None:
    """Run a handler with a body that has been read; cancel it when the client disconnects."""
    disconnected = asyncio.Event()
    task, is_read = asyncio.current_task(), False
    assert task is not None

    async def replay() -> Message:
        nonlocal is_read
        if not is_read:
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}
        await disconnected.wait()
        return {"type": "http.disconnect"}

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        disconnected.set()
        if not answer.is_complete:  # uvicorn also says so after the whole answer
            on_cancel()
            task.cancel()

    watcher = asyncio.ensure_future(watch())
    try:
        await app(scope, replay, answer)
    except asyncio.CancelledError:
        if not disconnected.is_set():
            raise
        task.uncancel()
    finally:
        watcher.cancel()
