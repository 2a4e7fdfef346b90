"""`make_app`: the lens page and its API as a Starlette application."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, get_args

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from manyheads.errors import ManyheadsError
from manyheads.language import LANGUAGES, Language
from manyheads.lens.heads import Head
from manyheads.lens.pictures.head_pictures import MASS, View
from manyheads.lens.traces.display_units import UnitName
from manyheads.lens.traces.unit_maps import MapKind
from manyheads.messages import _
from manyheads.serve.lens_page.head_jobs import HeadJobs
from manyheads.serve.lens_page.lens_file import page_of
from manyheads.serve.lens_page.lens_session import LensSession, TraceRequest
from manyheads.serve.local_only import LocalOnly
from manyheads.serve.service.problems import ProblemError, problem
from manyheads.serve.static_files import file_names, media_type, read_page, read_static

_PICTURES = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}
_MAX_HEADS = 10_000  # in one request

Handler = Callable[[Request, dict[str, Any]], Response]


def make_app(session: LensSession, hosts: Iterable[str] = (), language: Language | None = None) -> Starlette:
    """Return the application; `hosts` are names it answers for besides those of the loopback interface.

    The page opens in `language`, or in the browser's.
    """
    api = _Api(session, language)
    routes = [
        Route("/", _handled(api.start)),
        Route("/api/model", _handled(api.model)),
        Route("/api/trace", _handled(api.trace), methods=["POST"]),
        Route("/api/ablate", _handled(api.ablate), methods=["POST"]),
        Route("/api/importance", _handled(api.importance), methods=["POST"]),
        Route("/api/contrast", _handled(api.contrast), methods=["POST"]),
        Route("/api/heads", _handled(api.survey)),
        Route("/api/heads/{attention}/{number:int}/examples", _handled(api.examples)),
        Route("/api/heads/{attention}/{number:int}/effect", _handled(api.effect)),
        Route("/api/timeline", _handled(api.timeline)),
        Route("/api/traces/{id}/heads/{attention}/{number:int}/{kind}", _handled(api.map)),
        Route("/api/traces/{id}/walk/{attention}/{number:int}/{query:int}", _handled(api.walk)),
        Route("/api/traces/{id}/picture/{attention}/{number:int}", _handled(api.picture)),
        Route("/api/traces/{id}/page.html", _handled(api.page)),
        Route("/{folder}/{name}", _static_file),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        api.jobs.stop()

    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(LocalOnly, hosts=list(hosts))],
        exception_handlers={HTTPException: _http_error, Exception: _bug},
    )


class _Api:
    """The handlers; each takes the request and its JSON body."""

    def __init__(self, session: LensSession, language: Language | None) -> None:
        self.session = session
        self.language = language
        self.jobs = HeadJobs(session)

    def start(self, request: Request, body: dict[str, Any]) -> Response:
        return HTMLResponse(read_page("lens", self.language))

    def model(self, request: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(self.session.describe())

    def trace(self, request: Request, body: dict[str, Any]) -> Response:
        wanted = TraceRequest(
            bundle=_field(body, "bundle", str, "a"),
            text=_field(body, "text", str),
            answer=_field(body, "answer", str, None),
            step=_field(body, "step", int, None),
        )
        return JSONResponse(self.session.trace(wanted).view)

    def ablate(self, request: Request, body: dict[str, Any]) -> Response:
        heads = _field(body, "heads", list)
        if len(heads) > _MAX_HEADS or not all(isinstance(head, str) for head in heads):
            raise ProblemError(422, _('heads must be a list of names such as "encoder.0.self/2".'))
        return JSONResponse(self.session.ablate(_field(body, "trace", str), heads))

    def importance(self, request: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(self.session.importance(_field(body, "trace", str)))

    def contrast(self, request: Request, body: dict[str, Any]) -> Response:
        instead = body.get("instead")
        if isinstance(instead, bool) or not isinstance(instead, int | str):
            raise ProblemError(422, _("instead must be a token id or the name of a label."))
        position = _field(body, "position", int)
        return JSONResponse(self.session.contrast(_field(body, "trace", str), position, instead))

    def survey(self, request: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(self.jobs.survey(_bundle_of(request)))

    def examples(self, request: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(self.jobs.examples(_bundle_of(request), _head_of(request)))

    def effect(self, request: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(self.jobs.effect(_bundle_of(request), _head_of(request)))

    def timeline(self, request: Request, body: dict[str, Any]) -> Response:
        return JSONResponse(self.jobs.timeline(_bundle_of(request)))

    def map(self, request: Request, body: dict[str, Any]) -> Response:
        traced = self.session.find(request.path_params["id"])
        content, scale = traced.maps.deflated(_head_of(request), request.path_params["kind"])
        headers = {"X-Scale": repr(scale), "Cache-Control": "private, max-age=3600"}
        return Response(content, media_type="application/octet-stream", headers=headers)

    def walk(self, request: Request, body: dict[str, Any]) -> Response:
        number = int(request.path_params["query"])
        return JSONResponse(self.session.walk(request.path_params["id"], _head_of(request), number))

    def picture(self, request: Request, body: dict[str, Any]) -> Response:
        form = _choice(request, "format", tuple(_PICTURES))
        head = _head_of(request)
        content = self.session.picture(
            self.session.find(request.path_params["id"]),
            head,
            form=form,
            view=_choice(request, "view", get_args(View)),
            kind=_choice(request, "kind", get_args(MapKind)),
            unit=_choice(request, "unit", get_args(UnitName)),
            mass=_share(request, "mass", MASS),
            language=_choice(request, "lang", LANGUAGES),
        )
        name = f"{head.attention}.{head.number}.{request.query_params.get('view', 'matrix')}.{form}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=_PICTURES[form], headers=headers)

    def page(self, request: Request, body: dict[str, Any]) -> Response:
        traced = self.session.find(request.path_params["id"])
        surveys, examples = self.jobs.finished(traced.request.bundle)
        state = request.query_params.get("state", "")
        content = page_of(
            self.session, [traced], surveys=surveys, examples=examples, language=self.language, state=state
        )
        headers = {"Content-Disposition": 'attachment; filename="lens.html"'}
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)


def _handled(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Wrap a handler: read the JSON body, run in a thread, and answer errors as problems."""

    async def endpoint(request: Request) -> Response:
        try:
            body = _parse(await request.body()) if request.method == "POST" else {}
            return await run_in_threadpool(handler, request, body)
        except ProblemError as error:
            return problem(error.status, str(error))
        except ManyheadsError as error:
            return problem(422, str(error))

    return endpoint


