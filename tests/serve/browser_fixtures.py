"""One browser for all tests of a process: Playwright cannot start twice in one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright

from serve import chromium, node


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the processes of xdist share; with MANYHEADS_TEST_BUNDLES=folder, one that outlives the run."""
    if "MANYHEADS_TEST_BUNDLES" in os.environ:
        return Path(os.environ["MANYHEADS_TEST_BUNDLES"])
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "lens"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browser(shared_folder: Path) -> Iterator[Browser]:
    """One browser for all tests of a process."""
    with FileLock(shared_folder / "chromium.lock"):
        path = chromium.find_chromium() or chromium.install_chromium()
    if path is None:
        pytest.skip(chromium.MISSING)
    runtime = node.find_node()
    if runtime is None:
        pytest.skip(node.MISSING)
    home = shared_folder / "home"
    home.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYWRIGHT_NODEJS_PATH", runtime)
        with sync_playwright() as playwright:
            started = chromium.start(playwright, path, home)
            yield started
            started.close()
