"""`BodyRoute`: a route whose endpoint takes one JSON body, validated without FastAPI's dependencies."""

import inspect
from collections.abc import Callable
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from manyheads.serve.service.request_bodies import read_json


class BodyRoute(APIRoute):
    """A route of an endpoint with one parameter, a pydantic model of the body.

    FastAPI documents it like any other. Its resolution of dependencies, of which there are none here, takes a fifth of
    the HTTP process' time for a short text.
    """

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Return the handler."""
        endpoint = self.endpoint
        (parameter,) = inspect.signature(endpoint).parameters.values()
        model: type[BaseModel] = parameter.annotation

        async def handle(request: Request) -> Any:
            return await endpoint(_validated(model, await request.body(), request.headers.get("content-type", "")))

        return handle


def _validated(model: type[BaseModel], body: bytes, content_type: str) -> BaseModel:
    """Return the body as a model; raise what FastAPI would raise."""
    kind = content_type.partition(";")[0].strip().lower()
    is_json = kind.startswith("application/") and (kind == "application/json" or kind.endswith("+json"))
    if not body or not is_json:
        raise RequestValidationError([{"type": "missing", "loc": ("body",), "msg": "Field required"}])
    try:
        return model.model_validate(read_json(body))
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_url=False)]
        raise RequestValidationError(faults) from None
    except ValueError:  # not UTF-8, a number with too many digits, too deeply nested, half a surrogate pair
        raise HTTPException(400) from None
