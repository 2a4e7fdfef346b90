"""How the threads of a matrix product wait for one another: spinning if the machine is idle, asleep if it is busy.

A spinning thread goes on at once, but on a busy machine it takes the core from the thread that it waits for. GNU OpenMP
reads its settings only when it is loaded; but as long as there are more of its threads than cores, they hardly spin.
While other programs want the cores, a second team of threads therefore exists, asleep. What is computed, and in which
order, stays the same (docs/decisions/0053).
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

_PERIOD = 0.5  # seconds between two looks at the load
_BUSY, _CALM = 0.1, 0.02  # shares of the time that a thread which could run waits for a core
_N_CALM = 4  # periods without other load before threads spin again


@contextmanager
def waiting_by_load() -> Iterator[None]:
    """Within, threads of this process sleep instead of spinning as long as other programs want the cores."""
    waited = run_queue_clock()
    if waited is None or torch.get_num_threads() == 1:
        yield
        return
    end = threading.Event()
    watch = threading.Thread(target=_watch, args=(waited, end), name="manyheads-load", daemon=True)
    watch.start()
    try:
        yield
    finally:
        end.set()
        watch.join()


def run_queue_clock() -> Callable[[], float] | None:
    """A clock of the seconds that the calling thread has waited for a core; None where that is not known."""
    file = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")  # proc_schedstat: ran, waited, slices

    def waited() -> float:
        return int(file.read_text().split()[1]) / 1e9

    try:
        waited()
    except (OSError, IndexError, ValueError):
        return None
    return waited


class SpareTeam:
    """A second team of OpenMP threads, asleep."""

    def __init__(self) -> None:
        self._end = threading.Event()
        is_made = threading.Event()
        self._thread = threading.Thread(target=self._hold, args=(is_made,), name="manyheads-spare", daemon=True)
        self._thread.start()
        is_made.wait()

    def _hold(self, is_made: threading.Event) -> None:
        torch.zeros(2**18).add_(1.0)  # large enough to be split among threads, which makes this thread's team
        is_made.set()
        self._end.wait()

    def end(self) -> None:
        """End its threads."""
        self._end.set()
        self._thread.join()


class LoadRule:
    """Whether threads should sleep, from the share of each period that a thread waited for a core."""

    def __init__(self) -> None:
        self.is_busy = False
        self._n_calm = 0

    def update(self, share: float) -> bool:
        """Take in a period. Brief quiet does not count: a program that computes and reads in turn would toggle it."""
        self._n_calm = self._n_calm + 1 if share < _CALM else 0
        self.is_busy = share > _BUSY or (self.is_busy and self._n_calm < _N_CALM)
        return self.is_busy


def _watch(waited: Callable[[], float], end: threading.Event) -> None:
    rule, team = LoadRule(), None
    before = time.perf_counter(), waited()
    while not end.wait(_PERIOD):
        try:
            now = time.perf_counter(), waited()
        except OSError:  # the thread that trains has ended
            break
        is_busy = rule.update((now[1] - before[1]) / (now[0] - before[0]))
        before = now
        if is_busy and team is None:
            team = SpareTeam()
        elif not is_busy and team is not None:
            team.end()
            team = None
    if team is not None:
        team.end()
