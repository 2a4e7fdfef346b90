"""`TradeOff`: what a compressed bundle loses in quality and wins in speed, as measured."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError, DataError
from manyheads.metrics import Change, bleu_tally, compare_tallies
from manyheads.tasks import Task
from manyheads.text.readers import Row

MAX_COST = 0.2  # BLEU; a bundle that loses more is not made
_N_REPEATS = 3

ReportT = TypeVar("ReportT")


@dataclass(frozen=True)
class TradeOff:
    """The change of the score on the same rows, and the speed relative to the original bundle."""

    change: Change
    speedup: float  # rows per second, divided by those of the original
    identical: float | None = None  # share of outputs that are identical; None if it was not measured


@dataclass(frozen=True)
class Compressed(Generic[ReportT]):
    """A compressed bundle with its measured trade-off, and a report of how it was made."""

    bundle: Bundle
    trade_off: TradeOff
    report: ReportT


def require_small_cost(trade_off: TradeOff, what: str, advice: str) -> None:
    """Raise `BundleError` if a trade-off costs more than `MAX_COST`."""
    change = trade_off.change
    if change.cost > MAX_COST:
        raise BundleError(
            f"{what} would cost {change.cost:.2f} {change.name} ({change.before:.2f} → {change.value:.2f} on "
            f"{change.n_texts} sentences); at most {MAX_COST} is accepted. {advice}"
        )


def measure_trade_off(
    before: Task,
    after: Task,
    rows: Sequence[Row],
    decode: DecodeSettings,
    *,
    batch_rows: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> TradeOff:
    """Translate the rows with both tasks in turn, `batch_rows` at a time or all at once, and compare BLEU and speed.

    If both use the same engine with the same threads, use time.process_time as the clock: it does not count other
    load on the machine.
    """
    size = batch_rows or len(rows)
    outputs: tuple[list[str], list[str]] = ([], [])
    speedups = []
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        sources = [row[0] if _fits(before, row[0]) else "" for row in batch]
        for repeat in range(_N_REPEATS if len(rows) <= size else 1):  # many batches are repeats enough
            seconds = []
            for texts, task in zip(outputs, (before, after), strict=True):
                started = clock()
                translations = task.predict(sources, decode)
                seconds.append(clock() - started)
                if repeat == 0:
                    texts += [translation.line() for translation in translations]
            speedups.append(seconds[0] / max(seconds[1], 1e-9))
    references, language = [row[1] for row in rows], before.languages(before.settings)[-1]
    tallies = [bleu_tally(texts, references, language) for texts in outputs]
    return TradeOff(
        change=compare_tallies(tallies[1], tallies[0]),
        speedup=median(speedups),
        identical=sum(a == b for a, b in zip(*outputs, strict=True)) / len(rows),
    )


def _fits(task: Task, text: str) -> bool:
    try:
        task.check(text, "the text")
    except DataError:
        return False
    return True
