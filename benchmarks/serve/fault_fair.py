"""Fairness: ten clients alone, and beside one that sends 100 times as many requests."""

import argparse
import asyncio
import itertools
import os
from typing import Any

from http_client import make_request
from load import Prepared, Samples, open_loop, summarize
from sentences import english
from systems import Server, start_manyheads

N_LIGHT = 10
RATE = 2.0  # requests a second of each of the ten
TIMES = 100
GOAL = 2.0


def _requests(port: int, key: str, texts: list[str]) -> list[Prepared]:
    plain = [make_request(port, "/v1/predict", {"texts": [text], "decode": {"beam": 4}}) for text in texts]
    return [Prepared(one.replace(b"\r\n", f"\r\nX-API-Key: {key}\r\n".encode(), 1)) for one in plain]


async def _load(server: Server, key: str, rate: float, seconds: float, seed: int, n_connections: int) -> Samples:
    texts = english(500)
    requests = itertools.cycle(_requests(server.port, key, texts[seed * 31 % 400 :]))
    return await open_loop(server.port, requests, rate, seconds, n_connections=n_connections, seed=seed)


async def _light(server: Server, seconds: float) -> dict[str, Any]:
    each = [_load(server, f"{number:032}", RATE, seconds, number + 1, 8) for number in range(N_LIGHT)]
    together = Samples()
    for one in await asyncio.gather(*each):
        together.seconds = max(together.seconds, one.seconds)
        for arrival, latency, status in zip(one.arrivals, one.latencies, one.statuses, strict=True):
            together.add(arrival, latency, status, 1)
    return summarize(together)


async def _both(server: Server, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
    heavy = asyncio.create_task(_load(server, "h" * 32, TIMES * RATE * N_LIGHT, seconds + 3, 99, 400))
    await asyncio.sleep(2)  # until its texts wait
    return await _light(server, seconds), summarize(await heavy)


def run_fair(given: argparse.Namespace) -> dict[str, Any]:
    """The ten alone, then beside the other client; `--count` is the number of seconds of each."""
    keys = [*(f"light{number}:{number:032}" for number in range(N_LIGHT)), f"heavy:{'h' * 32}"]
    os.environ["MANYHEADS_API_KEYS"] = ",".join(keys)
    try:
        with start_manyheads([f"t={given.bundle}"], given.workers) as server:
            asyncio.run(_light(server, 3.0))  # warm-up
            alone = asyncio.run(_light(server, given.number))
            beside, heavy = asyncio.run(_both(server, given.number))
    finally:
        del os.environ["MANYHEADS_API_KEYS"]
    ratio = round(beside["milliseconds"]["p99"] / alone["milliseconds"]["p99"], 2)
    answered = set(alone["statuses"]) == set(beside["statuses"]) == {"200"}
    return {
        "passed": ratio <= GOAL and answered,
        "rate": RATE,
        "ratio": ratio,
        "alone": alone,
        "beside": beside,
        "heavy": heavy,
    }
