"""The long forms of the fault tests: `make kills` and `make full-disk`. Results belong in benchmarks/faults.md."""

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
from faults.running import ForkedRun, SpawnedRun, differences, outcome, told, write_recipe


def kills(work: Path, count: int, seed: int = 1) -> str:
    """Kill fresh processes so many times; each run that is through must have the bytes of an undisturbed one."""
    recipe = write_recipe(work)
    started = time.monotonic()
    assert SpawnedRun(recipe, work / "whole").wait() == 0, told(work / "whole")
    longest = time.monotonic() - started
    whole = outcome(work / "whole")
    chance, tally, n_runs = random.Random(seed), Tally(), 0
    while tally.total < count:
        folder = work / f"run-{n_runs}"
        moments = [*MOMENTS[:1], *chance.sample(MOMENTS[1:-1], len(MOMENTS) - 2), *MOMENTS[-1:]]
        kill_until_done(folder, lambda folder=folder: SpawnedRun(recipe, folder), chance, moments, longest, tally)
        found = differences(outcome(folder), whole)
        assert not found, f"seed {seed}, {folder}: {found}"
        n_runs += 1
        say(f"{tally.total} kills, {n_runs} runs, all equal: {tally.kills}")
    return f"{tally.total} kills (seed {seed}) in {n_runs} runs, every one equal to the byte: {tally.kills}"


def full_disk(work: Path, step: int) -> str:
    """Leave so many kilobytes more free each time; the run that failed goes on when there is room, and ends equal."""
    recipe = write_recipe(work)
    assert ForkedRun(recipe, work / "whole").wait() == 0, told(work / "whole")
    whole = outcome(work / "whole")
    n_failed = 0
    for free in range(0, 4096, step):
        disk = work / "disk"
        disk.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(disk)], check=True)
        try:
            room = os.statvfs(disk)
            (disk / "filler").write_bytes(bytes(room.f_bavail * room.f_frsize - free * 1024))
            code = ForkedRun(recipe, disk / "run").wait()
            (disk / "filler").unlink()
            for folder in (disk / "run").glob("*/step-*"):
                verify_manifest(folder, CheckpointError)
            if code == 0:
                return (
                    f"{n_failed} full disks, {step} KB apart: no checkpoint damaged, every run went on and ended equal"
                )
            n_failed += 1
            assert code == 1, told(disk / "run")
            assert ForkedRun(recipe, disk / "run").wait() == 0, told(disk / "run")
            assert not differences(outcome(disk / "run"), whole), free
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)
        say(f"{free} KB free: stopped, went on, equal")
    raise AssertionError("4 MB were not enough for the run")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        if kind == "kills":
            say(kills(Path(scratch), int(rest[0]) if rest else 200))
        else:
            say(full_disk(Path(scratch), int(rest[0]) if rest else 16))
