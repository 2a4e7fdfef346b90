"""Which tests run which lines, measured with coverage.py and kept in build/mutants/recorded.json.

`python -m mutation.recording FILE…` runs these test files, each in a fork, and brings the table up to date after each.
The lines of a process that a test starts count for all tests of its file: such a process often serves several tests.
"""

import ast
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import coverage
import pytest

from mutation.forks import (
    FOLDER,
    OPTIONS,
    REPOSITORY,
    SOURCE,
    Collected,
    digests,
    environment_of,
    own_folder,
    run_forked,
    shared_folder,
)

_TABLE = FOLDER / "recorded.json"
# Started by Python in every process whose PYTHONPATH has its folder: measures that process.
_STARTUP = "import coverage\ncoverage.process_startup()\n"


def recorded() -> dict[str, Any]:
    """The table; test files that changed, or that run a source file which changed, are run first."""
    now, table = digests(), read_table()
    stale = [name for name in now if name.startswith("tests/") and _is_stale(name, now, table)]
    if stale:
        sys.stderr.write(f"Recording which lines {len(stale)} test files run (half an hour for all).\n")
        subprocess.run([sys.executable, "-m", "mutation.recording", *stale], cwd=REPOSITORY, check=True)
    return read_table()


def _is_stale(name: str, now: dict[str, str], table: dict[str, Any]) -> bool:
    """Whether a test file, or a source file it ran, has changed since it was recorded."""
    return name not in table or any(now.get(file) != digest for file, digest in table[name]["digests"].items())


def read_table() -> dict[str, Any]:
    """The table as it was recorded."""
    if not _TABLE.exists():
        return {}
    return dict(json.loads(_TABLE.read_text(encoding="utf-8")))


class Recorder:
    """A pytest plugin: every test is one context of the measurement."""

    def __init__(self) -> None:
        self.coverage = coverage.Coverage(data_file=None, include=[f"{SOURCE}/*"])
        self.seconds: dict[str, float] = {}  # of each test, with its fixtures
        self.failed: set[str] = set()

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

    def record(self, items: list[Any], folder: Path) -> int:
        """Run the tests of a file and write what they ran to a file in the folder."""
        self.coverage.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.coverage.stop()
        data = self.coverage.get_data()
        lines: dict[str, dict[int, list[str]]] = {}
        for file in data.measured_files():
            by_line = data.contexts_by_lineno(file)
            lines[file] = {line: [test for test in tests if test] for line, tests in by_line.items()}
        content = {"lines": lines, "seconds": self.seconds, "failed": sorted(self.failed)}
        (folder / "recorded.json").write_text(json.dumps(content), encoding="utf-8")
        return 0


def _entry(folder: Path, now: dict[str, str], name: str) -> dict[str, Any]:
    """What the table says about a test file: from what its tests and the processes they started have written."""
    file = folder / "recorded.json"  # missing if there are no tests, or if their process was killed
    content = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"lines": {}, "seconds": {}, "failed": []}
    )
    in_processes: dict[str, set[int]] = {}
    for file in folder.glob("processes.*"):
        data = coverage.CoverageData(basename=str(file))
        try:
            data.read()
        except coverage.exceptions.DataError:  # of a process that was killed while it wrote
            continue
        for source in data.measured_files():
            in_processes.setdefault(source, set()).update(data.lines(source) or [])
    for source, lines in in_processes.items():  # every process that imports a file runs its other lines
        lines &= _lines_in_functions(Path(source).read_bytes())
    relative = {file: str(Path(file).relative_to(REPOSITORY)) for file in {*content["lines"], *in_processes}}
    return {
        "digests": {file: now[file] for file in [name, *relative.values()] if file in now},
        "seconds": {test: seconds for test, seconds in content["seconds"].items() if test not in content["failed"]},
        "failed": content["failed"],
        "lines": {relative[file]: lines for file, lines in content["lines"].items()},
        "in_processes": {relative[file]: sorted(lines) for file, lines in in_processes.items()},
    }


def _lines_in_functions(source: bytes) -> set[int]:
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {line for node in functions for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)}


def _record(items: dict[str, Any]) -> None:
    now, table, shared = digests(), read_table(), shared_folder()
    startup = Path(tempfile.mkdtemp(prefix="mutant-startup-"))
    (startup / "sitecustomize.py").write_text(_STARTUP, encoding="utf-8")
    for name in sys.argv[1:]:
        chosen = [item for test, item in items.items() if test.startswith(f"{name}::")]
        with own_folder(shared) as folder:
            settings = folder / "coverage.ini"
            settings.write_text(
                f"[run]\nparallel = true\ndata_file = {folder}/processes\nconcurrency = thread,multiprocessing\n"
                f"sigterm = true\npatch = _exit,fork\ninclude = {SOURCE}/*\n"
                "disable_warnings = no-data-collected,module-not-imported,no-sysmon\n",
                encoding="utf-8",
            )
            environment = environment_of(folder, startup) | {"COVERAGE_PROCESS_START": str(settings)}
            environment["MANYHEADS_TEST_BUNDLES"] = str(shared)
            recorder = Recorder()
            if chosen:
                plugins = chosen[0].config.pluginmanager
                plugins.register(recorder)
                code = run_forked(partial(recorder.record, chosen, folder), environment)
                plugins.unregister(recorder)
                if code:
                    sys.stderr.write(f"Left out, as its process ended with code {code}: {name}\n")
            table[name] = _entry(folder, now, name)
        _TABLE.with_suffix(".new").write_text(json.dumps(table), encoding="utf-8")
        _TABLE.with_suffix(".new").replace(_TABLE)
        sys.stderr.write(f"{name}: {len(table[name]['seconds'])} tests\n")
        for test in table[name]["failed"]:
            sys.stderr.write(f"Left out, as it fails when recorded: {test}\n")
    shutil.rmtree(startup)


def main() -> None:
    """Run the given test files and write the table."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    shared_folder().mkdir(exist_ok=True)
    pytest.main([*OPTIONS, *sys.argv[1:]], plugins=[Collected(_record)])


if __name__ == "__main__":
    main()
