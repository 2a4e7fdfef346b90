"""`page_router`: the playground and the files it loads."""

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from manyheads.messages import _
from manyheads.serve.service.problems import ProblemError
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
