"""The length penalty of beam search, chosen on validation rows.

Beam search prefers short hypotheses, since every token lowers the log-probability. How much the length must count
depends on the model and the data: with too small a penalty, a translation of one word may win; with too large a one,
a translation that repeats itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from manyheads.decode import DecodeSettings
from manyheads.metrics import Tally
from manyheads.tasks.task import DecodingChoice

GRID = (0.2, 0.6, 1.0, 1.4)
N_TUNED = 400  # validation rows that decoding is tuned on
_USUAL = 1.0  # preferred where the rows do not tell
_N_RESAMPLES = 200
Found = TypeVar("Found")


def is_open(settings: DecodeSettings) -> bool:
    """Whether the settings leave the length penalty open, and search with more than one hypothesis."""
    return settings.length_penalty is None and settings.method == "beam" and settings.beam > 1


def n_tuning_translations(settings: DecodeSettings) -> int:
    """The number of translations that tuning takes, if there are enough validation rows."""
    if settings.method == "sample":
        return 0
    return N_TUNED * (len(GRID) if is_open(settings) else 1)


def choose_length_penalty(
    settings: DecodeSettings,
    translate: Callable[[DecodeSettings], Found],
    tally: Callable[[Found], Tally],
) -> tuple[DecodingChoice, Found]:
    """Translate with every penalty of the grid; return the choice by score and its translations.

    Of the penalties whose score is within one standard error of the best, the one nearest to 1 is chosen: on a few
    hundred rows, a single translation that repeats itself can decide which score is the highest.
    """
    found = {alpha: translate(replace(settings, length_penalty=alpha)) for alpha in GRID}
    tallies = {alpha: tally(translations) for alpha, translations in found.items()}
    resampled = {alpha: own.resampled(_N_RESAMPLES) for alpha, own in tallies.items()}
    best = max(GRID, key=lambda alpha: tallies[alpha].value)

    def is_close(alpha: float) -> bool:
        error = float((resampled[best] - resampled[alpha]).std())
        return tallies[best].value - tallies[alpha].value <= error

    chosen = min(filter(is_close, GRID), key=lambda alpha: abs(alpha - _USUAL))
    scores = {f"{alpha:g}": own.value for alpha, own in tallies.items()}
    choice = DecodingChoice("length_penalty", chosen, tallies[best].name, scores, len(tallies[best].counts))
    return choice, found[chosen]


def tuning_rows(rows: Sequence[Found]) -> list[Found]:
    """At most `N_TUNED` of the rows, evenly spread: files are often sorted."""
    n_chosen = min(N_TUNED, len(rows))
    return [rows[index * len(rows) // n_chosen] for index in range(n_chosen)]
