"""Drains and kills: what happens to requests when the server or one of its workers ends."""

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from http_client import LostError, connect, fetch, make_request
from load import percentile
from process_tree import command_line, tree
from sentences import english
from systems import Server, start_manyheads

N_CLIENTS = 16
RECOVERY = 5.0  # seconds


@dataclass
class Sent:
    """A request, when it was sent, and what came of it."""

    sent: float
    status: int | str | None = None  # None: not answered yet; a string: an error
    answered: float = 0.0
    is_right: bool = True


class Clients:
    """Clients that send texts, two at a time, without a pause, and compare the answers with known ones."""

    def __init__(
        self, port: int, texts: list[str], known: dict[str, str] | None = None, *, closes: bool = False
    ) -> None:
        self.port, self.texts, self.closes = port, texts, closes
        self.known = {} if known is None else known
        self.all: list[Sent] = []
        self.is_stopped = False
        self.tasks = [asyncio.create_task(self._run(number)) for number in range(N_CLIENTS)]

    async def _run(self, number: int) -> None:
        draw, connection = random.Random(number), None
        while not self.is_stopped:
            pair = draw.sample(self.texts, 2)
            request = make_request(self.port, "/v1/predict", {"texts": pair}, closes=self.closes)
            try:
                if connection is None or not connection.is_open:
                    connection = await connect(self.port)
            except OSError:
                await asyncio.sleep(0.02)  # not sent
                continue
            one = Sent(time.monotonic())
            self.all.append(one)
            try:
                async with asyncio.timeout(60):
                    response = await connection.ask(request)
                one.status = response.status
                if response.status == 200:
                    answers = [prediction["answer"] for prediction in response.json()["predictions"]]
                    for text, answer in zip(pair, answers, strict=True):
                        one.is_right &= self.known.setdefault(text, answer) == answer
            except (LostError, OSError) as error:
                one.status, connection = f"lost: {error}", None
            except TimeoutError:
                one.status, connection = "no answer within 60 s", None
            one.answered = time.monotonic()

    async def stop(self) -> None:
        self.is_stopped = True
        await asyncio.gather(*self.tasks)


async def _drain_once(
    server: Server, texts: list[str], known: dict[str, str], seconds: float, closes: bool
) -> dict[str, Any]:
    clients = Clients(server.port, texts, known, closes=closes)
    await asyncio.sleep(seconds)
    under_way = sum(one.status is None for one in clients.all)
    signalled = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(server.process.wait, 60)
    ended = time.monotonic()
    await clients.stop()
    before = [one for one in clients.all if one.sent <= signalled]
    after = [one for one in clients.all if one.sent > signalled]
    return {
        "sent_before": len(before),
        "under_way": under_way,
        "lost": sum(one.status != 200 for one in before),
        "lost_how": dict(Counter(str(one.status) for one in before if one.status != 200)),
        "wrong": sum(not one.is_right for one in clients.all),
        "after": dict(Counter(str(one.status) for one in after)),
        "exit_code": code,
        "seconds": round(ended - signalled, 3),
    }


def run_drains(given: argparse.Namespace) -> dict[str, Any]:
    """Start, load, SIGTERM at a random moment, and count lost requests; every second time without keep-alive."""
    texts, known, each, draw = english(300), {}, [], random.Random(given.seed)
    for number in range(given.number):
        server = start_manyheads([f"t={given.bundle}"], given.workers)
        workers = tree(server.pid)
        try:
            result = asyncio.run(_drain_once(server, texts, known, draw.uniform(0.3, 1.0), number % 2 == 1))
        finally:
            server.kill() if server.process.poll() is None else None
        result["left_over"] = _left_over(workers)
        each.append(result)
        server.log.unlink()
        if result["lost"] or result["wrong"] or number % 10 == 9:
            print(f"drain {number + 1} of {given.number}: {result}", file=sys.stderr, flush=True)
    total = {key: sum(one[key] for one in each) for key in ("sent_before", "under_way", "lost", "wrong", "left_over")}
    after: Counter[str] = Counter()
    for one in each:
        after.update(one["after"])
    codes = Counter(str(one["exit_code"]) for one in each)
    passed = not total["lost"] and not total["wrong"] and not total["left_over"] and set(codes) <= {"0", "-15"}
    return {
        "passed": passed,
        "drains": len(each),
        **total,
        "after": dict(after),
        "exit_codes": dict(codes),
        "seconds_median": percentile([one["seconds"] for one in each], 0.5),
        "seconds_max": max(one["seconds"] for one in each),
        "each": each,
    }


