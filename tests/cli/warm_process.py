"""Processes that run the command line without the seconds that importing torch takes: forks of one that has done it.

A fork has its own streams, folder, environment and exit code, and runs `python -m manyheads` from the first line on.
Preloaded are only modules in which nothing depends on the environment or on the arguments: none of `manyheads.cli`,
whose help texts are chosen on import. `test_warm_process.py` compares forks with processes that start from nothing.
"""

import atexit
import gc
import importlib
import json
import logging
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

_PRELOADED = (
    "click",
    "rich.live",
    "rich.progress",
    "rich.table",
    "torch._dynamo",  # imported by the first optimizer, for longer than a small training takes
    "manyheads.bench",
    "manyheads.bundle",
    "manyheads.compress",
    "manyheads.doctor",
    "manyheads.proposals",
    "manyheads.lens.pictures.head_pictures",
    "manyheads.report",
    "manyheads.run",
    "manyheads.serve.lens_page.lens_session",
)
# Python, its libraries and the C library read these when they start, or when torch is imported.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "OMP_", "MKL_", "GOMP_", "KMP_", "TORCH", "MPL", "LD_", "MALLOC_", "GLIBC_")
_MAX_REQUEST = 1 << 18  # bytes


class WarmProcess:
    """A process that has imported everything and forks once for each command."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._at_start = _read_at_start(environment)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_REQUEST)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=environment,
                pass_fds=[theirs.fileno()],
                # Python's streams remember whether they can seek. Those of commands are pipes, so these are pipes, too.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )

    def suits(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork behaves as a new process with this environment does."""
        return _read_at_start(environment) == self._at_start

    def run(
        self, words: Sequence[str], stdin: bytes, folder: Path, environment: Mapping[str, str], *, before: str = ""
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run `manyheads` with these words in a folder; `before` is Python code that the fork executes first."""
        pipes = [os.pipe() for _ in range(3)]
        (their_in, our_in), (our_out, their_out), (our_err, their_err) = pipes
        request = {"words": words, "folder": str(folder), "environment": dict(environment), "before": before}
        socket.send_fds(self._socket, [json.dumps(request).encode()], [their_in, their_out, their_err])
        for descriptor in (their_in, their_out, their_err):
            os.close(descriptor)
        with ThreadPoolExecutor(3) as threads:
            threads.submit(_write, our_in, stdin)
            out, err = (threads.submit(_read, descriptor) for descriptor in (our_out, our_err))
        answer = self._socket.recv(_MAX_REQUEST)
        if not answer:
            raise RuntimeError(f"The warm process ended: {self._process.communicate()[1].decode()}")
        return subprocess.CompletedProcess(words, int(answer), out.result(), err.result())

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.communicate()


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are read when a process starts; every command sets LANGUAGE itself."""
    return {
        name: value for name, value in environment.items() if name.startswith(_READ_AT_START) and name != "LANGUAGE"
    }


def _write(descriptor: int, content: bytes) -> None:
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as stream:
            while content:
                content = content[stream.write(content) :]
    except BrokenPipeError:  # the command did not read all of it
        return


def _read(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def _become_next_command(connection: socket.socket) -> None:
    """Fork for each request; return in the fork."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, _MAX_REQUEST, 3)
        if not request:
            sys.exit(0)
        child = os.fork()
        if child == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    connection.close()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    command = json.loads(request)
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["folder"])
    sys.path[0] = command["folder"]
    sys.argv[1:] = command["words"]
    exec(command["before"], {})


class _QuickEnd:
    """Ends a process as Python does, but does not free every object first: that takes longer than most commands."""

    def __init__(self) -> None:
        self.code: int | None = None  # of a fork
        atexit.register(self)  # before the modules of the command register theirs, so that it is called last

    def __call__(self) -> None:
        if self.code is None:
            return
        logging.shutdown()
        with suppress(OSError, ValueError):  # a stream that cannot be flushed: Python reports it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


if __name__ == "__main__":
    _end = _QuickEnd()
    for _name in _PRELOADED:
        importlib.import_module(_name)
    gc.freeze()  # else the first collection in each fork would copy all of this memory
    _become_next_command(socket.socket(fileno=int(sys.argv[1])))
    _end.code = 1  # of an exception
    try:
        runpy.run_module("manyheads", run_name="__main__", alter_sys=True)
        _end.code = 0
    except SystemExit as _exit:
        _end.code = _exit.code if isinstance(_exit.code, int) else int(_exit.code is not None)
        raise
