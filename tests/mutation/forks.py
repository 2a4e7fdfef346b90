"""Tests in forks of one process that has imported everything and collected all tests."""

import hashlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "src" / "manyheads"
FOLDER = REPOSITORY / "build" / "mutants"
OPTIONS = ["-q", "-s", "-m", "not slow and not proof", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
_PACKAGES = ("serve", "bulk", "lab", "tasks", "run", "model", "training", "decode", "metrics", "data")
# Those of init, doctor and lens are also the tests of what a task brings for them (tasks/*/*_commands.py).
_TEST_FOLDERS = (*_PACKAGES, "reference", "cli", "proposals", "doctor", "lens", "extending")
_TEST_FILES = (
    "test_storage.py",
    "test_bundle.py",
    "test_api.py",
    "faults/test_order.py",
    "faults/test_hostile_bundles.py",
)


def source_files() -> list[Path]:
    """The files to mutate."""
    files = [file for package in _PACKAGES for file in sorted((SOURCE / package).rglob("*.py"))]
    return [*files, SOURCE / "storage.py"]


def test_files() -> list[Path]:
    """The files with the tests that are run."""
    tests = REPOSITORY / "tests"
    files = [file for folder in _TEST_FOLDERS for file in sorted((tests / folder).glob("test_*.py"))]
    return [*files, *(tests / name for name in _TEST_FILES)]


def digests() -> dict[str, str]:
    """The SHA-256 of each of these files, by its path in the repository."""
    files = [*source_files(), *test_files()]
    return {str(file.relative_to(REPOSITORY)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def shared_folder() -> Path:
    """The small bundles and caches that tests share, made by the unchanged code."""
    of_sources = "".join(digest for file, digest in digests().items() if file.startswith("src/"))
    return FOLDER / f"shared-{hashlib.sha256(of_sources.encode()).hexdigest()[:12]}"


@contextmanager
def own_folder(shared: Path) -> Iterator[Path]:
    """A folder for all files of one fork, with a copy of what tests share."""
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as folder:
        shutil.copytree(shared, Path(folder, "shared"), symlinks=True)
        yield Path(folder)


def environment_of(folder: Path, *paths: Path) -> dict[str, str]:
    """The environment of a fork and of the processes that its tests start; these import from `paths` first."""
    path = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "PYTEST_DEBUG_TEMPROOT": str(folder), "MANYHEADS_TEST_BUNDLES": str(folder / "shared")}


def run_forked(body: Callable[[], int], environment: dict[str, str], paths: Sequence[Path] = ()) -> int:
    """Call `body` in a fork and return how it ended: its exit code, or the signal's number below zero."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        end_group(child)
        return os.waitstatus_to_exitcode(status)
    code = 1
    try:
        os.setsid()
        output = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(output, stream)
        os.environ.update(environment)
        sys.path[:0] = map(str, paths)  # processes that multiprocessing starts get this list
        code = body()
    finally:
        os._exit(code)


def end_group(leader: int) -> None:
    """End the processes that a fork left behind."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def run_tests(items: Sequence[Any]) -> str:
    """Run tests until one fails, and return its id, or "" if all pass."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed:
            return str(item.nodeid)
    return ""


class Collected:
    """A pytest plugin that collects tests and calls `loop` with them by id instead of running them."""

    def __init__(self, loop: Callable[[dict[str, Any]], None]) -> None:
        self.loop = loop

    def pytest_configure(self) -> None:
        """Let a failing property test fail at once, without a search for the simplest example."""
        from hypothesis import Phase, settings  # pytest has to prepare for it before it is imported

        settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], deadline=None)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Leave out tests of pages in a browser, which are tests of JavaScript."""
        self.loop({item.nodeid: item for item in session.items if "browser" not in getattr(item, "fixturenames", ())})
        return True
