"""Shared code of the decoding workers: each message is one measurement.

    → {"core": 1, "model": {…}}                                    ← {"versions": {…}}
    → {"do": "tune", "sources": [[…], …], "beam": 5}               ← {"tuned": {…}}
    → {"do": "file", "source": "a.en", "target": "a.de", …}        ← {"cpu": 1.21, "wall": 1.25}
    → {"do": "ids", "sources": [[…], …], "beam": 1}                ← {"cpu": …, "wall": …, "written": [[…], …]}
    → {"do": "alone", "sources": [[…], …], "beam": 1}              the same with one call per sentence: lists of seconds

It imports only the standard library, because it runs in the environments of the peers.
"""

import importlib.metadata
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from orders import take_order, take_over_output

Ids = Sequence[Sequence[int]]


class Translator(Protocol):
    """The interface of a translation system."""

    def tune(self, sources: Ids, beam: int) -> dict[str, Any]:
        """Find and keep the fastest settings; return them with the measurements."""

    def translate_file(self, source: str, target: str, beam: int) -> None:
        """Translate a text file line by line."""

    def prepare(self, sources: Ids) -> Any:
        """Convert sources (with EOS) to the format of the engine; not timed."""

    def translate(self, prepared: Any, beam: int) -> Any:
        """Return the output of the engine."""

    def read(self, output: Any) -> list[list[int]]:
        """Convert the output of `translate` to ids without EOS; not timed."""


def serve(packages: Sequence[str], make: Callable[[Mapping[str, Any]], Translator]) -> None:
    """Answer messages until the input ends; an error is answered with its last line."""
    reply = take_over_output()
    try:
        order = take_order()
        translator = make(order["model"])
        reply({"versions": {name: importlib.metadata.version(name) for name in packages}})
        for line in sys.stdin:
            reply(_answer(translator, json.loads(line)))
    except Exception as error:
        traceback.print_exc()
        reply({"error": f"{type(error).__name__}: {error}".strip().splitlines()[-1]})


def _answer(translator: Translator, order: Mapping[str, Any]) -> dict[str, Any]:
    beam = order["beam"]
    match order["do"]:
        case "tune":
            return {"tuned": translator.tune(order["sources"], beam)}
        case "file":
            cpu, wall, _ = timed(lambda: translator.translate_file(order["source"], order["target"], beam))
            return {"cpu": cpu, "wall": wall}
        case "ids":
            prepared = translator.prepare(order["sources"])
            cpu, wall, output = timed(lambda: translator.translate(prepared, beam))
            return {"cpu": cpu, "wall": wall, "written": translator.read(output)}
        case "alone":
            singles = [translator.prepare([source]) for source in order["sources"]]
            calls = [timed(lambda one=one: translator.translate(one, beam)) for one in singles]
            written = [translator.read(output)[0] for _, _, output in calls]
            return {"cpu": [cpu for cpu, _, _ in calls], "wall": [wall for _, wall, _ in calls], "written": written}
        case other:
            raise ValueError(f"unknown measurement: {other}")


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return CPU seconds of all threads, wall seconds, and the result of `work`."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.process_time() - cpu, time.perf_counter() - wall, result
