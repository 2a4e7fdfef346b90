"""Errors in the shape that clients of an API expect: LibreTranslate's, OpenAI's, or problem+json for all others.

The path decides, so that errors before a handler runs (a wrong key, a body that is too large, a method that is not
allowed) have the same shape as those of the handler.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from manyheads.messages import Message, _
from manyheads.serve.service.problems import ProblemError, problem

_LIBRETRANSLATE = ("/translate", "/detect", "/languages", "/frontend/settings", "/health")
_OPENAI = ("/v1/completions", "/v1/embeddings", "/v1/models")
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


class Problem(BaseModel):
    """An error as RFC 9457 describes it."""

    type: str
    title: str
    status: int
    detail: str = Field(description="What was wrong, in one line.")


class LibreTranslateError(BaseModel):
    """An error as LibreTranslate writes it."""

    error: str = Field(description="What was wrong, in one line.")


class OpenAiErrorBody(BaseModel):
    """The parts of an error as OpenAI writes it."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAiError(BaseModel):
    """An error as OpenAI writes it."""

    error: OpenAiErrorBody


class OpenAiProblemError(ProblemError):
    """An error that names the parameter at fault, and its code."""

    def __init__(self, status: int, detail: str | Message, param: str | None = None, code: str | None = None) -> None:
        super().__init__(status, detail)
        self.param, self.code = param, code


def error_response(path: str, error: ProblemError) -> Response:
    """Return the response for an error at a path."""
    if path in _LIBRETRANSLATE:
        status = 400 if error.status == 422 else error.status  # LibreTranslate has no 422
        return JSONResponse({"error": error.detail}, status, error.headers)
    if path in _OPENAI or path.startswith("/v1/models/"):
        status = 400 if error.status == 422 else error.status
        return JSONResponse({"error": openai_error(error)}, status, error.headers)
    return problem(error.status, error.detail, error.headers)


def openai_error(error: ProblemError) -> dict[str, Any]:
    """Return an error as OpenAI writes it."""
    is_ours = error.status >= 500
    return {
        "message": error.detail,
        "type": "server_error" if is_ours else _TYPES.get(error.status, "invalid_request_error"),
        "param": getattr(error, "param", None),
        "code": getattr(error, "code", None) or _CODES.get(error.status),
    }


def error_responses(model: type[BaseModel], statuses: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return what the OpenAPI document says about errors."""
    return {status: {"model": model, "description": text} for status, text in statuses.items()}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what the OpenAPI document says about errors as problem+json."""
    content = {"application/problem+json": {"schema": Problem.model_json_schema()}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


class ShapedRoute(APIRoute):
    """A route whose errors have the shape of its path, in whatever application it is."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return the handler."""
        handler = super().get_route_handler()

        async def shaped(request: Request) -> Response:
            try:
                return await handler(request)
            except ProblemError as error:
                return error_response(self.path, error)
            except RequestValidationError:
                return error_response(self.path, ProblemError(400, _("The parameters of the address are not valid.")))

        return shaped
