"""`measure`: what a faster way to translate costs in BLEU, and what it gains in speed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from manyheads.decode import DecodeSettings
from manyheads.metrics import compare
from manyheads.tasks import Seq2Seq, one_line
from manyheads.text.readers import Row

MAX_BLEU_DROP = 0.2  # BLEU: what costs more is refused
_REPEATS = 3


@dataclass(frozen=True)
class TradeOff:
    """Quality given for speed, on the same sentences."""

    n_sentences: int
    before: float  # BLEU
    after: float
    low: float  # 95 % of resamples have a difference after − before between these
    high: float
    speedup: float  # sentences a second, to those of before
    identical: float  # the share of sentences that are the same to the last character

    @property
    def bleu_drop(self) -> float:
        """BLEU that it costs."""
        return self.before - self.after


def measure_trade_off(
    before: Seq2Seq,
    after: Seq2Seq,
    rows: Sequence[Row],
    decode: DecodeSettings,
    *,
    at_once: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> TradeOff:
    """Translate the rows both ways, in turns: all together, or so many at once.

    Where both are the same engine with the same threads, time.process_time is the better clock: whatever else the
    machine does meanwhile is not counted.
    """
    size = at_once or len(rows)
    found: list[list[str]] = [[], []]
    ratios = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        sources = [row[0] if before.fits(row[0]) else "" for row in part]
        for turn in range(_REPEATS if len(rows) <= size else 1):  # of many parts each is a turn
            seconds = []
            for texts, task in zip(found, (before, after), strict=True):
                started = clock()
                answers = task.answers(sources, decode)
                seconds.append(clock() - started)
                if turn == 0:
                    texts += [one_line(candidates[0].text) for candidates in answers]
            ratios.append(seconds[0] / max(seconds[1], 1e-9))
    bleu = compare(found[1], found[0], [row[1] for row in rows], before.settings.target_language)[0]
    return TradeOff(
        n_sentences=len(rows),
        before=bleu.other,
        after=bleu.value,
        low=bleu.low,
        high=bleu.high,
        speedup=median(ratios),
        identical=sum(a == b for a, b in zip(*found, strict=True)) / len(rows),
    )
