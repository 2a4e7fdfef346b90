"""Shared code of the speed benchmarks: worker processes, medians, the stamp of a record, and stored results.

A worker is a script that answers each line of JSON with a line of JSON (workers/turns.py). All workers of a run are
started first. They then take turns, and another worker begins each turn, so that other load on the machine affects all
of them equally. A waiting worker uses no CPU time, so one core is enough for any number of workers.
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
    """A worker failed; the message is the last line of its error."""


class Worker:
    """A process that answers messages."""

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
        """Return the answer to a message; raise `WorkerError` if the worker fails."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            raise WorkerError(lines[-1].strip() if lines else f"ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def end(self) -> None:
        """Close the worker's input and wait until it ends."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


def ask_in_turns(
    workers: dict[str, Worker], messages: Sequence[Mapping[str, Any]], failed: dict[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """Return the answers of each worker. A worker that fails is moved from `workers` to `failed`, with its error."""
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
    """The median ratio over turns; in each turn, both did the same work."""
    return statistics.median(one / other for one, other in zip(ones, others, strict=True))


def stamp() -> dict[str, Any]:
    """Return the date, the machine and the command of a measurement."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),  # other load increases wall time a lot, CPU time little
        # Folders are removed: they may be private.
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
    """Add a record to a JSON file; it replaces an older record with the same key."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[key] = record
    path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
