"""`make_service_app`: the HTTP service with its playground, a FastAPI application behind `RequestGuard`."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from manyheads.messages import Message, _
from manyheads.serve.service.access import Access
from manyheads.serve.service.completions_api import completions_router
from manyheads.serve.service.embeddings_api import embeddings_router
from manyheads.serve.service.error_shapes import error_response, problem_responses
from manyheads.serve.service.lens_pages import LensPages
from manyheads.serve.service.libretranslate_api import libretranslate_router
from manyheads.serve.service.offline_docs import docs_router
from manyheads.serve.service.predict_api import predict_router
from manyheads.serve.service.problems import ProblemError, problem
from manyheads.serve.service.request_bodies import BodyRoute
from manyheads.serve.service.request_guard import RequestGuard
from manyheads.serve.service.service import Service
from manyheads.serve.static_files import file_names, media_type, read_page, read_static


def page_router(service: Service) -> APIRouter:
    """Return the routes / and /static."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def playground() -> Response:
        return HTMLResponse(read_page("playground"))

    @router.get("/static/{folder}/{name}")
    async def static_file(folder: str, name: str) -> Response:
        path = f"{folder}/{name}"
        if path not in file_names("playground", "shared"):
            raise ProblemError(404, _("There is no file {name!r} here.", name=path[:80]))
        return Response(read_static(path), media_type=media_type(path))

    return router


Router = Callable[[Service], APIRouter]
ROUTERS: Sequence[Router] = (
    predict_router,
    libretranslate_router,
    completions_router,
    embeddings_router,
    docs_router,
    page_router,
)
_NOT_PARSED = Message(
    "The body is not valid: send JSON in UTF-8, not too deeply nested, or a form where forms are accepted."
)
_MAX_SHOWN = 300  # characters of what was wrong with a request


def make_service_app(service: Service, access: Access) -> RequestGuard:
    """Return the application behind its guard; it ends the workers of the service when it ends.

    The guard is outside of FastAPI, not one of its middlewares, so that a request is refused at little cost.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    app = FastAPI(
        title="manyheads",
        description="Predictions of Transformer bundles.",
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.needs_key = access.needs_key
    routers = [make(service) for make in (*ROUTERS, _health_router)]
    for router in routers:
        app.include_router(router)
    app.include_router(_openapi_router(app))
    app.mount("/lens", LensPages(service, is_enabled=not access.needs_key))
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(Exception, _bug)

    def wait() -> int:
        return service.pool.queue.retry_after

    service.charge = access.charge
    paths = {route.path for router in routers for route in router.routes if isinstance(route, Route)}
    direct = [route for router in routers for route in router.routes if isinstance(route, BodyRoute)]
    return RequestGuard(DirectRoutes(app, direct), service.settings, access, service.metrics, wait, paths)


class DirectRoutes:
    """Answers requests of `BodyRoute`s, and passes on all others to the application that has these routes.

    Its middlewares and its search for the route take a quarter of the HTTP process' time for a short text.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BodyRoute]) -> None:
        self.app = app
        self.routes = {(route.path, method): route for route in routes for method in route.methods or ()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a fault has the same answer as one that the application answers."""
        route = self.routes.get((scope["path"], scope["method"])) if scope["type"] == "http" else None
        if route is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = route
        request = Request(scope, receive)
        try:
            response = await route.answer(request)
        except ProblemError as error:
            response = await _problem(request, error)
        except RequestValidationError as error:
            response = await _validation_problem(request, error)
        except HTTPException as error:
            response = await _http_problem(request, error)
        except Exception as error:
            await (await _bug(request, error))(scope, receive, send)
            raise  # to the log of the server
        await response(scope, receive, send)


def _health_router(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/live")
    async def live() -> Response:
        """Whether the process answers."""
        return JSONResponse({"status": "live"})

    @router.get("/ready", responses=problem_responses(503))
    async def ready() -> Response:
        """Whether every worker has loaded every bundle."""
        state = {"workers": service.settings.workers, "workers_ready": service.pool.n_ready}
        if service.is_ready:
            return JSONResponse({"status": "ready", **state})
        n_ready, n_workers = state["workers_ready"], state["workers"]
        return problem(503, _("{n_ready} of {n_workers} workers are ready.", n_ready=n_ready, n_workers=n_workers))

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _openapi_router(app: FastAPI) -> APIRouter:
    """The document that describes the API. FastAPI would write it again for every request, which takes milliseconds."""
    router = APIRouter(include_in_schema=False)

    @cache
    def document() -> bytes:
        return json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    @router.get("/openapi.json")
    async def openapi() -> Response:
        return Response(document(), media_type="application/json")

    return router


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return error_response(request.url.path, error)


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # raised by FastAPI for a body that cannot be parsed
        return error_response(request.url.path, ProblemError(400, _NOT_PARSED))
    detail = f"{request.method} {request.url.path[:80]}: {error.detail}."
    return error_response(request.url.path, ProblemError(error.status_code, detail, error.headers))


async def _validation_problem(request: Request, error: Exception) -> Response:
    """One line about everything that is wrong with a request, without the values, which may be text of users."""
    assert isinstance(error, RequestValidationError)
    faults: list[dict[str, Any]] = list(error.errors())
    if not request.headers.get("content-type", "").startswith("application/json") and request.method == "POST":
        return problem(415, _("The body must be JSON. Send the header Content-Type: application/json."))
    if any(fault["type"] == "json_invalid" for fault in faults):
        return problem(400, str(_NOT_PARSED))
    lines = dict.fromkeys(f"{_place(fault['loc'])}: {fault['msg']}" for fault in faults)
    return problem(422, "; ".join(lines)[:_MAX_SHOWN])


def _place(location: Sequence[Any]) -> str:
    return ".".join(str(part) for part in location if part != "body") or "body"


async def _bug(request: Request, error: Exception) -> Response:
    name = type(error).__name__
    detail = _("This is a bug in manyheads: {error}. The log of the server shows where.", error=name)
    return error_response(request.url.path, ProblemError(500, detail))
