"""A server and a trained bundle of each task, for the tests of the lens page and of the playground.

xdist starts several processes. They share the trained bundles, which the first of them trains; each has its own browser
and its own servers.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from playwright.sync_api import Browser

from manyheads.serve.lens_page.head_jobs import HeadJobs

from serve.lens_pages import LensPage, finish_jobs, new_context, serving
from serve.playground_pages import PlayPage
from serve.service_process import ServiceProcess, serving_process
from serve.tiny_bundles import train_bundle

TASKS = ("seq2seq", "classify", "tag", "language", "masked")
Open = Callable[..., LensPage]
OpenPlay = Callable[..., PlayPage]


@pytest.fixture(scope="session")
def trained(shared_folder: Path) -> Callable[[str], Path]:
    """Return the bundle of a task; it is trained on first use."""

    def find(task: str) -> Path:
        with FileLock(shared_folder / f"{task}.lock"):
            bundle = shared_folder / task / "bundle"
            return bundle if bundle.exists() else train_bundle(task, shared_folder / task)

    return find


@pytest.fixture(scope="session")
def lens_jobs() -> list[HeadJobs]:
    """The background jobs of the servers of `address_of`."""
    return []


@pytest.fixture(scope="session")
def address_of(trained: Callable[[str], Path], lens_jobs: list[HeadJobs]) -> Iterator[Callable[[str], str]]:
    """Return the address of the page of a task's bundle, which stays open."""
    addresses: dict[str, str] = {}
    with ExitStack() as stack:

        def find(task: str) -> str:
            if task not in addresses:
                addresses[task] = stack.enter_context(serving(trained(task), jobs=lens_jobs))
            return addresses[task]

        yield find


@pytest.fixture
def lens(browser: Browser, address_of: Callable[[str], str], lens_jobs: list[HeadJobs]) -> Iterator[Open]:
    """Return a function that gives a page of a task's bundle. After the test, its console and requests are checked."""
    pages: list[LensPage] = []

    def open_page(task: str = "seq2seq", *, address: str = "", **options: Any) -> LensPage:
        pages.append(LensPage(new_context(browser, **options), address or address_of(task)))
        return pages[-1]

    yield open_page
    for one in pages:
        one.context.close()
    finish_jobs(lens_jobs)
    for one in pages:
        one.check()


@pytest.fixture(scope="session")
def service(trained: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A server of one bundle of each task, with two workers."""
    bundles = [f"{task}={trained(task)}" for task in TASKS]
    log = tmp_path_factory.mktemp("service") / "log"
    with serving_process(*bundles, log=log, workers=2) as started:
        yield started


@pytest.fixture
def playground(browser: Browser, request: pytest.FixtureRequest) -> Iterator[OpenPlay]:
    """Return a function that gives a page of the playground. After the test, its console and requests are checked."""
    pages: list[PlayPage] = []

    def open_page(*, address: str = "", **options: Any) -> PlayPage:
        found = address or request.getfixturevalue("service").address
        pages.append(PlayPage(new_context(browser, **options), found))
        return pages[-1]

    yield open_page
    for one in pages:
        one.context.close()
    for one in pages:
        one.check()
