"""Mutation testing: the sample, which tests a mutant gets, and the source that processes import."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mutation.forks import SOURCE, run_forked, source_files
from mutation.operators import Mutant, find_mutants
from mutation.run import _changed_source, _failed_test, choose_tests, in_sample_order, package_of

QUEUE = SOURCE / "serve" / "service" / "problems.py"


def mutant_at(line: int, function: str = "f", path: Path = QUEUE) -> Mutant:
    return Mutant(path, function, range(line, line + 1), (0, 0), "1", "2", 1)


def entry(**changes: Any) -> dict[str, Any]:
    return {"seconds": {}, "lines": {}, "in_processes": {}} | changes


def table() -> dict[str, Any]:
    source = "src/manyheads/serve/service/problems.py"
    return {
        "tests/a/test_other.py": entry(
            seconds={"tests/a/test_other.py::slow": 9.0, "tests/a/test_other.py::fast": 1.0},
            lines={source: {"3": ["tests/a/test_other.py::slow", "tests/a/test_other.py::fast"]}},
        ),
        "tests/serve/test_problems.py": entry(
            seconds={"tests/serve/test_problems.py::own": 5.0, "tests/serve/test_problems.py::not": 0.1},
            lines={source: {"3": ["tests/serve/test_problems.py::own"], "4": ["tests/serve/test_problems.py::not"]}},
        ),
        "tests/serve/test_process.py": entry(
            seconds={"tests/serve/test_process.py::b": 40.0, "tests/serve/test_process.py::a": 30.0},
            in_processes={source: [3]},
        ),
    }


def test_choose_tests_the_line_come_first_then_those_of_processes_up_to_a_minute() -> None:
    assert choose_tests(mutant_at(3), table()) == [
        "tests/serve/test_problems.py::own",
        "tests/a/test_other.py::fast",
        "tests/a/test_other.py::slow",
        "tests/serve/test_process.py::a",
    ]
    assert choose_tests(mutant_at(3), table(), max_seconds=6.0) == [
        "tests/serve/test_problems.py::own",
        "tests/a/test_other.py::fast",
    ]
    assert choose_tests(mutant_at(4), table()) == ["tests/serve/test_problems.py::not"]
    assert choose_tests(mutant_at(5), table()) == []


def test_a_change_outside_of_functions_gets_the_choose_tests_the_whole_file() -> None:
    found = choose_tests(mutant_at(1, function=""), table())
    assert found[0] == "tests/serve/test_problems.py::not"
    assert len(found) == 5


def test_a_file_of_constants_gets_the_tests_of_its_package() -> None:
    settings = mutant_at(1, function="", path=SOURCE / "serve" / "service" / "settings.py")
    assert choose_tests(settings, table()) == [
        "tests/serve/test_problems.py::not",
        "tests/a/test_other.py::fast",
        "tests/serve/test_problems.py::own",
    ]  # the slow one would be beyond ten seconds
    assert choose_tests(mutant_at(1, path=SOURCE / "serve" / "service" / "settings.py"), table()) == []
    assert choose_tests(mutant_at(1, function="", path=SOURCE / "bulk" / "line_shards.py"), table()) == []


def test_the_sample_takes_from_each_package_in_turn_and_grows_without_reordering() -> None:
    files = [file for file in source_files() if file.parent.name in ("bulk", "run", "metrics")]
    mutants = [mutant for file in files for mutant in find_mutants(file)]
    ordered = in_sample_order(mutants, "0")
    assert Counter(map(package_of, ordered[:30])) == {"bulk": 10, "run": 10, "metrics": 10}
    assert sorted(one.name for one in ordered) == sorted(one.name for one in mutants)
    of_run = [one for one in ordered if package_of(one) == "run"]
    assert in_sample_order(of_run, "0") == of_run
    assert in_sample_order(mutants, "1") != ordered


@pytest.mark.parametrize("file", ["storage.py", "tasks/tag/crf.py"])
def test_processes_import_the_changed_file_and_all_others(tmp_path: Path, file: str) -> None:
    mutant = next(find_mutants(SOURCE / file))
    source = _changed_source(mutant, tmp_path)
    assert (source / "manyheads" / file).read_bytes() == mutant.apply((SOURCE / file).read_bytes())
    listed = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")}
    assert all((source / "manyheads" / path).is_file() for path in listed)
    script = "import manyheads.storage, manyheads.errors; print(manyheads.storage.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(source / "manyheads" / "storage.py")


def test_the_failed_test_is_found_in_the_summary() -> None:
    tests = ["tests/a.py::f[x]", "tests/a.py::f[x - y]", "tests/a.py::g"]
    assert _failed_test("..F\nFAILED tests/a.py::f[x - y] - assert 1 == 2\n1 failed", tests) == "tests/a.py::f[x - y]"
    assert _failed_test("ERROR tests/a.py::g\n", tests) == "tests/a.py::g"
    assert _failed_test("ERROR tests/a.py - TypeError: f()\n", tests) == ""


def test_a_fork_reports_how_it_ended_and_has_its_own_environment(tmp_path: Path) -> None:
    def body() -> int:
        (tmp_path / "seen").write_text(os.environ["MUTANT_TEST"])
        return 7

    assert run_forked(body, {"MUTANT_TEST": "x"}) == 7
    assert (tmp_path / "seen").read_text() == "x"
    assert "MUTANT_TEST" not in os.environ
    assert run_forked(lambda: os.kill(os.getpid(), 9) or 0, {}) == -9
