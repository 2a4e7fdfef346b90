"""The length penalty of beam search, chosen on validation rows.

Beam search prefers short hypotheses, since every token lowers the log-probability. How much the length must count
depends on the model and the data: with too small a penalty, a translation of one word may win.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from manyheads.decode import DEFAULT_LENGTH_PENALTY, DecodeSettings
from manyheads.tasks.task import DecodingChoice

GRID = (0.2, 0.6, 1.0, 1.4)
Found = TypeVar("Found")


def is_open(settings: DecodeSettings) -> bool:
    """Whether the settings leave the length penalty open, and search with more than one hypothesis."""
    return settings.length_penalty is None and settings.method == "beam" and settings.beam > 1


def choose_length_penalty(
    settings: DecodeSettings,
    metric: str,
    n_rows: int,
    translate: Callable[[DecodeSettings], Found],
    score: Callable[[Found], float],
) -> tuple[DecodingChoice, Found]:
    """Translate with every penalty of the grid; return the choice by score and its translations.

    Of equal scores, the penalty nearest to the default is chosen.
    """
    found = {alpha: translate(replace(settings, length_penalty=alpha)) for alpha in GRID}
    scores = {alpha: score(translations) for alpha, translations in found.items()}
    best = max(GRID, key=lambda alpha: (scores[alpha], -abs(alpha - DEFAULT_LENGTH_PENALTY)))
    by_name = {f"{alpha:g}": value for alpha, value in scores.items()}
    return DecodingChoice("length_penalty", best, metric, by_name, n_rows), found[best]


def spread(rows: Sequence[Found], n_rows: int) -> list[Found]:
    """At most `n_rows` of the rows, evenly spread: files are often sorted."""
    n_chosen = min(n_rows, len(rows))
    return [rows[index * len(rows) // n_chosen] for index in range(n_chosen)]
