"""Kill a run at chosen and at random moments until it finishes."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faults.running import RunProcess, cache_of, entries, output_of

Start = Callable[[], RunProcess]
Moment = Callable[[], bool]

MOMENTS = ("tokenizing", "save", "end of epoch", "save", "any time", "within an epoch", "save", "any time", "bundle")


@dataclass
class Tally:
    """The number of kills by moment."""

    kills: dict[str, int] = field(default_factory=dict)

    def add(self, moment: str) -> None:
        self.kills[moment] = self.kills.get(moment, 0) + 1

    @property
    def total(self) -> int:
        return sum(self.kills.values())


def half_written(folder: Path, pattern: str) -> Moment:
    return lambda: any(folder.glob(pattern))


def at_end_of_epoch(folder: Path) -> Moment:
    """Return a moment: the log contains the first step of an epoch after the newest one at the time of the call."""
    newest = max((int(str(entry["epoch"])) for entry in entries(folder) if entry["event"] == "Step"), default=0)
    return lambda: any(entry["event"] == "Step" and int(str(entry["epoch"])) > newest for entry in entries(folder))


def after_steps(folder: Path, count: int) -> Moment:
    before = sum(entry["event"] == "Step" for entry in entries(folder))
    return lambda: sum(entry["event"] == "Step" for entry in entries(folder)) >= before + count


def kill_when(run: RunProcess, moment: Moment, delay: float) -> bool:
    """Kill the run `delay` seconds after the moment; return whether it was still running."""
    while not moment():
        if run.is_finished():
            return False
        time.sleep(0.0005)
    time.sleep(delay)
    if run.is_finished():
        return False
    run.kill()
    return True


def kill_until_done(
    folder: Path, start: Start, rng: random.Random, moments: Sequence[str], longest: float, tally: Tally
) -> None:
    """Kill a run once at each moment and start it again each time; then let it finish."""
    for name in moments:
        reached: dict[str, Moment] = {
            "tokenizing": half_written(cache_of(folder), rng.choice([".text-*", ".ids-*"])),
            "save": half_written(folder, rng.choice(["checkpoints/.step-*", "snapshots/.step-*"])),
            "bundle": half_written(folder, ".bundle.*"),
            "end of epoch": at_end_of_epoch(folder),
            "within an epoch": after_steps(folder, rng.randrange(1, 3)),
            "any time": lambda: True,
        }
        delay = rng.random() * (longest if name == "any time" else 0.003)
        run = start()
        if kill_when(run, reached[name], delay):
            code = run.wait()
            if code == -9:
                tally.add(name)
                continue
        assert run.wait() == 0, output_of(folder)
        return
    run = start()
    assert run.wait() == 0, output_of(folder)
