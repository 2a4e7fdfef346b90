"""The parent's side of a check: start the child, read its answers, and end it if it goes beyond a limit."""

import json
import os
import secrets
import select
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from manyheads.learn import isolated_child
from manyheads.learn.submission import Submission

IMPORT_SECONDS = 120.0  # torch on a cold disk
MAX_ANSWERS = 32 << 20  # bytes of results
MAX_OUTPUT = 1 << 20  # bytes that a check may print
_CHUNK = 1 << 16
Ending = Literal["done", "loading", "exit", "time", "output", "answers"]


@dataclass
class ChildAnswer:
    """What the child reported: one message for each call that was finished, by kind of arrays."""

    ending: Ending = "exit"
    loading: dict[str, Any] = field(default_factory=dict)  # why the file could not be loaded
    calls: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    printed: str = ""
    seconds: float = 0.0  # after the imports


def run_child(submission: Submission, calls: list[list[Any]], *, seconds: float) -> ChildAnswer:
    """Run a learner's file in a child process with limits, on inputs encoded as JSON."""
    token = secrets.token_hex(16)
    request = json.dumps(_request(submission, calls, seconds, token)).encode()
    reading, writing = os.pipe()
    environment = {"PATH": os.defpath, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    if "SYSTEMROOT" in os.environ:
        environment["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    with tempfile.TemporaryDirectory(prefix="manyheads-learn-") as folder:
        child = subprocess.Popen(
            [sys.executable, "-I", "-B", "-W", "ignore", isolated_child.__file__, str(writing)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(writing,),
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(writing)
        try:
            return _Reader(child, reading, token, seconds).read(request)
        finally:
            _end(child)
            os.close(reading)


def run_here(submission: Submission, calls: list[list[Any]]) -> ChildAnswer:
    """Run a file of our own in this process, without limits; for tests of many files."""
    answer = ChildAnswer()
    isolated_child.run(_request(submission, calls, 0.0, ""), lambda message: _receive(answer, message))
    return answer


def _request(submission: Submission, calls: list[list[Any]], seconds: float, token: str) -> dict[str, Any]:
    return {
        "token": token,
        "source": submission.source,
        "filename": submission.path.name,
        "function": submission.function,
        "arrays": submission.arrays,
        "imports": submission.imports,
        "calls": calls,
        "seconds": seconds,
        "forbidden": [str(Path(isolated_child.__file__).resolve().parents[1])],
    }


def _receive(answer: ChildAnswer, message: dict[str, Any]) -> None:
    """Take a message; one that is out of order or malformed, as only forged ones are, is ignored."""
    if isinstance(message.get("loading"), dict):
        answer.loading, answer.ending = message["loading"], "loading"
    elif "done" in message:
        answer.ending = "done"
    elif (arrays := message.get("arrays")) in ("numpy", "torch") and _is_sound(message):
        calls = answer.calls.setdefault(arrays, [])
        if message.get("call") == len(calls):
            calls.append(message)


def _is_sound(message: dict[str, Any]) -> bool:
    changed = message.get("changed", [])
    return (
        isinstance(message.get("seconds", 0.0), int | float)
        and isinstance(changed, list)
        and all(isinstance(number, int) for number in changed)
        and all(isinstance(message.get(key, ""), str) for key in ("kind", "error", "text"))
        and isinstance(message.get("line"), int | None)
    )


class _Reader:
    """Reads results and printed text of a child until it ends or exceeds a limit."""

    def __init__(self, child: "subprocess.Popen[bytes]", results: int, token: str, seconds: float) -> None:
        self.child, self.results, self.token, self.seconds = child, results, token, seconds
        self.answer = ChildAnswer()
        self.started: float | None = None  # when the imports were done
        self.begun = time.monotonic()
        self._buffer = b""
        self._n_bytes = 0

    def read(self, request: bytes) -> ChildAnswer:
        """Send the request and collect answers."""
        assert self.child.stdin is not None and self.child.stdout is not None
        try:
            self.child.stdin.write(request)
            self.child.stdin.close()
        except BrokenPipeError:
            return self.answer
        printed = b""
        output = self.child.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(self.results, selectors.EVENT_READ)
            selector.register(output, selectors.EVENT_READ)
            while selector.get_map() and self.answer.ending == "exit":
                left = self._time_left()
                if left <= 0:
                    self.answer.ending = "time"
                    break
                for key, _events in selector.select(left):
                    chunk = os.read(key.fd, _CHUNK)
                    if not chunk:
                        selector.unregister(key.fd)
                    elif key.fd == output:
                        printed += chunk
                        if len(printed) > MAX_OUTPUT:
                            self.answer.ending = "output"
                    else:
                        self._take(chunk)
        if self.answer.ending == "done" and select.select([output], [], [], 0)[0]:
            printed += os.read(output, MAX_OUTPUT)
        self.answer.printed = printed[:MAX_OUTPUT].decode("utf-8", "replace")
        self.answer.seconds = time.monotonic() - (self.started or self.begun)
        return self.answer

    def _time_left(self) -> float:
        if self.started is None:
            return self.begun + IMPORT_SECONDS - time.monotonic()
        return self.started + self.seconds - time.monotonic()

    def _take(self, chunk: bytes) -> None:
        """Take the complete lines; one that is no message of the child's own is ignored."""
        self._n_bytes += len(chunk)
        if self._n_bytes > MAX_ANSWERS:
            self.answer.ending = "answers"
            return
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(message, dict) or message.get("token") != self.token:
                continue
            if "ready" in message:
                self.started = time.monotonic()
            _receive(self.answer, message)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the child and every process of its group."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            child.kill()
    child.wait()
    if child.stdout is not None:
        child.stdout.close()
