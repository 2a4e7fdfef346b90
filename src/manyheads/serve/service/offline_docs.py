"""`docs_router`: the API's reference at /docs, without a request to another server.

FastAPI's own page loads Swagger UI from a CDN. This one takes it from the package fastapi-offline, starts it with a
script of its own, which allows a strict Content-Security-Policy, and switches off the online validator.
"""

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Response
from starlette.responses import HTMLResponse

from manyheads.messages import Message, _
from manyheads.serve.service.problems import ProblemError
from manyheads.serve.service.service import Service

# The style sheet of Swagger UI has icons as data.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PACKAGE = "fastapi_offline"
_TYPES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
_SECONDS_CACHED = 3600
_MISSING = Message('This page needs the package fastapi-offline. Install it with: pip install "manyheads[serve]"')

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>manyheads: HTTP API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/start.js" defer></script>
</head>
<body>
<noscript>This page needs JavaScript. The document itself is at <a href="openapi.json">openapi.json</a>.</noscript>
<main id="docs"></main>
</body>
</html>
"""
_START = """const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();
document.body.style.margin = "0";
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
"""


def docs_router(service: Service) -> APIRouter:
    """Return the routes /docs and /docs/{name}."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    async def page() -> Response:
        """Return the page."""
        return HTMLResponse(_PAGE, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    @router.get("/docs/start.js")
    async def start() -> Response:
        """Return the script that starts Swagger UI."""
        return Response(_START, media_type="text/javascript")

    @router.get("/docs/{name}")
    async def asset(name: str) -> Response:
        """Return a file of Swagger UI."""
        if name not in _TYPES:
            raise ProblemError(404, _("GET /docs/{name}: there is no such file.", name=name[:40]))
        headers = {"Cache-Control": f"max-age={_SECONDS_CACHED}"}
        return Response(_read(name), media_type=_TYPES[name], headers=headers)

    return router


@cache
def _read(name: str) -> bytes:
    try:
        return (files(_PACKAGE) / "static" / name).read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        raise ProblemError(501, _MISSING) from None
