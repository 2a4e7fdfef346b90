"""`TradeOff`: what a compressed bundle loses in quality and wins in speed, as measured."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError, DataError
from manyheads.messages import _
from manyheads.metrics import Change, bleu_tally, compare_tallies, lower_is_better
from manyheads.tasks import Task
from manyheads.text.reading.readers import Row

MAX_COST = 0.2  # points of a score out of 100, or percent of a rate such as nats per character
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


def cost_of(change: Change) -> float:
    """Return the cost in the unit of `MAX_COST`: points of a score out of 100, or percent of a rate."""
    if not lower_is_better(change.name):
        return change.cost
    return 100.0 * change.cost / max(change.before, 1e-9)


def require_small_cost(change: Change, what: str, advice: str, max_cost: float = MAX_COST) -> None:
    """Raise `BundleError` if a change costs more than `max_cost`."""
    if not max_cost >= 0:  # also true of NaN
        raise BundleError(
            _(
                "--max-cost {max_cost:g} is not a cost. Give 0 or more, such as {example}.",
                max_cost=max_cost,
                example=MAX_COST,
            )
        )
    cost, is_rate = cost_of(change), lower_is_better(change.name)
    if cost > max_cost + 1e-9:  # a BLEU of 100 has rounding errors
        values = {
            "what": what,
            "cost": cost,
            "name": change.name,
            "before": change.before,
            "value": change.value,
            "n_texts": change.n_texts,
            "max_cost": max_cost,
        }
        if is_rate:
            refused = _(
                "{what} would cost {cost:.2f} % of the {name} ({before:.3f} → {value:.3f} on {n_texts} texts); at most "
                "{max_cost:g} % is accepted.",
                **values,
            )
        else:
            refused = _(
                "{what} would cost {cost:.2f} {name} ({before:.2f} → {value:.2f} on {n_texts} texts); at most "
                "{max_cost:g} is accepted.",
                **values,
            )
        accepted = math.ceil(cost * 10 - 1e-6) / 10
        raise BundleError(
            _(
                "{refused} {advice} To accept this cost, add --max-cost {accepted:g}.",
                refused=refused,
                advice=advice,
                accepted=accepted,
            )
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
