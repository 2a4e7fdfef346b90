"""Throughput and latency of `manyheads serve`, against the engine alone and against its peers, in one run.

    make bench-serve                                    needs runs/quickstart/bundle (make quickstart)
    make bench-serve ARGS="--rounds 1 --seconds 3"      a quick look
    make bench-serve ARGS="--no-peers"                  without LibreTranslate and CTranslate2 behind FastAPI
    make bench-serve ARGS="--base-size --seconds 15"    the same translations at the cost of the paper's base size

All systems serve the same weights, with the same beam, and get the same texts; each may use `--workers` cores, and the
load generator runs beside them on the same machine. They are started first and then take turns. Another system begins
each round, and the median over rounds is reported. CPU time per text is measured, too: it depends less than the other
figures on what else the machine does.

1. Throughput: 64 clients that send one text at a time, and clients that send 32 texts at a time.
2. Latency under load: Poisson arrivals at 80 % of the throughput with one text, over 64 connections, against one client
   alone. The same for peers, at 80 % of the throughput of each, and of all at the same rate.
3. Overload: Poisson arrivals at 5 times the throughput; the time until a refusal, and memory.
"""

import argparse
import asyncio
import itertools
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from base_size import widen
from engine_alone import EngineAlone
from http_client import fetch_now
from load import Prepared, closed_loop, open_loop, self_test, summarize
from process_tree import cpu_seconds, tree
from sentences import english, from_file
from systems import (
    ROOT,
    PeerSettings,
    Server,
    install_libretranslate,
    requests_for,
    settle,
    start_ctranslate2,
    start_libretranslate,
    start_manyheads,
)

from manyheads.bundle import load
from manyheads.interop import export_bundle

sys.path.insert(0, str(ROOT / "benchmarks" / "speed"))

from frame import stamp, store

RESULT = ROOT / "benchmarks" / "serve.json"
OURS = "manyheads"
BATCH = 32  # texts in a large request
N_LARGE = 16  # clients that send large requests


