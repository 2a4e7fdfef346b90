"""`EngineAlone`: worker processes that decode without a server, for comparison."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from process_tree import cpu_seconds
from systems import ONE_THREAD, ROOT

HERE = Path(__file__).resolve().parent


class EngineAlone:
    """As many processes as the server has workers; every text is decoded once by one of them."""

    def __init__(self, bundle: str, n_workers: int, decode: Mapping[str, Any]) -> None:
        path = os.environ.get("PYTHONPATH") or str(ROOT / "src")
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(HERE / "engine_worker.py"), bundle, json.dumps(decode)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | ONE_THREAD | {"PYTHONPATH": path},
            )
            for _ in range(n_workers)
        ]
        for process in self.processes:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"

    def measure(self, texts: Sequence[str]) -> dict[str, float]:
        """Decode the texts once, divided among the processes; return the speed, and the CPU time of a text in ms."""
        pids = [process.pid for process in self.processes]
        start, cpu = time.perf_counter(), cpu_seconds(pids)
        for number, process in enumerate(self.processes):
            assert process.stdin is not None
            process.stdin.write(json.dumps(texts[number :: len(self.processes)]) + "\n")
            process.stdin.flush()
        for number, process in enumerate(self.processes):
            assert process.stdout is not None
            answers = json.loads(process.stdout.readline())
            assert len(answers) == len(texts[number :: len(self.processes)])
        return {
            "texts_per_second": round(len(texts) / (time.perf_counter() - start), 1),
            "cpu_per_text": round(1000 * (cpu_seconds(pids) - cpu) / len(texts), 3),
        }

    def __enter__(self) -> "EngineAlone":
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.wait(timeout=60)
            process.stdout.close()