def _parse(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise ProblemError(400, _("The body is not JSON.")) from None
    if not isinstance(body, dict):
        raise ProblemError(422, _("The body must be a JSON object."))
    return body


def _field(body: dict[str, Any], name: str, kind: type, *default: Any) -> Any:
    value = body.get(name, default[0] if default else None)
    if value is None and default:
        return default[0]
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ProblemError(422, _("{name} must be of type {type}.", name=name, type=kind.__name__))
    return value


def _choice(request: Request, name: str, allowed: Sequence[str]) -> Any:
    """Return a query parameter that must be one of a few; the first is the default."""
    value = request.query_params.get(name, allowed[0])
    if value not in allowed:
        raise ProblemError(
            422, _("{name} = {value!r} is not one of {allowed}.", name=name, value=value, allowed=", ".join(allowed))
        )
    return value


def _share(request: Request, name: str, default: float) -> float:
    """Return a query parameter between 0 and 1."""
    text = request.query_params.get(name, str(default))
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise ProblemError(422, _("{name} = {text!r} is not a number from 0 to 1.", name=name, text=text))
    return share


def _bundle_of(request: Request) -> str:
    return request.query_params.get("bundle", "a")


def _head_of(request: Request) -> Head:
    return Head(str(request.path_params["attention"]), int(request.path_params["number"]))


async def _static_file(request: Request) -> Response:
    name = f"{request.path_params['folder']}/{request.path_params['name']}"
    if name not in file_names("lens", "shared"):
        return problem(404, _("There is no file {name!r} here.", name=name[:80]))
    return Response(read_static(name), media_type=media_type(name))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, f"{request.method} {request.url.path}: {error.detail}.")


async def _bug(request: Request, error: Exception) -> Response:
    name = type(error).__name__
    return problem(500, _("This is a bug in manyheads: {error}. The terminal shows where.", error=name))