def _left_over(pids: list[int], seconds: float = 5.0) -> int:
    """Return how many of the server's processes have not ended after a while."""
    start = time.monotonic()
    while left := sum("python" in command_line(pid) for pid in pids):
        if time.monotonic() - start > seconds:
            return left
        time.sleep(0.05)
    return 0


def worker_pids(server: Server) -> list[int]:
    """Return the engine workers: children of the process that forks them, or of the server itself."""
    above_server = tree(server.pid)
    forking = [pid for pid in above_server if "multiprocessing.forkserver" in command_line(pid)]
    if not forking:
        return [pid for pid in above_server[1:] if "resource_tracker" not in command_line(pid)]
    # A worker has the command line of the process that it was forked from; the oldest one forks.
    return [pid for pid in forking if pid != min(forking)]


async def _kills(server: Server, given: argparse.Namespace) -> dict[str, Any]:
    draw, texts = random.Random(given.seed), english(300)
    clients, each = Clients(server.port, texts), []
    await asyncio.sleep(1.0)
    for number in range(given.number):
        found = worker_pids(server)
        if len(found) != given.workers:
            print(f"kill {number + 1}: {len(found)} workers", file=sys.stderr, flush=True)
        victim = draw.choice(found)
        os.kill(victim, signal.SIGKILL)
        start, was_unready, ready = time.monotonic(), False, None
        while time.monotonic() - start < 4 * RECOVERY:
            await asyncio.sleep(0.01)
            status = (await fetch(server.port, "/ready")).status
            was_unready |= status == 503
            if status == 200 and (was_unready or time.monotonic() - start > 0.5) and victim not in worker_pids(server):
                ready = time.monotonic() - start
                break
        each.append({"seconds": ready, "was_unready": was_unready})
        if ready is None:
            print(f"kill {number + 1}: not ready again\n{server.last_lines()}", file=sys.stderr, flush=True)
            break
        if number % 10 == 9:
            statuses = Counter(str(one.status) for one in clients.all)
            print(f"kill {number + 1} of {given.number}: {ready:.2f} s, {dict(statuses)}", file=sys.stderr, flush=True)
        await asyncio.sleep(draw.uniform(0.1, 0.6))
    await clients.stop()
    seconds = [one["seconds"] for one in each if one["seconds"] is not None]
    statuses = Counter(str(one.status) for one in clients.all)
    latencies = [one.answered - one.sent for one in clients.all if one.status == 200]
    wrong = sum(not one.is_right for one in clients.all)
    return {
        "passed": len(seconds) == given.number and max(seconds) < RECOVERY and set(statuses) == {"200"} and not wrong,
        "kills": len(each),
        "recovered": len(seconds),
        "seconds_median": round(percentile(seconds, 0.5), 3),
        "seconds_max": round(max(seconds), 3),
        "seen_unready": sum(one["was_unready"] for one in each),
        "requests": len(clients.all),
        "statuses": dict(statuses),
        "wrong": wrong,
        "latency_max": round(max(latencies), 3),
    }


def run_kills(given: argparse.Namespace) -> dict[str, Any]:
    """SIGKILL a worker again and again under load."""
    with start_manyheads([f"t={given.bundle}"], given.workers) as server:
        return asyncio.run(_kills(server, given))
