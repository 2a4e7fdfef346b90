"""Mutation testing: change the code in one place, run the tests of that place, and see whether one of them fails.

    make mutants [N=400] [MODULE=decode/sampling] [SEED=0] [ARGS=--survivors]

Which tests run a line is recorded once. A change inside a function is made in a fork of a process that has collected
all tests; any other change is made in a copy of the source. Results are added to build/mutants/results.jsonl, and a
mutant that has a result is not run again. See docs/decisions/0025-mutants.md.
"""

import argparse
import gc
import hashlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from mutation.forks import (
    FOLDER,
    OPTIONS,
    REPOSITORY,
    SOURCE,
    Collected,
    end_group,
    environment_of,
    own_folder,
    run_forked,
    run_tests,
    shared_folder,
    source_files,
    test_files,
)
from mutation.operators import Mutant, find_mutants
from mutation.recording import read_table, recorded

_RESULTS = FOLDER / "results.jsonl"
_EXPLAINED = REPOSITORY / "benchmarks" / "mutants.md"  # contains the name of each survivor that is explained
_MAX_SECONDS = 60.0  # of tests per mutant, as recorded
_MAX_PACKAGE_SECONDS = 10.0  # of tests that only run other files of its package
_MAX_BYTES = 6 << 30  # of memory per mutant
_TIMEOUTS = (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL)
_PASSED, _FAILED, _NOT_REPLACED = 0, 1, 99  # exit codes of a fork
_NOT_COLLECTED = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)  # of a new process that cannot import tests


def choose_tests(mutant: Mutant, table: dict[str, Any], max_seconds: float = _MAX_SECONDS) -> list[str]:
    """The tests that run the changed line: those of its own test file first, then the fastest first.

    After them come the tests of files that run the line in a process of their own. Lines outside of functions run at
    import: every test that runs a function of the file may notice the change, and then those of its package, which
    are the only ones for a file of constants.
    """
    source = str(mutant.path.relative_to(REPOSITORY))
    own, package = f"/test_{mutant.path.stem}.py", f"src/manyheads/{package_of(mutant)}/"
    ranked: list[tuple[int, bool, float, str]] = []
    for file, entry in table.items():
        by_line = {int(line): tests for line, tests in entry["lines"].get(source, {}).items()}
        in_processes = set(entry["in_processes"].get(source, []))
        lines = set(mutant.lines) if mutant.function else {*by_line, *in_processes}
        exact = {test for line in lines for test in by_line.get(line, [])}
        others: set[str] = set()
        if not mutant.function:
            runs = [found for name, found in entry["lines"].items() if name.startswith(package)]
            others = {test for found in runs for tests in found.values() for test in tests}
        for test, seconds in entry["seconds"].items():
            if test in exact or lines & in_processes or test in others:
                rank = 0 if test in exact else 1 if lines & in_processes else 2
                ranked.append((rank, not file.endswith(own), seconds, test))
    chosen: list[str] = []
    totals = [0.0, 0.0]  # of tests that run the file, and of the others
    for rank, _, seconds, test in sorted(ranked):
        totals[rank == 2] += seconds
        if totals[rank == 2] <= (min(max_seconds, _MAX_PACKAGE_SECONDS) if rank == 2 else max_seconds) or not chosen:
            chosen.append(test)
    return chosen


