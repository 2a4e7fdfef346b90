"""Start and stop the servers that are measured: manyheads serve, CTranslate2 behind FastAPI, and LibreTranslate."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from http_client import make_request, wait_until_ready
from load import Prepared
from process_tree import tree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
START = 120.0  # seconds until a server must be ready


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Server:
    """A server process: `with Server(…) as server`, ready at the beginning and ended at the end."""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        ready: str = "/ready",
        environment: Mapping[str, str] | None = None,
        name: str = "server",
    ) -> None:
        self.port, self.name = port, name
        self.log = Path(tempfile.mkstemp(prefix=f"manyheads-{name.replace(' ', '-')}-", suffix=".log")[1])
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=os.environ | ONE_THREAD | dict(environment or {}),
            )
        try:
            self.start_seconds = wait_until_ready(port, ready, START, lambda: self.process.poll() is None)
        except (TimeoutError, RuntimeError) as error:
            self.kill()
            raise RuntimeError(f"{name}: {error}. Its log, {self.log}, ends:\n{self.last_lines()}") from None

    @property
    def pid(self) -> int:
        return self.process.pid

    def last_lines(self, count: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self, seconds: float = 40.0) -> int:
        """Send SIGTERM and return the exit code; kill it if it does not end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.process.returncode

    def kill(self) -> None:
        for pid in reversed(tree(self.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(10)


def start_manyheads(bundles: Sequence[str], n_workers: int, *options: str, port: int = 0) -> Server:
    """Start `manyheads serve` from the source tree of PYTHONPATH, else from this one."""
    port = port or free_port()
    command = [sys.executable, "-m", "manyheads", "serve", *bundles, "--port", str(port), "--workers", str(n_workers)]
    path = os.environ.get("PYTHONPATH") or str(ROOT / "src")
    return Server([*command, *options], port, environment={"PYTHONPATH": path}, name="manyheads")


@dataclass(frozen=True)
class PeerSettings:
    """How a peer uses the cores."""

    processes: int = 1
    threads: int = 2  # of the engine in one process
    http_threads: int = 8  # of LibreTranslate


def start_ctranslate2(exported: Path, beam: int, settings: PeerSettings) -> Server:
    """Start CTranslate2 behind FastAPI."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "uvicorn", "--app-dir", str(HERE / "peers"), "ctranslate2_app:app"),
        *("--port", str(port), "--workers", str(settings.processes), "--log-level", "warning"),
    ]
    environment = {"MODEL": str(exported), "THREADS": str(settings.threads), "BEAM": str(beam)}
    return Server(command, port, environment=environment, name="CTranslate2 FastAPI")


def start_libretranslate(exported: Path, beam: int, settings: PeerSettings, python: Path, folder: Path) -> Server:
    """Start LibreTranslate on the same model; `python` is that of its environment."""
    subprocess.run([python, HERE / "peers" / "argos_package.py", exported, folder], check=True, env=_plain())
    port = free_port()
    environment = {
        **{f"XDG_{kind.upper()}_HOME": str(folder / kind) for kind in ("data", "cache", "config")},
        "ARGOS_PACKAGE_INDEX": "file:///nowhere/",
        "ARGOS_CHUNK_TYPE": "SPACY",
        "ARGOS_BEAM_SIZE": str(beam),
        "ARGOS_INTER_THREADS": str(settings.threads),
        "ARGOS_INTRA_THREADS": "1",
        "ARGOS_COMPUTE_TYPE": "float32",
        "PYTHONPATH": "",
        "PYTHONWARNINGS": "ignore",
    }
    options = [
        *("--host", "127.0.0.1", "--port", str(port), "--threads", str(settings.http_threads)),
        *("--disable-web-ui", "--disable-files-translation"),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    command = [str(python), "-m", "libretranslate.main", *options]
    return Server(["env", "-C", str(folder), *command], port, "/languages", environment, "LibreTranslate")


def _plain() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": "", "PYTHONWARNINGS": "ignore"}


def install_libretranslate(home: Path) -> Path:
    """Return the Python of LibreTranslate's environment; install it if necessary. It needs no torch."""
    python = home / "bin" / "python"
    if (home / "installed").exists():
        return python
    print(f"installing LibreTranslate into {home}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
    constraint = home / "constraints.txt"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    constraint.write_text("\n".join(line for line in lines if line.startswith(("torch==", "ctranslate2=="))) + "\n")
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", "-q", "--constraint", constraint]
    subprocess.run([*install, "libretranslate==1.9.6", "spacy"], check=True)
    (home / "installed").touch()
    return python


def requests_for(name: str, port: int, texts: Sequence[str], n_texts: int, **payload: Any) -> list[Prepared]:
    """Return the requests of a system for the same texts."""
    requests = []
    for first in range(0, len(texts), n_texts):
        part = list(texts[first : first + n_texts])
        if name.startswith("LibreTranslate"):
            body: dict[str, Any] = {"q": part if n_texts > 1 else part[0], "source": "en", "target": "zh"}
            requests.append(Prepared(make_request(port, "/translate", body), len(part)))
        elif name.startswith("CTranslate2"):
            requests.append(Prepared(make_request(port, "/translate", {"texts": part}), len(part)))
        else:
            requests.append(Prepared(make_request(port, "/v1/predict", {"texts": part, **payload}), len(part)))
    return requests


def settle(seconds: float = 0.5) -> None:
    """Let the connections of the last measurement close."""
    time.sleep(seconds)
