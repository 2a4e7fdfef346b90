"""Fairness: ten clients alone, and beside one that sends 100 times as many requests."""

import argparse
import asyncio
import itertools
import os
from functools import cache
from typing import Any

from http_client import make_request
from load import Prepared, Samples, open_loop, summarize
from sentences import english
from systems import Server, start_manyheads

N_LIGHT = 10
RATE = 2.0  # requests a second of each of the ten
TIMES = 100
GOAL = 2.0
_HEAVY = "h" * 32  # the key of the client with the load
_TEXTS = english(500)


@cache
def _requests(port: int, key: str, seed: int) -> list[Prepared]:
    """What a client sends. Making it takes longer than an answer, so the warm-up does it."""
    texts = _TEXTS[seed * 31 % 400 :]
    plain = [make_request(port, "/v1/predict", {"texts": [text], "decode": {"beam": 4}}) for text in texts]
    return [Prepared(one.replace(b"\r\n", f"\r\nX-API-Key: {key}\r\n".encode(), 1)) for one in plain]


async def _light(server: Server, seconds: float) -> dict[str, Any]:
    sent = [itertools.cycle(_requests(server.port, f"{number:032}", number + 1)) for number in range(N_LIGHT)]
    each = [
        open_loop(server.port, requests, RATE, seconds, n_connections=8, seed=number + 1)
        for number, requests in enumerate(sent)
    ]
    together = Samples()
    for one in await asyncio.gather(*each):
        together.seconds = max(together.seconds, one.seconds)
        for arrival, latency, status in zip(one.arrivals, one.latencies, one.statuses, strict=True):
            together.add(arrival, latency, status, 1)
    return summarize(together)


async def _both(server: Server, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
    requests = itertools.cycle(_requests(server.port, _HEAVY, 99))
    load = open_loop(server.port, requests, TIMES * RATE * N_LIGHT, seconds + 3, n_connections=400, seed=99)
    heavy = asyncio.create_task(load)
    await asyncio.sleep(2)  # until its texts wait
    return await _light(server, seconds), summarize(await heavy)


def run_fair(given: argparse.Namespace) -> dict[str, Any]:
    """The ten alone, then beside the other client; `--count` is the number of seconds of each."""
    keys = [*(f"light{number}:{number:032}" for number in range(N_LIGHT)), f"heavy:{_HEAVY}"]
    os.environ["MANYHEADS_API_KEYS"] = ",".join(keys)
    try:
        with start_manyheads([f"t={given.bundle}"], given.workers) as server:
            _requests(server.port, _HEAVY, 99)
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
