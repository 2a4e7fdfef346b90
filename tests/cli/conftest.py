"""Runs the command line in a process, with its streams and its exit code."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def manyheads(tmp_path: Path) -> Run:
    """Return a function that runs `manyheads` with these arguments in an empty folder."""

    def run(*words: object, stdin: str | bytes = "", n_threads: int = 1) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [sys.executable, "-m", "manyheads", *map(str, words)],
            input=stdin if isinstance(stdin, bytes) else stdin.encode(),
            capture_output=True,
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": str(n_threads), "COLUMNS": "110"},
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        # Untrained models rarely generate EOS, so warnings about cut-off output are expected.
        err = "".join(line for line in err.splitlines(keepends=True) if "were cut off at" not in line)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run
