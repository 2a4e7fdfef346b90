"""Mutation testing: change the code in one place, run the tests of that place, and see whether one of them fails.

    make mutants [N=400] [MODULE=decode/sampling] [SEED=0] [ARGS=--survivors]

Which tests run a line is recorded once. A change inside a function is made in a fork of a process that has collected
all tests; any other change is made in a copy of the source. Results are added to build/mutants/results.jsonl, and a
mutant that has a result is not run again. See docs/decisions/0025-mutants.md.
"""

import argparse
import gc
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from mutation.operators import Mutant, find_mutants
from mutation.recording import FOLDER, OPTIONS, REPOSITORY, SOURCE, recorded, source_files, test_files

_RESULTS = FOLDER / "results.jsonl"
_MAX_SECONDS = 30.0  # of tests per mutant, as recorded
_MAX_BYTES = 6 << 30  # of memory per mutant
_TIMEOUTS = (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)
_SURVIVED, _KILLED, _NOT_REPLACED = 0, 1, 99  # exit codes of a fork


def tests_of(mutant: Mutant, table: dict[str, Any]) -> list[str]:
    """The tests that run the changed line: those of its own test file first, then the fastest first."""
    by_line = table["lines"].get(str(mutant.path.relative_to(REPOSITORY)), {})
    # Lines outside of functions run at import: every test that runs a function of the file may notice the change.
    lines = [str(line) for line in mutant.lines] if mutant.function else list(by_line)
    tests = {test for line in lines for test in by_line.get(line, [])}
    own = f"/test_{mutant.path.stem}.py::"
    seconds = table["seconds"]
    chosen, total = [], 0.0
    for test in sorted(tests, key=lambda test: (own not in test, seconds[test], test)):
        total += seconds[test]
        if total <= _MAX_SECONDS or not chosen:
            chosen.append(test)
    return chosen


