"""`manyheads serve` as a process of its own, for tests."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 300  # on a very busy machine


@dataclass
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class ServiceProcess:
    """A running server."""

    process: "subprocess.Popen[bytes]"
    host: str
    port: int
    log: Path

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}/"

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def request(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None, method: str | None = None
    ) -> Answer:
        """Send one request; a body that is not bytes is sent as JSON."""
        connection = self.connect()
        given = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            given.setdefault("Content-Type", "application/json")
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, given)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def predict(self, texts: Any, **fields: Any) -> list[dict[str, Any]]:
        """Return the predictions for some texts; fail if there is an error."""
        answer = self.request("/v1/predict", {"texts": texts, **fields})
        assert answer.status == 200, answer.content
        return list(answer.json["predictions"])

    def metric(self, name: str, headers: Mapping[str, str] | None = None) -> float:
        lines = self.request("/metrics", headers=headers).content.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if re.match(rf"{name}[ {{]", line))

    def workers(self) -> list[int]:
        """The process ids of the workers: the children of the fork server."""
        return children(children([self.process.pid]))

    def wait_until_ready(self, seconds: float = START_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended: {self.log.read_text()}")
            try:
                if self.request("/ready").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"the server is not ready: {self.log.read_text()}")


def children(parents: Iterable[int]) -> list[int]:
    """The process ids of the children of some processes."""
    wanted, found = set(parents), []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except (OSError, ProcessLookupError):
            continue
        if int(fields["PPid"]) in wanted:
            found.append(int(fields["Pid"]))
    return sorted(found)


@contextmanager
def serving_process(
    *bundles: str,
    log: Path,
    workers: int = 1,
    environment: Mapping[str, str] | None = None,
    options: tuple[str, ...] = (),
) -> Iterator[ServiceProcess]:
    """Start a server on a free port; it is ended by SIGTERM, and must end by itself then."""
    command = [sys.executable, "-m", "manyheads", "--lang", "en", "serve", *bundles, "--port", "0"]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--workers", str(workers), *options],
            stdout=stream,
            stderr=stream,
            env={**os.environ, **(environment or {})},
        )
        try:
            service = ServiceProcess(process, "127.0.0.1", _port(process, log), log)
            service.wait_until_ready()
            yield service
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def _port(process: "subprocess.Popen[bytes]", log: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text()):
            return int(found[1])
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"the server did not start: {log.read_text()}")
