"""How many cores this process may use: a container or a batch system often grants fewer than the machine has."""

import math
import os
from contextlib import suppress
from pathlib import Path

_MEMBERSHIP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def count_cores() -> int:
    """The number of cores that this process may use, by its affinity and by the CPU quota of its control group."""
    quota = cpu_quota()
    return _count_visible() if quota == math.inf else max(1, min(_count_visible(), math.ceil(quota)))


def limit_threads() -> None:
    """Have OpenMP, which ignores quotas, start no more threads than there are cores; call it before torch is loaded."""
    if count_cores() < _count_visible():
        os.environ.setdefault("OMP_NUM_THREADS", str(count_cores()))


def _count_visible() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_quota() -> float:
    """The cores that the control groups of Linux grant this process; infinity if they set no limit."""
    quota = math.inf
    with suppress(OSError):
        for line in _MEMBERSHIP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "" or "cpu" in controllers.split(","):
                root = _CGROUPS / controllers
                own = root / path.lstrip("/")
                # Within a container the path may be that of the host, and its own group is the root.
                for folder in {root, *(group for group in (own, *own.parents) if group.is_relative_to(root))}:
                    quota = min(quota, _quota_of(folder))
    return quota


def _quota_of(folder: Path) -> float:
    """The quota of one group, of version 2 or 1."""
    with suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError):
        micros = int((folder / "cpu.cfs_quota_us").read_text())
        return math.inf if micros < 0 else micros / int((folder / "cpu.cfs_period_us").read_text())
    return math.inf
