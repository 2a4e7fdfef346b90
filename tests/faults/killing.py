"""Killing a run at chosen and at random moments, again and again, until it is through."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faults.running import RunProcess, cache_of, entries, told

Start = Callable[[], RunProcess]
Moment = Callable[[], bool]

MOMENTS = ("tokenizing", "save", "epoch's end", "save", "any time", "within an epoch", "save", "any time", "bundle")


@dataclass
class Tally:
    """How often a run was killed, by the moment it was meant for."""

    kills: dict[str, int] = field(default_factory=dict)

    def add(self, moment: str) -> None:
        self.kills[moment] = self.kills.get(moment, 0) + 1

    @property
    def total(self) -> int:
        return sum(self.kills.values())


def half_written(folder: Path, pattern: str) -> Moment:
    return lambda: any(folder.glob(pattern))


def at_an_epochs_end(folder: Path) -> Moment:
    """The moment the log tells of the first update of an epoch that was not begun when we started to watch."""
    newest = max((int(str(entry["epoch"])) for entry in entries(folder) if entry["event"] == "Step"), default=0)
    return lambda: any(entry["event"] == "Step" and int(str(entry["epoch"])) > newest for entry in entries(folder))


def after_steps(folder: Path, count: int) -> Moment:
    before = sum(entry["event"] == "Step" for entry in entries(folder))
    return lambda: sum(entry["event"] == "Step" for entry in entries(folder)) >= before + count


def kill_when(run: RunProcess, moment: Moment, delay: float) -> bool:
    """Kill the run `delay` seconds after the moment; whether it was still there to be killed."""
    while not moment():
        if run.is_over():
            return False
        time.sleep(0.0005)
    time.sleep(delay)
    if run.is_over():
        return False
    run.kill()
    return True


def kill_until_done(
    folder: Path, start: Start, chance: random.Random, moments: Sequence[str], longest: float, tally: Tally
) -> None:
    """Kill a run once for each moment it lives to see, start it again each time, then let it end."""
    for name in moments:
        watch: dict[str, Moment] = {
            "tokenizing": half_written(cache_of(folder), chance.choice([".text-*", ".ids-*"])),
            "save": half_written(folder, chance.choice(["checkpoints/.step-*", "snapshots/.step-*"])),
            "bundle": half_written(folder, ".bundle.*"),
            "epoch's end": at_an_epochs_end(folder),
            "within an epoch": after_steps(folder, chance.randrange(1, 3)),
            "any time": lambda: True,
        }
        delay = chance.random() * (longest if name == "any time" else 0.003)
        run = start()
        if kill_when(run, watch[name], delay):
            code = run.wait()
            if code == -9:
                tally.add(name)
                continue
        assert run.wait() == 0, told(folder)
        return
    run = start()
    assert run.wait() == 0, told(folder)
