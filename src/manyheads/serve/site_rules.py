"""`SiteRules`: which sites may use a server of ours, and the security headers of its answers.

A page of another site could resolve its name to the address of this server (DNS rebinding) or post a form to it. The
Host header must therefore name this server, and the Origin header, if there is one, must be that of the server or of a
site that is allowed. Both applications, the lens page and the service, have these rules.
"""

from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import Headers

from manyheads.language import Language
from manyheads.messages import Message, _
from manyheads.serve.service.problems import ProblemError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
_MAX_SHOWN = 80  # characters of a header in a message
_HOST_ADVICE = Message("Open it as http://127.0.0.1.")
_ORIGIN_ADVICE = Message("Open its own page instead.")


@dataclass(frozen=True)
class SiteRules:
    """The hosts that a server answers for, and the sites whose pages may use it."""

    hosts: Collection[str]  # besides the loopback interface; "*" is any
    origins: Collection[str] = ()  # besides the server's own
    host_advice: Message = _HOST_ADVICE  # may contain {host}
    origin_advice: Message = _ORIGIN_ADVICE

    def check(self, headers: Headers) -> None:
        """Raise a ProblemError if a request comes from a site that may not use the server."""
        host = without_port(headers.get("host", ""))
        if host not in LOOPBACK and host not in self.hosts and "*" not in self.hosts:
            shown = host[:_MAX_SHOWN]
            advice = str(self.host_advice).replace("{host}", shown)
            text = _("This server does not answer for the host {host!r}. {advice}", host=shown, advice=advice)
            raise ProblemError(421, text)
        origin = headers.get("origin")
        # An Origin header is `scheme://host:port`, or anything that a client sends.
        if origin is None or origin in self.origins or origin.partition("://")[2] == headers.get("host"):
            return
        shown = origin[:_MAX_SHOWN]
        text = _("Pages of {origin!r} may not use this server. {advice}", origin=shown, advice=self.origin_advice)
        raise ProblemError(403, text)


def without_port(host: str) -> str:
    """Return the host of a Host header."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def language_of(accepted: str) -> Language:
    """Return the language of errors for an Accept-Language header: Chinese if it comes first, otherwise English."""
    return "zh" if accepted.lstrip().lower().startswith("zh") else "en"
