"""The frame of the speed benchmarks: workers in processes of their own, asked in turns; medians; a stamp; a store.

A worker is a script that answers a line of JSON by a line of JSON (workers/turns.py). All workers of a run are started
first and then asked in turns, the first of a turn moving on by one each time: whatever else the machine does meets all
of them alike. A worker that waits costs nothing, so that one core is enough for any number.
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class WorkerError(Exception):
    """A worker gave up; the last line of its error."""


class Worker:
    """One process that answers."""

    def __init__(
        self, python: Path | str, script: str, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                [str(python), "-W", "ignore", str(HERE / "workers" / script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
                env=os.environ | _ONE_THREAD | dict(environment or {}),
            )

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """One answer; an error of the worker's is raised."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            said = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            raise WorkerError(said[-1].strip() if said else f"ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def end(self) -> None:
        """Nobody asks it any more."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


def ask_in_turns(
    workers: dict[str, Worker], messages: Sequence[Mapping[str, Any]], failed: dict[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """The replies of each worker; one that fails leaves `workers`, and `failed` has the last line of its error."""
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    for turn, message in enumerate(messages):
        names = list(workers)
        start = turn % max(1, len(names))
        for name in names[start:] + names[:start]:
            ask_or_fail(workers, name, message, failed, answers[name].append)
        print(f"turn {turn + 1} of {len(messages)}", file=sys.stderr, flush=True)
    return {name: answers[name] for name in workers}


def ask_or_fail(
    workers: dict[str, Worker],
    name: str,
    message: Mapping[str, Any],
    failed: dict[str, str],
    take: Callable[[dict[str, Any]], None],
) -> None:
    """Ask one worker; if it fails, report it and continue without it."""
    try:
        take(workers[name].ask(message))
    except WorkerError as error:
        failed[name] = str(error)
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        workers.pop(name).end()


def median_ratio(ones: Iterable[float], others: Iterable[float]) -> float:
    """The median of the ratios of each turn, in which both did the same work."""
    return statistics.median(one / other for one, other in zip(ones, others, strict=True))


def stamp() -> dict[str, Any]:
    """When, on what, and by which command."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),  # others' work stretches seconds, and CPU seconds much less
        # Where a user keeps things is nobody's business.
        "command": " ".join(["python", *(re.sub(r"[^=]*/", "", word) for word in sys.argv)]),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    best = next((name for name in ("avx512f", "avx2", "avx") if name in fields.get("flags", "").split()), "")
    return f"{fields.get('model name', platform.processor())} {best}".strip()


def store(path: Path, key: str, record: Mapping[str, Any]) -> None:
    """Put one record among the others of a file; the one that had its key before goes."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[key] = record
    path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