class Mutation:
    """Runs each mutant in a fork of this process, which has imported everything and collected all tests."""

    def __init__(self, mutants: list[Mutant], table: dict[str, Any], max_seconds: float = _MAX_SECONDS) -> None:
        self.mutants, self.table, self.max_seconds = mutants, table, max_seconds
        self.functions: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
        self.items: dict[str, Any] = {}
        self.shared = shared_folder()
        self.checked: set[str] = set()  # tests that passed on the unchanged code after a failure on a mutant
        self.unreliable: set[str] = set()  # tests that failed on both

    def run(self, items: dict[str, Any]) -> None:
        """Run all mutants."""
        self.items = items
        for file in source_files():
            name = ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts)
            importlib.import_module(name.removesuffix(".__init__"))
        gc.unfreeze()  # the tests' conftest.py hides all objects from the garbage collector
        for found in gc.get_objects():
            if type(found) is FunctionType:  # isinstance would call properties of lazy modules
                self.functions[found.__code__.co_filename, found.__code__.co_qualname].append(found)
        gc.freeze()
        for mutant in self.mutants:
            started = time.monotonic()
            outcome, by, n_tests = self.outcome(mutant)
            seconds = round(time.monotonic() - started, 1)
            row = {"mutant": mutant.name, "outcome": outcome, "by": by, "tests": n_tests, "seconds": seconds}
            with _RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            sys.stderr.write(f"{outcome:8}  {_shortened(mutant.name)}\n")

    def outcome(self, mutant: Mutant) -> tuple[str, str, int]:
        """What became of a mutant, the test that failed, and the number of tests chosen for it."""
        while True:
            chosen = choose_tests(mutant, self.table, self.max_seconds)
            tests = [test for test in chosen if test in self.items.keys() - self.unreliable]
            if not tests:
                return "undecided" if chosen else "survived", "", 0
            code, failed = self.run_changed(mutant, tests)
            if code == _PASSED:
                return "survived", "", len(tests)
            if code in _TIMEOUTS:  # nothing is learned if the unchanged code takes as long
                is_slow = self.run_unchanged(tests) in _TIMEOUTS
                return "undecided" if is_slow else "timeout", "", len(tests)
            if code in _NOT_COLLECTED:  # this process has collected them with the unchanged code
                return "killed", "", len(tests)
            suspects = [test for test in ([failed] if failed else tests) if test not in self.checked]
            if not suspects or self.run_unchanged(suspects) == _PASSED:
                self.checked.update(suspects)
                return "killed", failed, len(tests)
            if not failed:
                return "undecided", "", len(tests)
            self.unreliable.add(failed)
            sys.stderr.write(f"Left out, as it fails on the unchanged code, too: {failed}\n")

    def run_changed(self, mutant: Mutant, tests: Sequence[str]) -> tuple[int, str]:
        """Run tests with the change until one fails; return the exit code and that test."""
        with own_folder(self.shared) as folder:
            source = _changed_source(mutant, folder)
            environment = environment_of(folder, source)
            functions = self.functions[str(mutant.path), mutant.function] if mutant.function else []
            code = _NOT_REPLACED
            if functions:
                body = partial(self._run, tests, folder, functions, mutant)
                code = run_forked(body, environment, [source])
            if code == _NOT_REPLACED:
                code = _run_new_process(tests, folder, environment)
            failed = folder / "failed"
            return code, failed.read_text(encoding="utf-8") if failed.exists() else ""

    def run_unchanged(self, tests: Sequence[str]) -> int:
        """Run tests without a change; return the exit code."""
        with own_folder(self.shared) as folder:
            return run_forked(partial(self._run, tests, folder), environment_of(folder))

    def _run(
        self, tests: Sequence[str], folder: Path, functions: Sequence[FunctionType] = (), mutant: Mutant | None = None
    ) -> int:
        """Replace the code of the functions by the mutant's and run tests; called in a fork."""
        _limit()
        if mutant is not None:
            try:
                module = compile(mutant.apply(mutant.path.read_bytes()), mutant.path, "exec")
                code = _code_named(mutant.function, module)
                for function in functions:
                    function.__code__ = code
            except (LookupError, ValueError):
                return _NOT_REPLACED
        failed = run_tests([self.items[test] for test in tests])
        (folder / "failed").write_text(failed, encoding="utf-8")
        return _FAILED if failed else _PASSED


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


def _changed_source(mutant: Mutant, folder: Path) -> Path:
    """A folder from which processes import the package with the change: links to all of its other files."""
    original, changed = SOURCE, folder / "source" / SOURCE.name
    for part in mutant.path.relative_to(SOURCE).parts:
        changed.mkdir(parents=True)
        for entry in original.iterdir():
            if entry.name not in (part, "__pycache__"):
                (changed / entry.name).symlink_to(entry)
        original, changed = original / part, changed / part
    changed.write_bytes(mutant.apply(mutant.path.read_bytes()))
    return folder / "source"


def _run_new_process(tests: Sequence[str], folder: Path, environment: dict[str, str]) -> int:
    """Run tests in a new process, which imports the changed source."""
    output = folder / "output"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-rfE", *OPTIONS, *tests],
            env=os.environ | environment,
            cwd=REPOSITORY,
            stdout=stream,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_limit,
        )
        status = process.wait()
    end_group(process.pid)
    (folder / "failed").write_text(_failed_test(output.read_text("utf-8", "replace"), tests), encoding="utf-8")
    return status


