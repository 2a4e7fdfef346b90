"""Drives the lens page in a browser: a server on the loopback interface, and a page that records what goes wrong."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect
from starlette.applications import Starlette

from manyheads.lens.roles.head_survey import survey_heads
from manyheads.serve.lens_page.head_jobs import HeadJobs
from manyheads.serve.lens_page.lens_app import make_app
from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.serve.lens_page.lens_session import LensSession

N_SURVEYED = 30  # texts; hundreds in use
SECONDS = 90  # to wait for something on a very busy machine
expect.set_options(timeout=SECONDS * 1000)


@contextmanager
def serving(*bundles: Path, session: LensSession | None = None, jobs: list[HeadJobs] | None = None) -> Iterator[str]:
    """Serve the page of one or two bundles, or of a session, and yield its address. Its jobs are added to `jobs`."""
    session = session or LensSession([LensModel.open(path, id) for path, id in zip(bundles, "ab", strict=False)])
    with background_jobs(jobs) as app_of:
        config = uvicorn.Config(app_of(session), port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        _wait_for(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(SECONDS)


@contextmanager
def background_jobs(made: list[HeadJobs] | None = None) -> Iterator[Callable[[LensSession], Starlette]]:
    """Yield `make_app`; then stop its background jobs: torch must not be at work when the process ends.

    The jobs of each application are added to `made`.
    """
    made = [] if made is None else made

    def recorded(session: LensSession) -> HeadJobs:
        made.append(HeadJobs(session))
        return made[-1]

    before = set(threading.enumerate())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manyheads.serve.lens_page.lens_app.HeadJobs", recorded)
        patch.setattr("manyheads.serve.lens_page.head_jobs.survey_heads", partial(survey_heads, n_texts=N_SURVEYED))
        yield make_app
    workers = [one for one in threading.enumerate() if one.name == "lens-jobs" and one not in before]
    for jobs in made:
        jobs.stop()
    _wait_for(
        lambda: not _is_running(made) or not any(one.is_alive() for one in workers),
        8 * SECONDS,  # until the job reports its progress
    )


def finish_jobs(made: list[HeadJobs]) -> None:
    """Wait for the background jobs: one that ran on during the next test would see what that test replaces."""
    _wait_for(lambda: not _is_running(made), 8 * SECONDS)
    failed = {key: job.message for jobs in made for key, job in jobs._jobs._jobs.items() if job.state == "failed"}
    assert not failed, f"Background jobs failed: {failed}"


def _is_running(made: list[HeadJobs]) -> bool:
    return any(job.state == "running" for jobs in made for job in jobs._jobs._jobs.values())


def _wait_for(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "The server does not start, or does not stop."
        time.sleep(0.02)


class LensPage:
    """A page with its console and its requests."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.address = address
        self.context = context
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.allowed = ["willReadFrequently"]  # patterns of problems that a test provokes; the first: by reading pixels
        context.on("console", self._on_console)
        context.on("request", self._on_request)
        context.on("weberror", lambda error: self.problems.append(f"uncaught: {error.error}"))
        self.page = context.new_page()

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _on_request(self, request: Request) -> None:
        self.requests.append(request.url)

    def tab(self) -> Self:
        """Return a second tab of the same browser; it is checked together with this one."""
        other = copy(self)
        other.page = self.context.new_page()
        return other

    def open(self, text: str = "", **state: object) -> Page:
        """Open the page in a state of its address and wait until it is drawn."""
        self.page.goto(self.address + self.hash_of(text, **state))
        self.settle()
        if state.get("page", "text") == "text":
            self.page.locator(".region-answer h2:visible, [role=alert]:visible").first.wait_for()
        return self.page

    def hash_of(self, text: str = "", **state: object) -> str:
        """Return the part of the address that keeps the state."""
        fields = {"text": text} if text else {}
        return "#" + urlencode({**fields, **{name: str(value) for name, value in state.items()}})

    def settle(self) -> None:
        """Wait until nothing is computed any more."""
        self.page.locator("#app .working[aria-hidden=true]").wait_for(state="attached")
        expect(self.page.locator(".head-body.waiting")).to_have_count(0)

    def state(self) -> dict[str, str]:
        """Return the fields of the address."""
        fields: dict[str, str] = self.page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
        return fields

    def expect_state(self, **fields: str | None) -> None:
        """Wait until the address has these fields; None: does not have it. Small changes reach it after a pause."""
        deadline = time.monotonic() + SECONDS
        while any(self.state().get(name) != value for name, value in fields.items()):
            assert time.monotonic() < deadline, f"{fields} is not in the address: {self.state()}"
            time.sleep(0.05)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds: what is drawn or written to the address follows after a frame or a pause."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, "The page does not get there."
            self.page.wait_for_timeout(50)

    def allow(self, pattern: str) -> None:
        """Expect a message of the console, such as the browser's own line about an answer of 422."""
        self.allowed.append(pattern)

    def check(self) -> None:
        """Assert that the console had no error and that nothing left this machine."""
        unexpected = [one for one in self.problems if not any(re.search(pattern, one) for pattern in self.allowed)]
        assert not unexpected, unexpected
        hosts = {urlsplit(url).hostname for url in self.requests if urlsplit(url).scheme in ("http", "https", "ws")}
        assert hosts <= {"127.0.0.1"}, hosts

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Return a context with the size of a laptop's window, in English, unless told otherwise."""
    defaults: dict[str, Any] = {
        "viewport": {"width": 1280, "height": 900},
        "locale": "en-US",
        "color_scheme": "light",
        "reduced_motion": "reduce",  # nothing is painted while a test waits
    }
    context = browser.new_context(**defaults | options)
    context.set_default_timeout(SECONDS * 1000)
    return context