class Systems:
    """The running servers, by name, and requests for them."""

    def __init__(self, given: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
        self.given = given
        self.texts = from_file(given.texts, 2000) if given.texts else english(2000)
        decode = {"beam": given.beam}
        self.engine = stack.enter_context(EngineAlone(str(given.bundle), given.workers, decode))
        self.servers: dict[str, Server] = {}
        self.servers[OURS] = stack.enter_context(start_manyheads([f"served={given.bundle}"], given.workers))
        if not given.no_peers:
            exported = export(given.bundle, folder / "exported")
            python = install_libretranslate(given.peers / "libretranslate")
            one = PeerSettings(1, given.workers)
            for name, start in (
                ("CTranslate2 FastAPI, 1 process", lambda: start_ctranslate2(exported, given.beam, one)),
                (
                    f"CTranslate2 FastAPI, {given.workers} processes",
                    lambda: start_ctranslate2(exported, given.beam, PeerSettings(given.workers, 1)),
                ),
                (
                    "LibreTranslate",
                    lambda: start_libretranslate(exported, given.beam, one, python, folder / "libretranslate"),
                ),
            ):
                self.servers[name] = stack.enter_context(start())
                print(f"{name}: ready", file=sys.stderr, flush=True)

    def requests(self, name: str, n_texts: int, round_: int) -> Iterator[Prepared]:
        """Return endless requests; each round begins at another text."""
        first = round_ * 397 % len(self.texts)
        texts = self.texts[first:] + self.texts[:first]
        extra = {"decode": {"beam": self.given.beam}} if name == OURS else {}
        return itertools.cycle(requests_for(name, self.servers[name].port, texts, n_texts, **extra))

    def closed(self, name: str, n_texts: int, n_clients: int, round_: int, seconds: float) -> dict[str, Any]:
        server = self.servers[name]
        before = cpu_seconds(tree(server.pid))
        summary = summarize(
            asyncio.run(
                closed_loop(server.port, self.requests(name, n_texts, round_), n_clients, seconds, server=server.pid)
            )
        )
        cpu, n_texts_done = cpu_seconds(tree(server.pid)) - before, summary["texts_per_second"] * summary["seconds"]
        summary["server_cpu_share"] = round(cpu / summary["seconds"], 3)
        summary["cpu_per_text"] = round(1000 * cpu / max(1.0, n_texts_done), 3)
        settle()
        return summary

    def open(self, name: str, rate: float, round_: int, seconds: float, n_connections: int = 64) -> dict[str, Any]:
        server = self.servers[name]
        summary = summarize(
            asyncio.run(
                open_loop(
                    server.port,
                    self.requests(name, 1, round_),
                    rate,
                    seconds,
                    n_connections=n_connections,
                    server=server.pid,
                    seed=round_ + 1,
                )
            )
        )
        settle()
        return {"rate": round(rate, 1), **summary}


def export(bundle: Path, folder: Path) -> Path:
    """Export the bundle to CTranslate2."""
    export_bundle(load(bundle, engine="torch"), folder)
    return folder


def turned(names: Sequence[str], round_: int) -> list[str]:
    """Return the names, beginning with another one in each round."""
    first = round_ % len(names)
    return [*names[first:], *names[:first]]


def median_of(rounds: Sequence[dict[str, Any]], *keys: str) -> float:
    """Return the median over rounds of a value inside the summaries."""

    def dig(summary: Any) -> float:
        for key in keys:
            summary = summary[key]
        return float(summary)

    return round(statistics.median(dig(one) for one in rounds), 3)


def measure_throughput(systems: Systems) -> dict[str, Any]:
    """Rounds of: the engine alone, then every server with small and with large requests."""
    given = systems.given
    engine: list[dict[str, float]] = []
    rounds: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in systems.servers}
    for name in systems.servers:  # warm-up
        systems.closed(name, 1, 8, 0, 1.0)
    n_texts = calibrated(systems, given.seconds)
    for round_ in range(given.rounds):
        for name in turned(["engine", *systems.servers], round_):
            if name == "engine":
                texts = itertools.islice(itertools.cycle(systems.texts), round_ * 397, round_ * 397 + n_texts)
                engine.append(systems.engine.measure(list(texts)))
                continue
            for label, size, clients in (("1 text", 1, 64), (f"{BATCH} texts", BATCH, N_LARGE)):
                summary = systems.closed(name, size, clients, round_, given.seconds)
                rounds[name].setdefault(label, []).append(summary)
                check_all_answered(name, summary)
        print(f"throughput: round {round_ + 1} of {given.rounds}", file=sys.stderr, flush=True)
    record: dict[str, Any] = {
        "engine_alone": {
            "texts_per_second": median_of(engine, "texts_per_second"),
            "cpu_per_text": median_of(engine, "cpu_per_text"),
            "rounds": engine,
        },
        "servers": {
            name: {
                label: {
                    "texts_per_second": median_of(own, "texts_per_second"),
                    "cpu_per_text": median_of(own, "cpu_per_text"),
                    "p50": median_of(own, "milliseconds", "p50"),
                    "p99": median_of(own, "milliseconds", "p99"),
                    "rounds": own,
                }
                for label, own in labels.items()
            }
            for name, labels in rounds.items()
        },
    }
    for key, name in (("texts_per_second", "share_of_engine"), ("cpu_per_text", "cpu_of_engine")):
        record[name] = {
            label: round(statistics.median(one[key] / alone[key] for one, alone in zip(own, engine, strict=True)), 3)
            for label, own in rounds[OURS].items()
        }
    return record


def calibrated(systems: Systems, seconds: float) -> int:
    """Return how many texts keep the engine busy for a while."""
    speed = systems.engine.measure(systems.texts[:100])["texts_per_second"]
    return max(100, int(speed * seconds))


