"""`page_router`: the playground and the files it loads."""

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from manyheads.messages import _
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service import Service
from manyheads.serve.static_files import TYPES, file_names, read_static

_PLAYGROUND = "playground.html"


def page_router(service: Service) -> APIRouter:
    """Return the routes / and /static."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def playground() -> Response:
        return HTMLResponse(read_static(_PLAYGROUND))

    @router.get("/static/{name}")
    async def static_file(name: str) -> Response:
        suffix = "." + name.rpartition(".")[2]
        if suffix not in TYPES or name not in file_names():
            raise ProblemError(404, _("There is no file {name!r} here.", name=name[:80]))
        return Response(read_static(name), media_type=f"{TYPES[suffix]}; charset=utf-8")

    return router
