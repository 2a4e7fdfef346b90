"""Measure peak memory and CPU time in a forked child process.

The parent has imported torch and warmed it up, so a child imports nothing again and holds no memory of earlier
measurements. Linux only: other systems cannot reset the peak memory of a process.

Pages of files are left out: a child has none of the libraries' code mapped after the fork, and what it maps again when
it first runs the code, some megabytes that depend on the machine, is not memory of the measured work.
"""

import ctypes
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _kilobytes(field: str) -> int:
    return next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith(field))


def measure(work: Callable[[], object], seconds: float, most: int = 20) -> dict[str, Any]:
    """Return the extra memory of the first call and the CPU seconds of the next ones (of the first if it was long)."""
    ctypes.CDLL(None).malloc_trim(0)
    _CLEAR.write_text("5")  # resets the peak to the current size
    before = _kilobytes("VmRSS") - _kilobytes("RssFile")
    times = [_time(work)]
    extra = max(0, _kilobytes("VmHWM") - _kilobytes("RssFile") - before) * 1024
    while len(times) < 1 + most and sum(times) < seconds:
        times.append(_time(work))
    return {"extra_bytes": extra, "cpu": times[1:] or times}


def _time(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of `work`, computed in a forked process; raise an error if it fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = json.dumps(work())
        except BaseException:
            traceback.print_exc()
            answer = ""
        with os.fdopen(writing, "w") as stream:
            stream.write(answer)
        sys.stderr.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    if not answer:
        raise RuntimeError("A measurement failed; the error is above.")
    return json.loads(answer)


def refuse_other_systems() -> None:
    if not _CLEAR.exists():
        raise SystemExit("This benchmark reads memory from /proc, which only Linux has.")
