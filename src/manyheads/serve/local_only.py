"""`LocalOnly`: middleware that lets only this machine's own page use the server.

A page of another site could resolve its name to 127.0.0.1 (DNS rebinding) or post to this server. The Host header must
therefore name this server, a request that changes or computes something must come from the server's own origin, and a
POST must be JSON, which a form of another site cannot send. Bodies are limited before they are read.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyheads.serve.service.problems import problem

MAX_BODY = 256 * 1024  # bytes
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_SAFE_SITES = ("", "same-origin", "none")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class LocalOnly:
    """Checks Host, Origin, content type and size of every request, and adds the security headers."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self.app = app
        self.hosts = {*LOOPBACK, *hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem, or pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(Request(scope))
        await (refusal or self.app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        host = without_port(headers.get("host", ""))
        if host not in self.hosts:
            return problem(421, f"This server does not answer for the host {host!r}. Open it as http://127.0.0.1.")
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))  # of the mounted page
        if headers.get("sec-fetch-site", "") not in _SAFE_SITES and path.startswith("/api"):
            return problem(403, "Another site may not use this server.")
        origin = headers.get("origin")
        if origin is not None and is_foreign(origin, headers):
            return problem(403, f"The origin {origin!r} may not use this server.")
        if request.method == "POST":
            return _body_refusal(headers)
        return None


def is_foreign(origin: str, headers: Headers) -> bool:
    """Whether an Origin header, `scheme://host:port` or anything a client sends, is not that of this server."""
    return origin.partition("://")[2] != headers.get("host")


def _body_refusal(headers: Headers) -> Response | None:
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return problem(415, "The body must be JSON: send Content-Type: application/json.")
    length = headers.get("content-length", "")
    if not length.isdigit():
        return problem(411, "The request has no Content-Length.")
    if int(length) > MAX_BODY:
        return problem(413, f"The body has {int(length):,} bytes; at most {MAX_BODY:,} are allowed.")
    return None


def without_port(host: str) -> str:
    """Return the host of a Host header."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host
