"""Memory, descriptors and children of a server's processes, read from /proc (Linux)."""

import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


def parents() -> dict[int, int]:
    """Return the parent of every process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # The name of a program may contain spaces and parentheses.
                found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def tree(root: int) -> list[int]:
    """Return a process and all processes below it."""
    above, found = parents(), [root]
    for pid in found:
        found += [child for child, parent in above.items() if parent == pid]
    return found


def command_line(pid: int) -> str:
    """Return the command of a process; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def rss(pids: Sequence[int]) -> int:
    """Return the resident bytes of processes; pages that they share are counted for each of them."""
    total = 0
    for pid in pids:
        with suppress(OSError, IndexError, ValueError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return total


def pss(pids: Sequence[int]) -> int:
    """Return the resident bytes of processes, a page that n of them share as one nth each: forks share most pages."""
    total = 0
    for pid in pids:
        with suppress(OSError, StopIteration, ValueError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return total


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return the CPU time of processes."""
    total = 0
    for pid in pids:
        with suppress(OSError, IndexError, ValueError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def n_descriptors(pid: int) -> int:
    """Return the number of open files and sockets of a process."""
    with suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


class MemoryWatch:
    """Samples the memory of a process tree while a block runs: `async with MemoryWatch(pid) as watch`."""

    def __init__(self, root: int, interval: float = 0.5) -> None:
        self.root, self.interval = root, interval
        self.samples: list[tuple[float, int]] = []  # seconds since the start, bytes

    async def __aenter__(self) -> "MemoryWatch":
        self._start = time.monotonic()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self.take()

    def take(self) -> None:
        self.samples.append((time.monotonic() - self._start, rss(tree(self.root))))

    async def _run(self) -> None:
        while True:
            self.take()
            await asyncio.sleep(self.interval)


def growth(samples: Sequence[tuple[float, int]], warm_up: float = 0.1, share: float = 0.1) -> float:
    """Return the relative growth of memory: the median of the last samples over that of the first after a warm-up."""
    if len(samples) < 2:
        raise ValueError(f"growth needs at least 2 samples; there are {len(samples)}.")
    values = [value for _, value in samples]
    first = min(int(len(values) * warm_up), len(values) - 2)
    count = max(1, int(len(values) * share))
    return statistics.median(values[-count:]) / statistics.median(values[first : first + count]) - 1
