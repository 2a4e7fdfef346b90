"""Which tests run which lines, measured with coverage.py and kept in build/mutants/recorded.json.

`python -m mutation.recording FILE…` runs these test files and brings the table up to date.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "src" / "manyheads"
FOLDER = REPOSITORY / "build" / "mutants"
OPTIONS = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
_TABLE = FOLDER / "recorded.json"
_PACKAGES = ("model", "train", "decode", "metrics", "data")
_TEST_FOLDERS = (*_PACKAGES, "reference")
_TEST_FILES = ("test_storage.py", "test_bundle.py", "faults/test_order.py")


def source_files() -> list[Path]:
    """The files to mutate."""
    files = [file for package in _PACKAGES for file in sorted((SOURCE / package).rglob("*.py"))]
    return [*files, SOURCE / "storage.py"]


def test_files() -> list[Path]:
    """The files with the tests that are run."""
    tests = REPOSITORY / "tests"
    files = [file for folder in _TEST_FOLDERS for file in sorted((tests / folder).glob("test_*.py"))]
    return [*files, *(tests / name for name in _TEST_FILES)]


def recorded() -> dict[str, Any]:
    """The table; test files that changed, or that run a source file which changed, are run first."""
    table = _read()
    changed = {name for name, digest in _digests().items() if table["digests"].get(name) != digest}
    stale = {name for name in changed if name.startswith("tests/")}
    for name, lines in table["lines"].items():
        if name in changed:
            stale |= {test.partition("::")[0] for tests in lines.values() for test in tests}
    stale &= _digests().keys()
    if stale:
        sys.stderr.write(f"Recording which lines {len(stale)} test files run (minutes).\n")
        command = [sys.executable, "-m", "mutation.recording", *sorted(stale)]
        subprocess.run(command, cwd=REPOSITORY, check=True)
    return _read()


def _read() -> dict[str, Any]:
    if not _TABLE.exists():
        return {"digests": {}, "seconds": {}, "lines": {}}
    return dict(json.loads(_TABLE.read_text(encoding="utf-8")))


def _digests() -> dict[str, str]:
    files = [*source_files(), *test_files()]
    return {str(file.relative_to(REPOSITORY)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


class Recorder:
    """A pytest plugin: every test is one context of the measurement."""

    def __init__(self) -> None:
        self.coverage = coverage.Coverage(data_file=None, include=[str(file) for file in source_files()])
        self.seconds: dict[str, float] = {}  # of each test, with its fixtures
        self.failed: set[str] = set()
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test."""
        self.coverage.switch_context(item.nodeid)
        result = yield
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a test or of its fixtures."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self.failed.add(report.nodeid)

    def update(self, table: dict[str, Any], digests: dict[str, str], ran: set[str]) -> None:
        """Replace what the table says about the test files that ran, and about source files that changed."""
        self.coverage.stop()
        kept = digests.keys() - ran
        for file in source_files():
            name = str(file.relative_to(REPOSITORY))
            old = table["lines"].get(name, {}) if table["digests"].get(name) == digests[name] else {}
            lines = {line: [test for test in tests if test.partition("::")[0] in kept] for line, tests in old.items()}
            for number, tests in self.coverage.get_data().contexts_by_lineno(str(file)).items():
                lines.setdefault(str(number), []).extend(test for test in tests if test and test not in self.failed)
            table["lines"][name] = lines
        table["seconds"] |= self.seconds
        table["digests"] = digests


def main() -> None:
    """Run the given test files and write the table."""
    digests, recorder = _digests(), Recorder()
    pytest.main([*OPTIONS, *sys.argv[1:]], plugins=[recorder])
    table = _read()
    recorder.update(table, digests, set(sys.argv[1:]))
    FOLDER.mkdir(parents=True, exist_ok=True)
    _TABLE.write_text(json.dumps(table), encoding="utf-8")


if __name__ == "__main__":
    main()
