"""What every worker that translates does alike: a line of JSON in, work, a line of JSON out.

    → {"core": 1, "model": {…}}                                    ← {"versions": {…}}
    → {"do": "tune", "sources": [[…], …], "beam": 5}               ← {"tuned": {…}}
    → {"do": "file", "source": "a.en", "target": "a.de", …}        ← {"cpu": 1.21, "wall": 1.25}
    → {"do": "ids", "sources": [[…], …], "beam": 1}                ← {"cpu": …, "wall": …, "written": [[…], …]}
    → {"do": "alone", "sources": [[…], …], "beam": 1}              the same, one call a sentence: lists of seconds

It needs nothing but Python, for it runs in the peers' environments.
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
    """A model that translates, as the frame knows it."""

    def tune(self, sources: Ids, beam: int) -> dict[str, Any]:
        """Find and keep the fastest settings; return them with the measurements."""

    def translate_file(self, source: str, target: str, beam: int) -> None:
        """A line for a line."""

    def prepare(self, sources: Ids) -> Any:
        """Sources, EOS included, as its engine takes them; not timed."""

    def translate(self, prepared: Any, beam: int) -> Any:
        """What its engine gives."""

    def read(self, given: Any) -> list[list[int]]:
        """The ids of that, without EOS; not timed."""


def serve(packages: Sequence[str], make: Callable[[Mapping[str, Any]], Translator]) -> None:
    """Answer until nobody asks any more; an error is answered by its last line."""
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
            cpu, wall, given = timed(lambda: translator.translate(prepared, beam))
            return {"cpu": cpu, "wall": wall, "written": translator.read(given)}
        case "alone":
            singles = [translator.prepare([source]) for source in order["sources"]]
            turns = [timed(lambda one=one: translator.translate(one, beam)) for one in singles]
            written = [translator.read(given)[0] for _, _, given in turns]
            return {"cpu": [turn[0] for turn in turns], "wall": [turn[1] for turn in turns], "written": written}
        case other:
            raise ValueError(f"nobody knows how to do {other}")


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds of all threads, seconds, and what came of it."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.process_time() - cpu, time.perf_counter() - wall, result
