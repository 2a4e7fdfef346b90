"""`LensPages`: the lens page of every bundle that is served, at /lens/NAME/.

A bundle is loaded for the lens when its page is first opened, in the process of the service. The page has no way to
send an API key, so a server that needs keys does not offer it. What it may show is decided in `private_data`.
"""

import asyncio
import secrets
from pathlib import Path

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from manyheads.messages import _
from manyheads.serve.service.problems import ProblemError, problem
from manyheads.serve.service.service import Service

_N_AT_ONCE = 2  # requests: the pages share the process with everything else


class LensPages:
    """An application that passes a request on to the lens page of a bundle."""

    def __init__(self, service: Service, *, is_enabled: bool) -> None:
        self.service, self.is_enabled = service, is_enabled
        self._apps: dict[str, tuple[str, ASGIApp]] = {}  # version and application by the bundle's name
        self._lock = asyncio.Lock()
        self._computing = asyncio.Semaphore(_N_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; / leads to the first bundle."""
        if not self.is_enabled:
            detail = _("A server that needs API keys has no lens page. Use: manyheads lens BUNDLE")
            await problem(404, detail)(scope, receive, send)
            return
        root = scope.get("root_path", "")
        name, slash, _rest = scope["path"].removeprefix(root).removeprefix("/").partition("/")
        if not name or not slash:
            first = name or next(iter(self.service.bundles))
            await RedirectResponse(f"{root}/{first}/")(scope, receive, send)
            return
        try:
            app = await self._app(name)
        except ProblemError as error:
            await error.response()(scope, receive, send)
            return
        async with self._computing:
            await app({**scope, "root_path": f"{root}/{name}"}, receive, send)

    async def _app(self, name: str) -> ASGIApp:
        version = self.service.find(name).version
        async with self._lock:
            if self._apps.get(name, ("", None))[0] != version:
                self._apps[name] = version, await asyncio.to_thread(self._open, name)
        return self._apps[name][1]

    def _open(self, name: str) -> ASGIApp:
        from manyheads.errors import ManyheadsError
        from manyheads.serve.lens_page.lens_app import make_app
        from manyheads.serve.lens_page.lens_model import LensModel
        from manyheads.serve.lens_page.lens_session import LensSession
        from manyheads.serve.private_data import without_path

        path, settings = Path(self.service.pool.folders[name]), self.service.settings
        try:
            opened = LensModel.open_served(path, name, share_examples=settings.share_examples)
        except (ManyheadsError, OSError) as error:
            raise ProblemError(503, without_path(error, path, name)) from None
        # With a secret of its own, nobody can find out by an id whether somebody else has sent a text.
        session = LensSession([opened], secret=secrets.token_bytes())
        return make_app(session, {settings.host, *settings.allowed_hosts})