class Forks:
    """A pytest plugin that collects all tests and runs each mutant in a fork of this process."""

    def __init__(self, mutants: list[Mutant], table: dict[str, Any]) -> None:
        self.mutants, self.table = mutants, table

    def pytest_configure(self) -> None:
        """Let a failing property test fail at once, without a search for the simplest example."""
        from hypothesis import Phase, settings  # pytest has to prepare for it before it is imported

        settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants instead of the tests."""
        items = {item.nodeid: item for item in session.items}
        functions: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
        for found in gc.get_objects():
            if type(found) is FunctionType:  # isinstance would call properties of lazy modules
                functions[found.__code__.co_filename, found.__code__.co_qualname].append(found)
        for mutant in self.mutants:
            started = time.monotonic()
            tests = [test for test in tests_of(mutant, self.table) if test in items]
            changed = functions[str(mutant.path), mutant.function]
            outcome = _run_in_fork(mutant, changed, [items[test] for test in tests], session) if tests else "survived"
            if outcome == "not replaced":
                outcome = run_in_copy(mutant, tests)
            _write(mutant, outcome, len(tests), time.monotonic() - started)
        return True


def _run_in_fork(mutant: Mutant, functions: list[FunctionType], items: list[Any], session: pytest.Session) -> str:
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        _end_group(child)
        if os.WIFSIGNALED(status):
            return "timeout" if os.WTERMSIG(status) in _TIMEOUTS else "killed"
        return {_SURVIVED: "survived", _NOT_REPLACED: "not replaced"}.get(os.WEXITSTATUS(status), "killed")
    try:
        _limit()
        output = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(output, stream)
        try:
            code = _code_named(mutant.function, compile(mutant.apply(mutant.path.read_bytes()), mutant.path, "exec"))
            for function in functions:
                function.__code__ = code
        except (LookupError, ValueError):
            os._exit(_NOT_REPLACED)
        if not functions:
            os._exit(_NOT_REPLACED)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                os._exit(_KILLED)
        os._exit(_SURVIVED)
    finally:
        os._exit(_KILLED)


def _code_named(name: str, code: CodeType) -> CodeType:
    """The code of a function in the code of its module; a name that occurs twice is an error."""

    def walk(code: CodeType) -> Iterator[CodeType]:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield constant
                yield from walk(constant)

    found = [inner for inner in walk(code) if inner.co_qualname == name]
    if len(found) != 1:
        raise LookupError(name)
    return found[0]


def run_in_copy(mutant: Mutant, tests: list[str]) -> str:
    """Run the tests in a new process whose source has the change."""
    if not tests:
        return "survived"
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        shutil.copytree(SOURCE, Path(folder, "manyheads"), ignore=shutil.ignore_patterns("__pycache__"))
        changed = Path(folder, "manyheads", mutant.path.relative_to(SOURCE))
        changed.write_bytes(mutant.apply(mutant.path.read_bytes()))
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", *OPTIONS, *tests],
            env=os.environ | {"PYTHONPATH": folder},
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_limit,
        )
        status = process.wait()
        _end_group(process.pid)
    return "survived" if status == 0 else "timeout" if -status in _TIMEOUTS else "killed"


def _limit() -> None:
    """Bound the time and memory of this process; its group is ended with it."""
    os.setsid()
    seconds = int(2 * _MAX_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(10 * _MAX_SECONDS))  # for a mutant that waits
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, _MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _write(mutant: Mutant, outcome: str, n_tests: int, seconds: float) -> None:
    row = {"mutant": mutant.name, "outcome": outcome, "tests": n_tests, "seconds": round(seconds, 1)}
    with _RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    sys.stderr.write(f"{outcome:8}  {mutant.name}\n")


def _results() -> dict[str, str]:
    """The outcome of each mutant; the latest counts."""
    lines = _RESULTS.read_text(encoding="utf-8").splitlines() if _RESULTS.exists() else []
    return {row["mutant"]: row["outcome"] for row in map(json.loads, lines)}


def _native_library() -> str:
    """The native engine, compiled once for all mutants."""
    script = "from manyheads.decode.native.loading import library; print(library()._name)"
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def report(mutants: list[Mutant]) -> None:
    """Write how many mutants were killed, per package, and every survivor."""
    outcomes = _results()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        package = mutant.path.relative_to(SOURCE).parts[0].removesuffix(".py")
        counts[package][outcomes.get(mutant.name, "not run")] += 1
    for mutant in mutants:
        if outcomes.get(mutant.name) == "survived":
            sys.stdout.write(f"survived  {mutant.name}  (line {mutant.lines[0]})\n")
    for package, count in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        n_run = count.total() - count["not run"]
        share = (n_run - count["survived"]) / max(1, n_run)
        sys.stdout.write(f"{package:8}  {share:6.1%} of {n_run:4} killed ({count['timeout']} by a timeout)\n")


def main() -> None:
    """Run the mutants that have no result yet, then report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=400, help="size of the random sample; 0: all")
    parser.add_argument("--seed", default="0", help="of the sample")
    parser.add_argument("--module", default="", help="only files whose path starts with this, such as decode/sampling")
    parser.add_argument("--survivors", action="store_true", help="run the survivors again")
    chosen = parser.parse_args()
    os.chdir(REPOSITORY)
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(FOLDER / "hypothesis")
    os.environ.setdefault("MANYHEADS_NATIVE_LIBRARY", _native_library())
    mutants = [mutant for file in source_files() for mutant in find_mutants(file)]
    mutants = [mutant for mutant in mutants if str(mutant.path.relative_to(SOURCE)).startswith(chosen.module)]
    # The order depends on names only: a larger sample contains the smaller one, also after a change to other code.
    mutants.sort(key=lambda mutant: hashlib.sha256(f"{chosen.seed} {mutant.name}".encode()).digest())
    mutants = mutants[: chosen.n or None]
    table, outcomes = recorded(), _results()
    is_again = {"survived"} if chosen.survivors else set()
    todo = [mutant for mutant in mutants if outcomes.get(mutant.name) in {None, *is_again}]
    in_functions = [mutant for mutant in todo if mutant.function]
    if in_functions:
        pytest.main([*OPTIONS, "-s", *map(str, test_files())], plugins=[Forks(in_functions, table)])
    for mutant in todo:
        if not mutant.function:
            started, tests = time.monotonic(), tests_of(mutant, table)
            _write(mutant, run_in_copy(mutant, tests), len(tests), time.monotonic() - started)
    report(mutants)


if __name__ == "__main__":
    main()
