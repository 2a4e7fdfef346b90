"""Malformed requests: raw sockets, slow readers and writers and schemathesis, and what they leave behind."""

import argparse
import asyncio
import random
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from http_client import fetch, fetch_now, make_request
from malformed import Attack, draw_attack, fault_of, status_of
from process_tree import n_descriptors, pss, rss, tree
from systems import Server, start_manyheads

N_AT_ONCE = 24
N_SLOW = 500  # connections that send one byte now and then, and as many that do not read their answers
PAUSE = 0.05  # seconds that the event loop may be busy without a look at its sockets
WAIT = 60.0  # seconds for an answer; the server's own deadline is 30
GROWTH = 1.05  # of memory, from after the first tenth to the end
ASKED = {"texts": ["Two cats are sleeping."]}


async def strike(port: int, attack: Attack) -> bytes:
    """Send an attack and return the beginning of what comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = bytearray()
    try:
        for number, part in enumerate(attack.parts):
            if number and attack.pause:
                await asyncio.sleep(attack.pause)
            writer.write(part)
            with suppress(ConnectionError):  # the server may refuse before it has read everything
                await writer.drain()
        if attack.leaves:
            return b""
        if attack.half_closes:
            with suppress(OSError):
                writer.write_eof()
        async with asyncio.timeout(WAIT):
            while len(received) < 65_536 and (data := await reader.read(65_536)):
                received += data
                if b"\r\n\r\n" in received and not attack.half_closes:
                    break
    except ConnectionError:
        pass
    finally:
        writer.close()
    return bytes(received)


async def _flood(server: Server, count: int, seed: int) -> dict[str, Any]:
    draw, statuses, faults, kinds = random.Random(seed), Counter[str](), list[dict[str, str]](), Counter[str]()
    numbers = iter(range(count))
    memory: list[tuple[int, int]] = []
    slowest = ["", 0.0]

    async def attacker() -> None:
        for number in numbers:
            if number % max(1, count // 20) == 0:
                memory.append((number, pss(tree(server.pid))))
                ready = (await fetch(server.port, "/ready")).status
                print(f"malformed {number} of {count}: ready {ready}, {dict(statuses)}", file=sys.stderr, flush=True)
            attack = draw_attack(draw, server.port)
            kinds[attack.kind] += 1
            start = time.monotonic()
            try:
                received = await strike(server.port, attack)
            except TimeoutError:
                statuses["no answer"] += 1
                faults.append({"kind": attack.kind, "fault": "no answer", "sent": repr(attack.parts[0][:300])})
                continue
            if time.monotonic() - start > float(slowest[1]):
                slowest[:] = [attack.kind, round(time.monotonic() - start, 2)]
            statuses[str(status_of(received) or "closed")] += 1
            if (fault := fault_of(attack, received)) is not None:
                faults.append({"kind": attack.kind, "fault": fault, "sent": repr(attack.parts[0][:400]),
                               "received": repr(received[:400])})  # fmt: skip

    await asyncio.gather(*(attacker() for _ in range(N_AT_ONCE)))
    memory.append((count, pss(tree(server.pid))))
    return {
        "requests": count,
        "kinds": dict(kinds.most_common()),
        "statuses": dict(statuses.most_common()),
        "faults": len(faults),
        "examples": faults[:10],
        "slowest": slowest,
        "memory": [[number, round(value / 1e6, 1)] for number, value in memory],
    }


async def _slowloris(server: Server) -> dict[str, Any]:
    """Hold connections open that send a byte now and then; others must be answered, and the slow ones be closed."""
    whole = make_request(server.port, "/v1/predict", ASKED)
    closed = 0

    async def slow(number: int) -> None:
        nonlocal closed
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        middle = whole.find(b"\r\n\r\n") + (10 if number % 2 else -5)  # in the body, or in the headers
        writer.write(whole[:middle])
        try:
            async with asyncio.timeout(45):
                for place in range(middle, len(whole) - 1):
                    await asyncio.sleep(1.5)
                    writer.write(whole[place : place + 1])
                    await writer.drain()
                    if reader.at_eof():
                        break
                await reader.read()
            closed += 1
        except ConnectionError:
            closed += 1
        except TimeoutError:
            pass
        finally:
            writer.close()

    tasks = [asyncio.create_task(slow(number)) for number in range(N_SLOW)]
    others = await _others(server, lambda: all(task.done() for task in tasks))
    return {"connections": N_SLOW, "closed": closed, **others}


async def _others(server: Server, is_over: Callable[[], bool]) -> dict[str, float]:
    """Send requests that must be answered until something else is over; return the slowest, and the highest memory."""
    latencies, memory = [], [rss([server.pid])]
    while not is_over():
        start = time.monotonic()
        response = await fetch(server.port, "/v1/predict", ASKED)
        assert response.status == 200, f"status {response.status} while slow clients are connected"
        latencies.append(time.monotonic() - start)
        memory.append(rss([server.pid]))
        await asyncio.sleep(0.5)
    return {
        "slowest_other_request": round(max(latencies, default=0.0), 3),
        "http_megabytes": round(max(memory) / 1e6, 1),
        "longest_pause": await pause(server),
    }


async def pause(server: Server) -> float:
    """Return the longest pause of the event loop since the last call, as the server measures it."""
    lines = (await fetch(server.port, "/metrics")).body.decode().splitlines()
    return round(next(float(line.split()[1]) for line in lines if line.startswith("manyheads_longest_pause")), 4)


async def _unread(server: Server) -> dict[str, Any]:
    """Ask for much and read nothing; the server must close the connections. Their sockets are ours, so it is the
    number of its descriptors that shows it."""
    before, sockets = n_descriptors(server.pid), list[socket.socket]()
    asked = f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode() * 30
    await pause(server)
    for _ in range(N_SLOW):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", server.port))
        one.sendall(asked)
        sockets.append(one)
        await asyncio.sleep(0)
    start = time.monotonic()

    def is_over() -> bool:
        return n_descriptors(server.pid) <= before + 2 or time.monotonic() - start > 60

    others = await _others(server, is_over)
    open_ = max(0, n_descriptors(server.pid) - before - 2)
    for one in sockets:
        one.close()
    return {"connections": N_SLOW, "open_after": round(time.monotonic() - start, 1), "open": open_, **others}


def _schemathesis(server: Server, examples: int, seed: int) -> dict[str, Any]:
    """Run schemathesis on the OpenAPI document; /reload is left out, and so are pages that only show things."""
    command = [
        *(str(Path(sys.executable).parent / "st"), "run", f"http://127.0.0.1:{server.port}/openapi.json"),
        *("--url", f"http://127.0.0.1:{server.port}"),
        *("--checks", "not_a_server_error,content_type_conformance,response_schema_conformance"),
        *("--max-examples", str(examples), "--seed", str(seed), "--workers", "2", "--request-timeout", "30"),
        *("--exclude-path-regex", "reload", "--no-color", "--continue-on-failure", "--suppress-health-check", "all"),
        *("--phases", "examples,coverage,fuzzing"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, cwd=server.log.parent)
    found = re.findall(r"([\d,]+) (?:generated|test cases|cases)", done.stdout)
    lines = done.stdout.splitlines()
    return {
        "exit_code": done.returncode,
        "cases": max((int(number.replace(",", "")) for number in found), default=0),
        "server_errors": sum("Server error" in line for line in lines),
        "errors": [line for line in lines if "rror" in line][:20],
        "end": lines[-25:] if done.returncode else lines[-3:],
    }


def run_malformed(given: argparse.Namespace) -> dict[str, Any]:
    """All of it against one server."""
    with start_manyheads([f"t={given.bundle}"], given.workers) as server:
        before = fetch_now(server.port, "/v1/predict", ASKED).json()
        asyncio.run(_flood(server, max(200, given.number // 10), given.seed + 1))  # memory is allocated once
        descriptors, bytes_before = n_descriptors(server.pid), pss(tree(server.pid))
        asyncio.run(pause(server))
        raw = asyncio.run(_flood(server, given.number, given.seed))
        raw["longest_pause"] = asyncio.run(pause(server))
        slow = asyncio.run(_slowloris(server))
        unread = asyncio.run(_unread(server))
        time.sleep(2)
        ready = fetch_now(server.port, "/ready").status
        same = fetch_now(server.port, "/v1/predict", ASKED).json() == before
        ratio = pss(tree(server.pid)) / bytes_before
        left = [descriptors, n_descriptors(server.pid)]
        log = server.log.read_text(errors="replace")
        names = [f"t={given.bundle}", *(f"b{number}={path}" for number, path in enumerate(given.others))]
        tested: dict[str, Any] = {"cases": 0, "server_errors": 0}
        if given.examples:
            with start_manyheads(names, given.workers) as other:  # schemathesis also gets bundles of other tasks
                tested = _schemathesis(other, given.examples, given.seed)
                ready = max(ready, fetch_now(other.port, "/ready").status)
                log += other.log.read_text(errors="replace")
        return {
            "passed": not raw["faults"]
            and slow["closed"] == N_SLOW
            and not unread["open"]
            and max(raw["longest_pause"], slow["longest_pause"], unread["longest_pause"]) <= PAUSE
            and not tested["server_errors"]
            and ready == 200
            and same
            and ratio < GROWTH
            and left[1] <= left[0] + 2
            and "Traceback" not in log,
            "raw": raw,
            "slowloris": slow,
            "unread": unread,
            "schemathesis": tested,
            "ready_afterwards": ready,
            "same_answer_afterwards": same,
            "memory_ratio": round(ratio, 3),
            "descriptors": left,
            "tracebacks_in_log": log.count("Traceback"),
            "log_end": server.last_lines(30) if "Traceback" in log else "",
        }
