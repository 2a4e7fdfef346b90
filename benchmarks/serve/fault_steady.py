"""Batched equals single, and the soak."""

import argparse
import asyncio
import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from http_client import Response, fetch_now, make_request
from load import Prepared, closed_loop, open_loop, summarize
from process_tree import n_descriptors, tree
from sentences import english, of_task
from systems import start_manyheads

TOLERANCE = 1e-4  # of log-probabilities: sums of floats in another order
SOAK_GROWTH = 2.0  # percent


def differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    """Yield where two JSON values differ, and whether only in the last digits of a number."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                yield f"{path}.{key}", False
            else:
                yield from differences(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield path, False
            return
        for left, right in zip(one, other, strict=True):
            yield from differences(left, right, f"{path}[]")
    elif isinstance(one, float) and isinstance(other, float):
        if one != other:
            yield path, math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    elif one != other:
        yield path, False


def run_batched(given: argparse.Namespace) -> dict[str, Any]:
    """Compare the answers of texts in requests of 1 to 64 texts, many at once, with those of each text alone."""
    texts = english(given.number)
    with start_manyheads([f"t={given.bundle}"], given.workers) as server:
        sizes = itertools.cycle((1, 3, 64, 17, 8, 32, 2))
        parts, first = [], 0
        while first < len(texts):
            size = next(sizes)
            parts.append(texts[first : first + size])
            first += size
        batched: dict[str, Any] = {}
        single: dict[str, Any] = {}

        def keep(into: dict[str, Any]) -> Any:
            def check(request: Prepared, response: Response) -> None:
                if response.status == 200:
                    for prediction in response.json()["predictions"]:
                        into[prediction["source"]] = prediction

            return check

        def requests(groups: list[list[str]]) -> list[Prepared]:
            return [Prepared(make_request(server.port, "/v1/predict", {"texts": one}), len(one)) for one in groups]

        asyncio.run(closed_loop(server.port, requests(parts), 12, 3600, check=keep(batched)))
        print(f"batched: {len(batched)} texts in {len(parts)} requests", file=sys.stderr, flush=True)
        # One client: the server has one text at a time, so no batch can form.
        asyncio.run(closed_loop(server.port, requests([[text] for text in texts]), 1, 3600, check=keep(single)))
    last_digits = different = missing = 0
    examples = []
    for text in texts:
        if text not in batched or text not in single:
            missing += 1
            continue
        found = list(differences(batched[text], single[text]))
        if any(not is_rounding for _, is_rounding in found):
            different += 1
            examples.append({"batched": batched[text], "single": single[text]})
        elif found:
            last_digits += 1
    return {
        "passed": not missing and not different,
        "texts": len(texts),
        "missing": missing,
        "identical": len(texts) - missing - different - last_digits,
        "differ_in_last_digits": last_digits,
        "different": different,
        "examples": examples[:3],
    }


def run_soak(given: argparse.Namespace) -> dict[str, Any]:
    """A mix of all bundles for a long time at about half the load, with the memory of all processes."""
    bundles = {f"b{number}": path for number, path in enumerate([given.bundle, *given.others])}
    with start_manyheads([f"{name}={path}" for name, path in bundles.items()], given.workers) as server:
        served = fetch_now(server.port, "/v1/bundles").json()["bundles"]
        groups = []
        for one in served:
            texts = of_task(one["task"], 1000)
            extra = {"decode": {"max_new_tokens": 16}} if one["task"] == "language" else {}
            for size in (1, 1, 1, 8):
                parts = [texts[first : first + size] for first in range(0, len(texts), size)]
                groups.append(
                    [
                        Prepared(
                            make_request(server.port, "/v1/predict", {"bundle": one["name"], "texts": part, **extra})
                        )
                        for part in parts
                    ]
                )
        mixed = [request for group in itertools.zip_longest(*groups) for request in group if request is not None]
        first = summarize(asyncio.run(closed_loop(server.port, itertools.cycle(mixed), 16, 10.0)))
        rate = first["requests_per_second"] / 2
        descriptors = n_descriptors(server.pid)
        start, seconds = time.monotonic(), 60 * given.minutes
        samples = asyncio.run(
            open_loop(server.port, itertools.cycle(mixed), rate, seconds, n_connections=64, server=server.pid)
        )
        summary = summarize(samples)
        ready = fetch_now(server.port, "/ready").status
        statuses = Counter(map(str, samples.statuses))
        step = max(1, len(samples.memory) // 60)
        return {
            "passed": summary["rss_megabytes"]["growth_percent"] < SOAK_GROWTH
            and set(statuses) == {"200"}
            and ready == 200,
            "minutes": round((time.monotonic() - start) / 60, 1),
            "bundles": [one["task"] for one in served],
            "rate": round(rate, 1),
            **summary,
            "descriptors": [descriptors, n_descriptors(server.pid)],
            "processes": len(tree(server.pid)),
            "memory": [[round(when), round(value / 1e6, 1)] for when, value in samples.memory[::step]],
        }
