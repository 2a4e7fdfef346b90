"""The long versions of the fault tests: `make kills` and `make full-disk`. Record results in benchmarks/faults.md."""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from manyheads.errors import CheckpointError
from manyheads.storage import verify_manifest

from faults.killing import MOMENTS, Tally, kill_until_done
from faults.running import ForkedRun, SpawnedRun, differences, outcome, output_of, write_recipe


def kills(work: Path, count: int, seed: int = 1) -> str:
    """Kill new processes `count` times; each finished run must equal an undisturbed one byte by byte."""
    recipe = write_recipe(work)
    started = time.monotonic()
    assert SpawnedRun(recipe, work / "whole").wait() == 0, output_of(work / "whole")
    longest = time.monotonic() - started
    whole = outcome(work / "whole")
    rng, tally, n_runs = random.Random(seed), Tally(), 0
    while tally.total < count:
        folder = work / f"run-{n_runs}"
        moments = [*MOMENTS[:1], *rng.sample(MOMENTS[1:-1], len(MOMENTS) - 2), *MOMENTS[-1:]]
        kill_until_done(folder, lambda folder=folder: SpawnedRun(recipe, folder), rng, moments, longest, tally)
        different = differences(outcome(folder), whole)
        assert not different, f"seed {seed}, {folder}: {different}"
        n_runs += 1
        report(f"{tally.total} kills, {n_runs} runs, all identical: {tally.kills}")
    return f"{tally.total} kills (seed {seed}) in {n_runs} runs, all bit-identical: {tally.kills}"


def full_disk(work: Path, step: int) -> str:
    """Give the run `step` kilobytes more each time; a failed run must resume once there is space, and end equal."""
    recipe = write_recipe(work)
    assert ForkedRun(recipe, work / "whole").wait() == 0, output_of(work / "whole")
    whole = outcome(work / "whole")
    n_failed = 0
    for free in range(0, 4096, step):
        disk = work / "disk"
        disk.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(disk)], check=True)
        try:
            state = os.statvfs(disk)
            (disk / "filler").write_bytes(bytes(state.f_bavail * state.f_frsize - free * 1024))
            code = ForkedRun(recipe, disk / "run").wait()
            (disk / "filler").unlink()
            for folder in (disk / "run").glob("*/step-*"):
                verify_manifest(folder, CheckpointError)
            if code == 0:
                return (
                    f"{n_failed} full disks, {step} KB apart: no checkpoint damaged, every run resumed, bit-identical"
                )
            n_failed += 1
            assert code == 1, output_of(disk / "run")
            assert ForkedRun(recipe, disk / "run").wait() == 0, output_of(disk / "run")
            assert not differences(outcome(disk / "run"), whole), free
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)
        report(f"{free} KB free: failed, resumed, identical")
    raise AssertionError("4 MB are not enough for the run")


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        if kind == "kills":
            report(kills(Path(scratch), int(rest[0]) if rest else 200))
        else:
            report(full_disk(Path(scratch), int(rest[0]) if rest else 16))
