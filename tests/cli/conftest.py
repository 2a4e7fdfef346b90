"""Runs the command line in a process, with its streams and its exit code."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from cli.warm_process import WarmProcess

Run = Callable[..., "subprocess.CompletedProcess[str]"]
_AT_START = frozenset(os.environ)
_SET_BY_LIBRARIES = ("GOMP_", "KMP_", "MALLOC_", "MKL_", "OMP_", "TORCH")  # when they are imported or called


@pytest.fixture(scope="session")
def warm_process() -> Iterator[WarmProcess]:
    """The process that `manyheads` forks."""
    process = WarmProcess(environment_of(1))
    yield process
    process.close()


@pytest.fixture
def manyheads(tmp_path: Path, warm_process: WarmProcess) -> Run:
    """Return a function that runs `manyheads` with these arguments in an empty folder."""

    def run(*words: object, stdin: str | bytes = "", n_threads: int = 1) -> "subprocess.CompletedProcess[str]":
        environment = environment_of(n_threads)
        start = warm_process.run if warm_process.suits(environment) else run_new_process
        done = start(
            [str(word) for word in words], stdin if isinstance(stdin, bytes) else stdin.encode(), tmp_path, environment
        )
        return checked(done)

    return run


@pytest.fixture
def new_manyheads(tmp_path: Path) -> Run:
    """Return a function that starts `manyheads` as a user does: in a new process, which takes seconds."""

    def run(*words: object, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return checked(run_new_process([str(word) for word in words], stdin.encode(), tmp_path, environment_of(1)))

    return run


def environment_of(n_threads: int) -> dict[str, str]:
    """Return the environment of a command: without what libraries have put into that of this process since."""
    given = {
        name: value for name, value in os.environ.items() if name in _AT_START or not name.startswith(_SET_BY_LIBRARIES)
    }
    return given | {"OMP_NUM_THREADS": str(n_threads), "COLUMNS": "110"}


def run_new_process(
    words: Sequence[str], stdin: bytes, folder: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[bytes]":
    """Run `python -m manyheads` in a folder."""
    command = [sys.executable, "-m", "manyheads", *words]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=folder, env=environment, check=False)


def checked(done: "subprocess.CompletedProcess[bytes]") -> "subprocess.CompletedProcess[str]":
    """Return the output as text; a traceback is an error."""
    out, err = done.stdout.decode(), done.stderr.decode()
    # Untrained models rarely generate EOS, so warnings about cut-off output are expected.
    err = "".join(line for line in err.splitlines(keepends=True) if "were cut off at" not in line)
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)