def check_all_answered(name: str, summary: dict[str, Any]) -> None:
    """Report a server that does not answer everything with 200."""
    if set(summary["statuses"]) != {"200"}:
        print(f"{name}: statuses {summary['statuses']}", file=sys.stderr, flush=True)


def measure_latency(systems: Systems, throughput: dict[str, Any]) -> dict[str, Any]:
    """Latency of one client alone, and of Poisson arrivals at 80 % of the throughput; also all at the same rate."""
    given = systems.given
    capacity = {name: labels["1 text"]["texts_per_second"] for name, labels in throughput["servers"].items()}
    same = 0.8 * min(capacity.values())
    rounds: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in systems.servers}
    for round_ in range(given.rounds):
        for name in turned(list(systems.servers), round_):
            kept = rounds[name]
            kept.setdefault("unloaded", []).append(systems.closed(name, 1, 1, round_, given.seconds))
            kept.setdefault("80 %", []).append(systems.open(name, 0.8 * capacity[name], round_, given.seconds))
            kept.setdefault("same rate", []).append(systems.open(name, same, round_, given.seconds))
        print(f"latency: round {round_ + 1} of {given.rounds}", file=sys.stderr, flush=True)
    return {
        name: {
            label: {
                "p50": median_of(own, "milliseconds", "p50"),
                "p99": median_of(own, "milliseconds", "p99"),
                "rounds": own,
            }
            for label, own in labels.items()
        }
        for name, labels in rounds.items()
    }


def measure_overload(systems: Systems, throughput: dict[str, Any]) -> dict[str, Any]:
    """Poisson arrivals at five times the throughput of manyheads serve."""
    capacity = throughput["servers"][OURS]["1 text"]["texts_per_second"]
    seconds = systems.given.overload_seconds
    systems.open(OURS, 5 * capacity, 0, min(3.0, seconds), n_connections=900)  # memory is allocated once
    summary = systems.open(OURS, 5 * capacity, 1, seconds, n_connections=900)
    ready = fetch_now(systems.servers[OURS].port, "/ready").status
    return {"capacity": capacity, **summary, "ready_afterwards": ready}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, default=ROOT / "runs" / "quickstart" / "bundle")
    parser.add_argument("--base-size", action="store_true", help="widen the model first, see base_size.py")
    parser.add_argument("--name", help="key of the result in serve.json; default: quickstart, or base size")
    parser.add_argument("--texts", type=Path, help="file of texts; default: sentences of the built-in corpus")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="of one measurement")
    parser.add_argument("--overload-seconds", type=float, default=30.0)
    parser.add_argument("--peers", type=Path, default=ROOT / ".peers", help="folder of the peers' environments")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--keep-nothing", action="store_true", help="print the result, but write no files")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are ended, too
    if not given.bundle.is_dir():
        parser.error(f"{given.bundle} is no bundle. Train one (make quickstart), or name it with --bundle.")
    given.bundle, given.peers = given.bundle.resolve(), given.peers.resolve()
    given.name = given.name or ("base size" if given.base_size else "quickstart")
    record: dict[str, Any] = {**stamp(), "beam": given.beam, "workers": given.workers}
    record["generator"] = self_test(64, 2.0)
    folder = Path(tempfile.mkdtemp(prefix="manyheads-serve-"))
    try:
        if given.base_size:
            widen(load(given.bundle, engine="torch")).save(folder / "bundle")
            given.bundle = folder / "bundle"
        with ExitStack() as stack:
            systems = Systems(given, folder, stack)
            record["throughput"] = measure_throughput(systems)
            record["latency"] = measure_latency(systems, record["throughput"])
            record["overload"] = measure_overload(systems, record["throughput"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if given.keep_nothing:
        print(json.dumps(record, indent=1))
        return
    store(RESULT, f"speed {given.name}", record)
    import serve_tables

    serve_tables.main()


if __name__ == "__main__":
    main()