def _failed_test(output: str, tests: Sequence[str]) -> str:
    """The test that pytest's summary names as failed, or ""; ids of tests may contain spaces."""
    lines = [line.partition(" ")[2] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    found = [test for line in lines for test in tests if line == test or line.startswith(f"{test} - ")]
    return max(found, key=len, default="")


def _limit() -> None:
    """Bound the time and memory of this process."""
    seconds = int(2 * _MAX_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(3 * _MAX_SECONDS))  # for a mutant that waits
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, _MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _results() -> dict[str, str]:
    """The outcome of each mutant; the latest counts."""
    lines = _RESULTS.read_text(encoding="utf-8").splitlines() if _RESULTS.exists() else []
    return {row["mutant"]: row["outcome"] for row in map(json.loads, lines)}


def _native_library() -> str:
    """The native engine, compiled once for all mutants."""
    script = "from manyheads.decode.native.loading import library; print(library()._name)"
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def package_of(mutant: Mutant) -> str:
    """The package of a mutant's file."""
    return mutant.path.relative_to(SOURCE).parts[0].removesuffix(".py")


def in_sample_order(mutants: Sequence[Mutant], seed: str) -> list[Mutant]:
    """Mutants at random, from each package in turn.

    The order in a package depends on names only: a larger sample contains the smaller one, also after a change to
    other code.
    """
    by_package: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(mutants, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()):
        by_package[package_of(mutant)].append(mutant)
    ranks = sorted((rank, package) for package, found in by_package.items() for rank in range(len(found)))
    return [by_package[package][rank] for rank, package in ranks]


def _shortened(name: str) -> str:
    """The name for the screen; the definition of an experiment has some thousand characters."""
    return name if len(name) <= 300 else f"{name[:200]} … {name[-90:]}"


def report(mutants: Sequence[Mutant]) -> None:
    """Write how many mutants were noticed, per package, and every survivor."""
    outcomes, explanations = _results(), _EXPLAINED.read_text(encoding="utf-8")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        outcome = outcomes.get(mutant.name)
        if outcome == "survived":
            is_explained = f"`{mutant.name}`" in explanations
            outcome = "explained" if is_explained else "survived"
            sys.stdout.write(f"{outcome:9}  {_shortened(mutant.name)}  (line {mutant.lines[0]})\n")
        if outcome is not None:
            counts[package_of(mutant)][outcome] += 1
    sys.stdout.write("\n| package | run | noticed | of them by a timeout | survivors explained | not explained |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- | --- |\n")
    for package, count in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
        n_run = count.total() - count["undecided"]
        noticed = count["killed"] + count["timeout"]
        cells = (n_run, f"{noticed} ({noticed / max(1, n_run):.1%})", count["timeout"], count["explained"])
        sys.stdout.write(f"| {package} | {' | '.join(map(str, cells))} | {count['survived']} |\n")


def main() -> None:
    """Run the mutants that have no result yet, then report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=400, help="size of the random sample; 0: all")
    parser.add_argument("--seed", default="0", help="of the sample")
    parser.add_argument("--module", default="", help="only files whose path starts with this, such as decode/sampling")
    parser.add_argument("--survivors", action="store_true", help="run the survivors again")
    parser.add_argument("--report", action="store_true", help="run nothing, report what has a result")
    parser.add_argument("--recorded", action="store_true", help="record nothing, run the tests of recorded files only")
    parser.add_argument("--seconds", type=float, default=_MAX_SECONDS, help="of tests per mutant, as recorded")
    chosen = parser.parse_args()
    os.chdir(REPOSITORY)
    FOLDER.mkdir(parents=True, exist_ok=True)
    mutants = [mutant for file in source_files() for mutant in find_mutants(file)]
    mutants = [mutant for mutant in mutants if str(mutant.path.relative_to(SOURCE)).startswith(chosen.module)]
    mutants = in_sample_order(mutants, chosen.seed)[: chosen.n or None]
    outcomes = _results()
    is_again = {"survived", "undecided"} if chosen.survivors else set()
    todo = [mutant for mutant in mutants if outcomes.get(mutant.name) in {None, *is_again}]
    if todo and not chosen.report:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(FOLDER / "hypothesis")
        os.environ.setdefault("MANYHEADS_NATIVE_LIBRARY", _native_library())
        table = read_table() if chosen.recorded else recorded()
        files = [str(file) for file in test_files() if str(file.relative_to(REPOSITORY)) in table]
        pytest.main([*OPTIONS, *files], plugins=[Collected(Mutation(todo, table, chosen.seconds).run)])
    report(mutants)


if __name__ == "__main__":
    main()
