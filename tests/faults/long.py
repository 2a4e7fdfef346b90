"""The long versions of the fault tests: `make kills`, `make full-disk` and `make flips`. See benchmarks/faults.md."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from manyheads.bundle import load
from manyheads.data.corpus_cache import Cache
from manyheads.errors import BundleError, CheckpointError
from manyheads.storage import verify_manifest
from manyheads.training import Checkpoints

from faults.broken_restore import PARTS
from faults.killing import MOMENTS, Tally, kill_until_done
from faults.running import (
    ForkedRun,
    SpawnedRun,
    cache_of,
    differences,
    entries,
    outcome,
    output_of,
    write_recipe,
)


def kills(work: Path, count: int, seed: int = 1) -> str:
    """Kill new processes `count` times; each finished run must equal an undisturbed one byte by byte.

    Then kill runs whose restore forgets a part of the state: each of them must differ.
    """
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
    for part in PARTS:
        report(f"a restore that forgets {part}: {_broken(recipe, work / f'forgets-{part}', part, rng, whole)}")
    return (
        f"{tally.total} kills (seed {seed}) in {n_runs} runs, all bit-identical: {tally.kills}; with a restore that "
        f"forgets {', '.join(PARTS)}: a difference each time"
    )


def _broken(recipe: Path, folder: Path, part: str, rng: random.Random, whole: dict[str, object]) -> str:
    """Kill a run whose restore forgets a part of the state, and require a difference."""
    moments = ["end of epoch", "within an epoch", "save"]
    kill_until_done(folder, lambda: SpawnedRun(recipe, folder, forgets=part), rng, moments, 0.0, Tally())
    steps = [str(entry["step"]) for entry in entries(folder) if entry["event"] == "Resumed" and entry["step"]]
    assert steps, f"{folder}: never killed after a checkpoint. Run it again with another seed."
    different = differences(outcome(folder), whole)
    assert "bundle/weights.safetensors" in different, f"a restore that forgets {part} was not noticed"
    return f"{len(different)} differences after resuming at step {', '.join(steps)}"


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


class _Receiver:
    """Stands in for a `Trainer`: records that a checkpoint was restored into it."""

    ema = True
    step = 0

    def restore(self, progress: dict[str, Any], *_state: object) -> None:
        self.step = progress["step"]


def flips(work: Path, count: int, seed: int = 1) -> str:
    """Change one byte of a finished run `count` times: of a checkpoint, a snapshot, the bundle or the cache."""
    recipe = write_recipe(work)
    folder = work / "run"
    assert ForkedRun(recipe, folder).wait() == 0, output_of(folder)
    rng, n_flips = random.Random(seed), dict.fromkeys(("checkpoint", "snapshot", "bundle", "cache"), 0)
    shutil.copytree(folder / "checkpoints", work / "resumed" / "checkpoints")  # restoring deletes later snapshots
    newest = max((work / "resumed" / "checkpoints").iterdir())
    identity = json.loads((newest / "progress.json").read_text())["identity"]
    parts = {
        "checkpoint": [newest],
        "snapshot": sorted((folder / "snapshots").iterdir()),
        "bundle": [folder / "bundle"],
        "cache": sorted(entry for entry in cache_of(folder).iterdir() if entry.is_dir()),
    }
    started = time.monotonic()
    for number in range(count):
        kind = rng.choice(list(parts))
        file = rng.choice(sorted(path for path in rng.choice(parts[kind]).iterdir() if path.stat().st_size))
        good, position = file.read_bytes(), rng.randrange(file.stat().st_size)
        file.write_bytes(good[:position] + bytes([good[position] ^ rng.randrange(1, 256)]) + good[position + 1 :])
        assert _is_detected(kind, file.parent, identity), f"seed {seed}, flip {number}: {file}, byte {position}"
        unused = newest.with_name(f"{newest.name}.unused")
        if unused.exists():
            unused.rename(newest)
        file.write_bytes(good)
        n_flips[kind] += 1
    assert not any(_is_detected(kind, parts[kind][0], identity) for kind in parts), "a whole file counts as damaged"
    return f"{count} changed bytes (seed {seed}), all detected: {n_flips}, {time.monotonic() - started:.0f} s"


def _is_detected(kind: str, damaged: Path, identity: str) -> bool:
    """Whether the reader of this part refuses it."""
    if kind == "checkpoint":
        receiver = _Receiver()
        warnings = Checkpoints(damaged.parents[1], 1, identity).restore(receiver)  # type: ignore[arg-type]
        return bool(warnings) and receiver.step < int(damaged.name.removeprefix("step-"))
    if kind == "cache":
        return bool(Cache(damaged.parent).problem(damaged.name))
    try:
        Checkpoints(damaged.parents[1], 3).averaged() if kind == "snapshot" else load(damaged)
    except (BundleError, CheckpointError):
        return True
    return False


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        if kind == "kills":
            report(kills(Path(scratch), int(rest[0]) if rest else 200))
        elif kind == "flips":
            report(flips(Path(scratch), int(rest[0]) if rest else 1000))
        else:
            report(full_disk(Path(scratch), int(rest[0]) if rest else 16))
