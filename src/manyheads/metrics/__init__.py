"""The metrics room: scores, each with its interval and signature, comparisons of two systems, and plain counts.

BLEU, chrF and TER are sacreBLEU's; the resampling is ours. May import text, settings, errors.
"""

from manyheads.metrics.comparing import Difference, compare
from manyheads.metrics.counting import copies, length_ratio, repetitions
from manyheads.metrics.scores import (
    Score,
    bleu,
    chrf,
    look_tokenised,
    quick_score,
    sentence_chrf,
    ter,
    ter_applies,
    tokenised_bleu,
)
from manyheads.metrics.translations import Answers, Example, Scorecard, make_card, scores_of

__all__ = [
    "Answers",
    "Difference",
    "Example",
    "Score",
    "Scorecard",
    "bleu",
    "chrf",
    "compare",
    "copies",
    "length_ratio",
    "look_tokenised",
    "make_card",
    "quick_score",
    "repetitions",
    "scores_of",
    "sentence_chrf",
    "ter",
    "ter_applies",
    "tokenised_bleu",
]
