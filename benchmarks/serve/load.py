"""Load generator for HTTP services on this machine.

    python benchmarks/serve/load.py --port 8876 --clients 64 --seconds 10        closed loop: 64 clients
    python benchmarks/serve/load.py --port 8876 --rate 200 --seconds 10          open loop: Poisson arrivals
    python benchmarks/serve/load.py --self-test                                  the generator's own limit

In a closed loop every client sends its next request when it has the answer. In an open loop requests arrive at random
times whatever the server does, and a latency is counted from the arrival, also if no connection was free (otherwise a
server that stalls would not get the requests that would have been slow). `--self-test` measures the generator against
a server that does nothing, in a process of its own.
"""

import argparse
import asyncio
import collections
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from http_client import Connection, LostError, Response, connect, fetch_now, make_request
from process_tree import MemoryWatch, cpu_seconds, growth, tree

HERE = Path(__file__).resolve().parent
LOST = 0  # the status of a request whose connection ended without a response
_LAST = 60.0  # seconds that requests under way have after the end of a measurement


@dataclass
class Samples:
    """What was measured: for each request its arrival, its latency and its status."""

    arrivals: list[float] = field(default_factory=list)  # seconds since the start
    latencies: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    seconds: float = 0.0  # of the whole measurement
    client_cpu: float = 0.0  # seconds of CPU time of the generator
    n_texts: int = 0  # in requests with status 200
    memory: list[tuple[float, int]] = field(default_factory=list)

    def add(self, arrival: float, latency: float, status: int, n_texts: int) -> None:
        self.arrivals.append(arrival)
        self.latencies.append(latency)
        self.statuses.append(status)
        self.n_texts += n_texts if status == 200 else 0


@dataclass(frozen=True)
class Prepared:
    """A request that is ready to be sent."""

    content: bytes
    n_texts: int = 1


