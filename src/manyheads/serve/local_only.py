"""`LocalOnly`: middleware that lets only this machine's own page use the server.

Besides the rules of `SiteRules`, a request to the API must not come from another site at all, and a POST must be JSON,
which a form of another site cannot send. Bodies are limited before they are read.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyheads.language import using
from manyheads.messages import _
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.site_rules import SECURITY_HEADERS, SiteRules, language_of

MAX_BODY = 256 * 1024  # bytes
_SAFE_SITES = ("", "same-origin", "none")
_HEADERS = (
    *SECURITY_HEADERS,
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class LocalOnly:
    """Checks Host, Origin, content type and size of every request, and adds the security headers."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self.app = app
        self.site = SiteRules(frozenset(hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem, or pass the request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, value in _HEADERS:
                    own.setdefault(name.decode(), value.decode())
            await send(message)

        headers = Headers(scope=scope)
        with using(language_of(headers.get("accept-language", ""))):
            try:
                self._check(scope, headers)
            except ProblemError as error:
                await error.response()(scope, receive, send_with_headers)
            else:
                await self.app(scope, receive, send_with_headers)

    def _check(self, scope: Scope, headers: Headers) -> None:
        self.site.check(headers)
        path = scope["path"].removeprefix(scope.get("root_path", ""))  # of the mounted page
        if headers.get("sec-fetch-site", "") not in _SAFE_SITES and path.startswith("/api"):
            raise ProblemError(403, _("Another site may not use this server."))
        if scope["method"] == "POST":
            _check_body(headers)


def _check_body(headers: Headers) -> None:
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ProblemError(415, _("The body must be JSON: send Content-Type: application/json."))
    length = headers.get("content-length", "")
    if not length.isdigit():
        raise ProblemError(411, _("The request has no Content-Length."))
    if int(length) > MAX_BODY:
        raise ProblemError(
            413,
            _(
                "The body has {n_bytes:,} bytes; at most {max_bytes:,} are allowed.",
                n_bytes=int(length),
                max_bytes=MAX_BODY,
            ),
        )
