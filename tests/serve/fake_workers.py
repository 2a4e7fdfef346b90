"""Workers in threads instead of processes: they speak the protocol, and do what a test tells them."""

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import pytest

Message = dict[str, Any]
Behavior = Callable[["FakeProcess", Message], None]


def served(name: str = "b", version: str = "1", task: str = "seq2seq") -> dict[str, Any]:
    return {"name": name, "task": task, "version": version, "created": 0, "decode": {"method": "greedy"}}


def answer_all(worker: "FakeProcess", message: Message) -> None:
    """Answer each text with itself, streams with one part, and load whatever is asked for."""
    if "predict" in message:
        answers = [{"ok": json.dumps(text)} for text in message["texts"]]
        worker.send({"id": message["id"], "answers": answers})
    elif "load" in message:
        worker.send({"id": message["id"], "loaded": served(message["load"], worker.factory.version)})


class FakeProcess:
    """A worker process as multiprocessing shows it; `kill` ends it."""

    def __init__(self, factory: "FakeWorkers", connection: socket.socket, number: int) -> None:
        self.factory, self.number, self.pid, self.daemon = factory, number, number, False
        self._socket = connection
        self.received: list[Message] = []
        self.is_killed = False
        self._lock = threading.Lock()

    def start(self) -> None:
        self._own = socket.socket(fileno=os.dup(self._socket.fileno()))
        self._connection = Connection(os.dup(self._own.fileno()))
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.send({"ready": [served(version=self.factory.version)]})
            while True:
                self.factory.may_read.wait()
                self.factory.behavior(self, self.receive())
        except (EOFError, OSError):
            self._own.close()
            self._connection.close()

    def receive(self) -> Message:
        message: Message = json.loads(self._connection.recv_bytes())
        self.received.append(message)
        return message

    def send(self, message: Message) -> None:
        with self._lock:
            self._connection.send_bytes(json.dumps(message).encode())

    def kill(self) -> None:
        self.is_killed = True
        with suppress(OSError):
            self._own.shutdown(socket.SHUT_RDWR)

    def join(self, timeout: float | None = None) -> None:
        self.kill()
        self.thread.join(timeout)

    def is_alive(self) -> bool:
        return self.thread.is_alive()


class FakeWorkers:
    """Stands in for multiprocessing's context, and knows every worker that was started."""

    def __init__(self, behavior: Behavior = answer_all) -> None:
        self.behavior, self.version = behavior, "1"
        self.started: list[FakeProcess] = []
        self.may_read = threading.Event()
        self.may_read.set()

    def Process(self, target: Any, args: tuple[socket.socket, Mapping[str, str]], name: str) -> FakeProcess:  # noqa: N802
        self.started.append(FakeProcess(self, args[0], len(self.started)))
        return self.started[-1]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("manyheads.serve.service.worker_pool._context", lambda: self)

    def sent(self, kind: str) -> list[Message]:
        """All messages of a kind that workers have received."""
        return [message for worker in self.started for message in worker.received if kind in message]