Check = Callable[[Prepared, Response], None]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is not exceeded by this share of the values (nearest rank)."""
    if not values:
        raise ValueError("percentile of no values.")
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]


def describe(latencies: Sequence[float]) -> dict[str, float]:
    """Return percentiles in milliseconds."""
    if not latencies:
        return {}
    named = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(1000 * percentile(latencies, share), 2) for name, share in named.items()}


def summarize(samples: Samples) -> dict[str, Any]:
    """Return throughput, latencies by status, and memory."""
    by_status: dict[int, list[float]] = collections.defaultdict(list)
    for latency, status in zip(samples.latencies, samples.statuses, strict=True):
        by_status[status].append(latency)
    summary: dict[str, Any] = {
        "seconds": round(samples.seconds, 2),
        "requests": len(samples.statuses),
        "requests_per_second": round(len(by_status[200]) / samples.seconds, 1),
        "texts_per_second": round(samples.n_texts / samples.seconds, 1),
        "statuses": {str(status): len(values) for status, values in sorted(by_status.items()) if values},
        "milliseconds": describe(by_status[200]),
        "client_cpu_share": round(samples.client_cpu / samples.seconds, 3),
    }
    for status, values in sorted(by_status.items()):
        if status != 200 and values:
            summary[f"milliseconds_{status}"] = describe(values)
    if len(samples.memory) > 1:
        values = [value for _, value in samples.memory]
        summary["rss_megabytes"] = {
            "first": round(values[0] / 1e6, 1),
            "last": round(values[-1] / 1e6, 1),
            "max": round(max(values) / 1e6, 1),
            "growth_percent": round(100 * growth(samples.memory), 2),
        }
    return summary


async def closed_loop(
    port: int,
    requests: Iterable[Prepared],
    n_clients: int,
    seconds: float,
    *,
    server: int | None = None,
    check: Check | None = None,
) -> Samples:
    """Let clients send requests one after the other for a while, or until there are none left."""
    pending, samples = iter(requests), Samples()
    start, cpu = time.perf_counter(), time.process_time()

    async def client() -> None:
        connection: Connection | None = None
        while time.perf_counter() - start < seconds:
            request = next(pending, None)
            if request is None:
                break
            arrival = time.perf_counter()
            status = LOST
            try:
                if connection is None or not connection.is_open:
                    connection = await connect(port)
                response = await connection.ask(request.content)
                status = response.status
                if check is not None:
                    check(request, response)
            except (LostError, OSError):
                connection = None
            samples.add(arrival - start, time.perf_counter() - arrival, status, request.n_texts)
            if status == LOST:
                await asyncio.sleep(0.01)
        if connection is not None:
            connection.close()

    async def run() -> None:
        await asyncio.gather(*(client() for _ in range(n_clients)))

    await _watched(run(), samples, server)
    samples.seconds, samples.client_cpu = time.perf_counter() - start, time.process_time() - cpu
    return samples


def poisson(rate: float, seconds: float, seed: int = 1) -> Iterator[float]:
    """Yield the arrival times of a Poisson process."""
    draw, now = random.Random(seed), 0.0
    while True:
        now += draw.expovariate(rate)
        if now >= seconds:
            return
        yield now


async def open_loop(
    port: int,
    requests: Iterable[Prepared],
    rate: float,
    seconds: float,
    *,
    n_connections: int = 64,
    server: int | None = None,
    seed: int = 1,
    check: Check | None = None,
) -> Samples:
    """Send requests at random times, over a pool of connections; what finds none free waits for one."""
    samples, free = Samples(), asyncio.LifoQueue[Connection | None]()
    for _ in range(n_connections):
        free.put_nowait(None)
    pending, tasks = iter(requests), set[asyncio.Task[None]]()
    start, cpu = time.perf_counter(), time.process_time()

    async def send(request: Prepared, arrival: float) -> None:
        connection, status = await free.get(), LOST
        try:
            if connection is None or not connection.is_open:
                connection = await connect(port)
            response = await connection.ask(request.content)
            status = response.status
            if check is not None:
                check(request, response)
        except (LostError, OSError):
            connection = None
        finally:
            free.put_nowait(connection)
            samples.add(arrival, time.perf_counter() - start - arrival, status, request.n_texts)

    async def run() -> None:
        for arrival, request in zip(poisson(rate, seconds, seed), pending, strict=False):
            wait = arrival - (time.perf_counter() - start)
            if wait > 0:
                await asyncio.sleep(wait)
            elif len(samples.statuses) % 50 == 0:
                await asyncio.sleep(0)
            task = asyncio.create_task(send(request, arrival))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(set(tasks), timeout=_LAST)

    await _watched(run(), samples, server)
    samples.seconds, samples.client_cpu = time.perf_counter() - start, time.process_time() - cpu
    while not free.empty():
        connection = free.get_nowait()
        if connection is not None:
            connection.close()
    return samples


async def _watched(work: Any, samples: Samples, server: int | None) -> None:
    if server is None:
        await work
        return
    async with MemoryWatch(server) as watch:
        await work
    samples.memory = watch.samples


def prepare(port: int, path: str, texts: Sequence[str], n_texts: int = 1, **payload: Any) -> list[Prepared]:
    """Return requests of /v1/predict with `n_texts` texts each."""
    parts = [list(texts[first : first + n_texts]) for first in range(0, len(texts), n_texts)]
    return [Prepared(make_request(port, path, {"texts": part, **payload}), len(part)) for part in parts]


def self_test(n_clients: int, seconds: float) -> dict[str, Any]:
    """Measure the generator against a server that does nothing."""
    process = subprocess.Popen([sys.executable, str(HERE / "stub.py"), "--trivial"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        requests = itertools.cycle(prepare(port, "/v1/predict", [f"text {number}" for number in range(100)]))
        samples = asyncio.run(closed_loop(port, requests, n_clients, seconds))
        summary = summarize(samples)
        summary["client_microseconds_per_request"] = round(1e6 * samples.client_cpu / len(samples.statuses), 1)
        summary["server_microseconds_per_request"] = round(
            1e6 * cpu_seconds(tree(process.pid)) / len(samples.statuses), 1
        )
        return summary
    finally:
        process.terminate()
        process.wait(timeout=10)
        process.stdout.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8876)
    parser.add_argument("--path", default="/v1/predict")
    parser.add_argument("--bundle", help="name of the bundle to ask")
    parser.add_argument("--clients", type=int, default=64, help="clients, or connections of an open loop")
    parser.add_argument("--rate", type=float, help="requests per second of an open loop; default: a closed loop")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--texts", type=int, default=1, help="texts in a request")
    parser.add_argument("--server", type=int, help="process id of the server, whose memory is watched")
    parser.add_argument("--self-test", action="store_true")
    given = parser.parse_args()
    if given.self_test:
        print(json.dumps(self_test(given.clients, given.seconds), indent=1))
        return
    from sentences import english

    extra = {"bundle": given.bundle} if given.bundle else {}
    if fetch_now(given.port, "/live").status != 200:
        sys.exit(f"No server answers on port {given.port}.")
    requests = itertools.cycle(prepare(given.port, given.path, english(2000), given.texts, **extra))
    if given.rate:
        loop = open_loop(
            given.port, requests, given.rate, given.seconds, n_connections=given.clients, server=given.server
        )
    else:
        loop = closed_loop(given.port, requests, given.clients, given.seconds, server=given.server)
    print(json.dumps(summarize(asyncio.run(loop)), indent=1))


if __name__ == "__main__":
    main()
