"""Errors over HTTP: one clear line as application/problem+json (RFC 9457)."""

from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response

from manyheads.messages import Message


class ProblemError(Exception):
    """An error with a status, to be answered as a problem.

    A `Message` is translated when it is answered: of an error that somebody else's request caused, the language is not
    known before.
    """

    def __init__(self, status: int, detail: str | Message, headers: Mapping[str, str] | None = None) -> None:
        self.status, self._detail, self.headers = status, detail, dict(headers or {})
        super().__init__(status, detail)

    def __str__(self) -> str:
        return self.detail

    @property
    def detail(self) -> str:
        """What is wrong, in the language in use."""
        return str(self._detail)

    def response(self) -> Response:
        """Return the error as a response."""
        return problem(self.status, self.detail, self.headers)


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem+json response; half of a surrogate pair, which a value from JSON may have, is replaced."""
    detail = detail.encode("utf-8", "replace").decode()
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(content, status, dict(headers or {}), "application/problem+json")
