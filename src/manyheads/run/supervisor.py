"""`supervise`: start the processes of a run on this machine, end them together, and restart them after a crash.

Every process runs the same command with torchrun's variables. Only rank 0 writes to the terminal. A process that dies
of a signal, or loses another one, is a crash: all are restarted and resume from the last checkpoint. A process that
ends with an error, such as a faulty recipe, is not: rank 0 has reported it.
"""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import IO

from manyheads.cores import count_cores
from manyheads.messages import _
from manyheads.run.stopping import stop_signals
from manyheads.training.process_group import LOST, SUPERVISOR_VARIABLE

_HOST = "127.0.0.1"
_POLL = 0.05  # seconds
_GRACE = 10.0  # seconds in which rank 0 reports the error of another process
_INTERRUPTED = 130


@dataclass(frozen=True)
class _Death:
    """How a process ended before its time."""

    rank: int
    code: int  # negative: the number of a signal
    last_line: str = ""  # of its standard error
    is_silent: bool = False  # it has not ended, but does not answer

    @property
    def is_crash(self) -> bool:
        return self.code < 0 or self.code == LOST

    def describe(self, n_processes: int) -> str:
        if self.code < 0:
            name = signal.Signals(-self.code).name if -self.code in set(signal.Signals) else str(-self.code)
            return _(
                "Process {rank} of {n_processes} was killed ({name}).",
                rank=self.rank,
                n_processes=n_processes,
                name=name,
            )
        if self.is_silent:
            return _("Process {rank} of {n_processes} does not answer.", rank=self.rank, n_processes=n_processes)
        if self.code == LOST:
            return _(
                "Process {rank} of {n_processes} lost the connection to the others.",
                rank=self.rank,
                n_processes=n_processes,
            )
        reason = f": {self.last_line}" if self.last_line else ""
        return _(
            "Process {rank} of {n_processes} ended with exit code {code}{reason}.",
            rank=self.rank,
            n_processes=n_processes,
            code=self.code,
            reason=reason,
        )


def supervise(command: Sequence[str], n_processes: int, n_restarts: int, report: Callable[[str], None]) -> int:
    """Run the command in this many processes until they have finished; return the exit code.

    After a crash they are started again at most `n_restarts` times; `report` gets one line about each crash.
    """
    for attempt in range(n_restarts + 1):
        with _Processes(command, n_processes) as processes, processes.forwarding_signals():
            death = processes.wait()
            if death is None:
                return 0
            if processes.was_stopped or death.code == _INTERRUPTED:
                return _INTERRUPTED if death.is_crash else death.code
            if not death.is_crash:
                if death.rank:  # otherwise rank 0 has reported it
                    report(death.describe(n_processes))
                return death.code
        left = n_restarts - attempt
        if left:
            restarting = _("Restarting all from the last checkpoint ({left} more restarts allowed).", left=left)
        else:
            restarting = _(
                "No restart is left. Everything up to the last checkpoint is saved: run the same command again "
                "to resume."
            )
        report(f"{death.describe(n_processes)} {restarting}")
    return LOST


class _Processes:
    """The processes of one attempt. As a context manager it ends those that are left."""

    def __init__(self, command: Sequence[str], n_processes: int) -> None:
        self.was_stopped = False
        self._outputs: list[IO[bytes]] = []
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        environ = _environment(n_processes)
        for rank in range(n_processes):
            self._running[rank] = self._start(command, rank, environ)
        self._leader = self._running[0]

    def _start(self, command: Sequence[str], rank: int, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._outputs.append(output)
        return subprocess.Popen(
            command,
            env={**environ, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdin=subprocess.DEVNULL,
            stdout=None if rank == 0 else output,
            stderr=None if rank == 0 else output,
            # A group of its own: Ctrl-C reaches only this process, which passes it on to rank 0.
            process_group=0,
        )

    def __enter__(self) -> "_Processes":
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()
        for output in self._outputs:
            output.close()

    @contextmanager
    def forwarding_signals(self) -> Iterator[None]:
        """Within, Ctrl-C and SIGTERM go to rank 0, which saves a checkpoint and ends the others."""

        def forward(number: int, frame: FrameType | None) -> None:
            self.was_stopped = True
            if self._leader.poll() is None:
                self._leader.send_signal(number)

        before = {number: signal.signal(number, forward) for number in stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def wait(self) -> _Death | None:
        """Wait for all to finish, or for a death; return the one that caused the others."""
        while self._running:
            death = self._find_death()
            if death is not None:
                return self._find_cause(death)
            time.sleep(_POLL)
        return None

    def _find_death(self) -> _Death | None:
        """Forget processes that have ended; return one that failed, rather not one that only lost another."""
        deaths = []
        for rank, process in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[rank]
                if code:
                    deaths.append(_Death(rank, code, self._last_line(rank)))
        return min(deaths, key=lambda death: (death.code == LOST, death.rank), default=None)

    def _find_cause(self, death: _Death) -> _Death:
        """Wait a moment for rank 0 to report another process's error, or for what a process lost to turn up."""
        if death.code < 0 or (death.rank == 0 and death.code != LOST):
            return death
        deadline = time.monotonic() + _GRACE
        while self._running and time.monotonic() < deadline:
            later = self._find_death()
            is_cause = later is not None and (death.code == LOST or later.rank == 0 or later.code < 0)
            if later is not None and is_cause and later.code != LOST:
                return later
            time.sleep(_POLL)
        if self._running and death.code == LOST:  # what was lost is still there, for instance stopped
            return _Death(min(self._running), LOST, is_silent=True)
        return death

    def _last_line(self, rank: int) -> str:
        output = self._outputs[rank]
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - 2000))
        lines = output.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1].removeprefix("Error: ").rstrip(".") if lines else ""


def _environment(n_processes: int) -> dict[str, str]:
    """Return the variables of all processes: where rank 0 is, and how many threads each has."""
    with socket.create_server((_HOST, 0)) as free:
        port = free.getsockname()[1]
    threads = max(1, count_cores() // n_processes)
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
    return {
        "OMP_NUM_THREADS": str(threads),
        "GLOO_SOCKET_IFNAME": loopback,
        **os.environ,
        "WORLD_SIZE": str(n_processes),
        "LOCAL_WORLD_SIZE": str(n_processes),
        "MASTER_ADDR": _HOST,
        "MASTER_PORT": str(port),
        SUPERVISOR_VARIABLE: str(os.getpid()),
    }
