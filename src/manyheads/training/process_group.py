"""`ProcessGroup`: the processes that train one model together.

Rank 0 leads: it prepares the data, validates, logs and saves, and tells the others before each step what comes next.
The others only compute. From the start, a heartbeat in a thread of its own notices a process that died, is stopped or
is unreachable. A process that prepares data for hours has a heartbeat.
"""

import atexit
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore

from manyheads.errors import LostProcessError, TrainingError
from manyheads.messages import _

TIMEOUT_VARIABLE = "MANYHEADS_TIMEOUT"  # seconds after which a process that does not answer is lost
SUPERVISOR_VARIABLE = "MANYHEADS_SUPERVISOR"  # process id of `manyheads train --processes`
LOST = 75  # exit code of a process that lost another one; "temporary failure" in sysexits.h

_DEFAULT_TIMEOUT = 120.0
_BEATS = 8  # heartbeats per timeout
_PATIENT = timedelta(days=30)  # of collectives: the heartbeat notices a lost process long before
_POLL = 0.05  # seconds between two looks into the store
_GRACE = 2.0  # seconds in which the other processes tell rank 0 that they are alive
_LOOPBACK = "127.0.0.1"
_GIVE_UP = 15.0  # seconds in which a process that lost the others reports this and ends
_COMMANDS = ("stop", "step", "weights", "ema", "optimizer")

logger = logging.getLogger("manyheads")


