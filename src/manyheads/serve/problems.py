"""Errors over HTTP: one clear line as application/problem+json (RFC 9457)."""

from http import HTTPStatus

from starlette.responses import JSONResponse, Response


class ProblemError(Exception):
    """An error with a status, to be answered as a problem."""

    def __init__(self, status: int, detail: str) -> None:
        self.status = status
        super().__init__(detail)


def problem(status: int, detail: str) -> Response:
    """Return a problem+json response."""
    content = {"title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(content, status, media_type="application/problem+json")
