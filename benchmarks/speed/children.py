"""Measurements in a child of their own: the most memory it held beyond what it began with, and its CPU time.

A child is forked when torch is there and warm, so that nothing of the one before is left in its memory, and nothing is
imported again. Linux only: elsewhere the most a process held cannot be set back.
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
    """Extra bytes of the first time, CPU seconds of those that follow, or of the first if it was long already."""
    ctypes.CDLL(None).malloc_trim(0)
    _CLEAR.write_text("5")  # the peak is now what is held now
    before = _kilobytes("VmRSS")
    times = [_time(work)]
    extra = max(0, _kilobytes("VmHWM") - before) * 1024
    while len(times) < 1 + most and sum(times) < seconds:
        times.append(_time(work))
    return {"extra_bytes": extra, "cpu": times[1:] or times}


def _time(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` gives, computed in a fork; an error of its is ours."""
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
        raise SystemExit("This benchmark counts memory by /proc, which only Linux has.")