@dataclass
class ProcessGroup:
    """The processes of a run, as one of them sees them; by default it is alone."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # on its machine
    store: Any = None  # a torch.distributed.Store
    timeout: float = _DEFAULT_TIMEOUT
    is_stop_requested: bool = False  # by a signal to any process; rank 0 then saves and stops all
    _closing: threading.Event = field(default_factory=threading.Event)
    _is_abandoned: bool = False
    _heartbeat: threading.Thread | None = None

    @classmethod
    def join(cls, environ: Mapping[str, str] = os.environ) -> "ProcessGroup":
        """Join the group that torchrun's variables describe, and wait for the others; alone without the variables."""
        if "RANK" not in environ or int(environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        try:
            rank, size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
            host, port = environ["MASTER_ADDR"], int(environ["MASTER_PORT"])
            local_rank = int(environ.get("LOCAL_RANK", rank))
            timeout = float(environ.get(TIMEOUT_VARIABLE) or _DEFAULT_TIMEOUT)
        except (KeyError, ValueError) as error:
            raise TrainingError(
                _(
                    "RANK is set, but the variables of a process group are incomplete ({error}). Start the "
                    "processes with torchrun or with manyheads train --processes, or unset RANK.",
                    error=error,
                )
            ) from None
        store = _open_store(environ, host, port, rank, size, timeout)
        group = cls(rank, size, local_rank, store, timeout)
        group._wait_for_all()
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        with group.naming_lost():
            dist.init_process_group(
                backend, store=PrefixStore("group", store), rank=rank, world_size=size, timeout=_PATIENT
            )
            beats = dist.new_group(backend="gloo", timeout=timedelta(seconds=timeout))
        group._start_heartbeat(beats)
        return group

    @property
    def is_alone(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which prepares, validates, logs and saves."""
        return self.rank == 0

    def command(self, name: str) -> None:
        """Tell the other processes what to do next; only rank 0 may call it."""
        if not self.is_alone:
            self._share_number(_COMMANDS.index(name))

    def receive_command(self) -> str:
        """Wait for the next command of rank 0."""
        return _COMMANDS[self._share_number(0)]

    def share(self, message: dict[str, Any] | None = None) -> dict[str, Any]:
        """Give every process the message of rank 0, which must be writable as JSON."""
        if self.is_alone:
            return message or {}
        content = json.dumps(message).encode() if self.is_first else b""
        n_bytes = self._share_number(len(content))
        buffer = torch.frombuffer(bytearray(content or n_bytes), dtype=torch.uint8)
        self.broadcast(buffer)
        return json.loads(bytes(buffer.tolist()))

    def exchange(self, name: str, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Give every process the messages of all, by rank; each must be writable as JSON."""
        if self.is_alone:
            return [message]
        with self.naming_lost():
            self.store.set(f"{name}/{self.rank}", json.dumps(message))
            keys = [f"{name}/{rank}" for rank in range(self.size)]
            # To wait in the store would block the heartbeat's thread when it asks the store who is lost.
            while not self.store.check(keys):
                time.sleep(_POLL)
            messages = [json.loads(self.store.get(key)) for key in keys]
            self.store.set(f"{name}/{self.rank}/done", "")
        if self.is_first:  # the store ends with it, so the others must have read what they need
            with suppress(RuntimeError):
                self.store.wait([f"{key}/done" for key in keys], timedelta(seconds=_GIVE_UP))
        return messages

    def broadcast(self, tensor: Tensor) -> None:
        """Fill the tensor with that of rank 0."""
        if not self.is_alone:
            with self.naming_lost():
                dist.broadcast(tensor, src=0)

    def sum(self, numbers: list[float]) -> list[float]:
        """Add the numbers of all processes."""
        if self.is_alone:
            return numbers
        total = torch.tensor(numbers, dtype=torch.float64)
        with self.naming_lost():
            dist.all_reduce(total)
        return total.tolist()

    def add_up(self, tensor: Tensor) -> None:
        """Add the tensors of all processes in place; for a power of two, in the order of `gradients`."""
        with self.naming_lost():
            if self.size & (self.size - 1):
                dist.all_reduce(tensor)
                return
            other, distance = torch.empty_like(tensor), self.size // 2
            while distance:
                sending = dist.isend(tensor, self.rank ^ distance)
                dist.recv(other, self.rank ^ distance)
                if sending is not None:
                    sending.wait()
                tensor += other
                distance //= 2

    def _share_number(self, number: int) -> int:
        value = torch.tensor([number])
        self.broadcast(value)
        return int(value.item())

    @contextmanager
    def naming_lost(self) -> Iterator[None]:
        """Turn the error of a collective that fails because a process is lost into a `LostProcessError`."""
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, dist.DistError) or "gloo" in str(error) or "NCCL" in str(error):
                raise self._explain_loss() from None
            raise

    def _start_heartbeat(self, beats: Any) -> None:
        """Notice from now on, in a thread, when another process does not answer; this process then ends."""
        self._heartbeat = threading.Thread(target=self._beat, args=(beats,), daemon=True, name="heartbeat")
        self._heartbeat.start()
        atexit.register(self.abandon)

    def _beat(self, group: Any) -> None:
        supervisor = int(os.environ.get(SUPERVISOR_VARIABLE, "0"))
        n_closing = torch.zeros(1)
        while n_closing.item() < self.size:
            self._closing.wait(self.timeout / _BEATS)
            if self._is_abandoned:
                return
            n_closing.fill_(self._closing.is_set())
            try:
                dist.all_reduce(n_closing, group=group)
            except RuntimeError:
                # The main thread may wait for the lost process in a collective that nothing can interrupt. If the
                # operating system reports the loss to it, it reports it in turn and ends.
                if not self._closing.wait(2 * _GRACE):
                    self._end(self._explain_loss())
                return
            if supervisor and os.getppid() != supervisor:
                self._end(LostProcessError(_("The process that started this run is gone.")))

    def _end(self, error: TrainingError) -> None:
        if self.is_first or not self.has_leader_failed():
            logger.error(str(error))
        os._exit(LOST if isinstance(error, LostProcessError) else 1)

    def report_failure(self, error: BaseException) -> None:
        """Tell rank 0 why this process ends; on rank 0, tell the others that it reports its error itself."""
        with suppress(Exception):
            self.store.set("failure/0" if self.is_first else f"failure/{self.rank}", str(error))

    def has_leader_failed(self) -> bool:
        """Return whether rank 0 said that it ends with an error, which it reports itself."""
        try:
            return bool(self.store.check(["failure/0"]))
        except RuntimeError:
            return False

    def _explain_loss(self) -> TrainingError:
        """Return the error that another process reported, or name the processes that do not answer."""
        if self.is_first:
            return self._find_lost()
        # The store is at rank 0. If that is unreachable, nothing bounds the time that asking it takes.
        guard = threading.Timer(_GIVE_UP, self._give_up)
        guard.daemon = True
        guard.start()
        with suppress(RuntimeError):
            self.store.set(f"alive/{self.rank}", "1")
        return LostProcessError(
            _("Process {rank} of {size} lost the connection to the others.", rank=self.rank, size=self.size)
        )

    def _give_up(self) -> None:
        logger.error(_("Process 0 of {size} does not answer: process {rank} ends.", size=self.size, rank=self.rank))
        os._exit(LOST)

    def _find_lost(self) -> TrainingError:
        others = range(1, self.size)
        deadline = time.monotonic() + _GRACE
        alive: set[int] = set()
        with suppress(RuntimeError):
            while len(alive) < len(others) and time.monotonic() < deadline:
                for rank in others:
                    if self.store.check([f"failure/{rank}"]):
                        reason = self.store.get(f"failure/{rank}").decode()
                        return TrainingError(
                            _("Process {rank} of {size}: {reason}", rank=rank, size=self.size, reason=reason)
                        )
                    if self.store.check([f"alive/{rank}"]):
                        alive.add(rank)
                time.sleep(_POLL)
        lost = [rank for rank in others if rank not in alive] or list(others)
        hosts = [self._host_of(rank) for rank in lost]
        named = ", ".join(_("{rank} (on {host})", rank=rank, host=host) for rank, host in zip(lost, hosts, strict=True))
        return LostProcessError(
            _(
                "Process {ranks} of {size} died or does not answer. Everything up to the last checkpoint is saved: "
                "run the same command again to resume.",
                ranks=named,
                size=self.size,
            )
        )

    def _host_of(self, rank: int) -> str:
        with suppress(RuntimeError):
            if self.store.check([f"arrived/{rank}"]):
                return self.store.get(f"arrived/{rank}").decode()
        return "?"

    def _wait_for_all(self) -> None:
        """Wait until all processes have arrived; name the missing ones otherwise."""
        keys = [f"arrived/{rank}" for rank in range(self.size)]
        try:
            self.store.set(keys[self.rank], socket.gethostname())
            self.store.wait(keys, timedelta(seconds=self.timeout))
        except RuntimeError:
            try:
                missing = [rank for rank, key in enumerate(keys) if not self.store.check([key])]
            except RuntimeError:
                missing = [0]
            raise LostProcessError(
                _(
                    "Process {ranks} of {size} did not arrive within {timeout:g} s. Start all {size} processes "
                    "with the same command; {variable} sets the seconds to wait.",
                    ranks=", ".join(map(str, missing)),
                    size=self.size,
                    timeout=self.timeout,
                    variable=TIMEOUT_VARIABLE,
                )
            ) from None

    def finish(self) -> None:
        """Part from the other processes, all of which call this; afterwards, each may end when it likes."""
        if self._heartbeat is None or self._closing.is_set():
            return
        self._closing.set()
        self._heartbeat.join()
        dist.destroy_process_group()

    def abandon(self) -> None:
        """Stop the heartbeat after an error: this process is about to end."""
        self._is_abandoned = True
        self._closing.set()
        if self._heartbeat is not None:  # a thread that is within gloo when Python ends aborts the process
            self._heartbeat.join(_GRACE)


def _open_store(environ: Mapping[str, str], host: str, port: int, rank: int, size: int, timeout: float) -> Any:
    """Open the store through which the processes find one another; rank 0 hosts it, or torchrun does."""
    is_torchruns = environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    is_host = rank == 0 and not is_torchruns
    try:
        listening = socket.create_server((host, port)).detach() if is_host and host == _LOOPBACK else None
        store = TCPStore(
            host,
            port,
            size,
            is_host,
            timedelta(seconds=timeout),
            wait_for_workers=False,
            master_listen_fd=listening,  # by itself it would listen on all interfaces
        )
    except (RuntimeError, OSError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error).splitlines()[0]
        if rank == 0:
            raise TrainingError(
                _(
                    "MASTER_PORT = {port} on {host} cannot be used: {reason}. Choose another port, the same for "
                    "all processes.",
                    port=port,
                    host=host,
                    reason=reason,
                )
            ) from None
        raise LostProcessError(
            _(
                "Process 0 at {host}:{port} did not arrive within {timeout:g} s: {reason}.",
                host=host,
                port=port,
                timeout=timeout,
                reason=reason,
            )
        ) from None
    attempt = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"manyheads/{attempt}", store)
