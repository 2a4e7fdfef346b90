"""The metrics room: scores, each with its interval and signature, comparisons of two systems, and plain counts.

A scorecard for each kind of answer: labels, spans, text foretold. BLEU, chrF and TER are sacreBLEU's, ROUGE is
torchmetrics's; the resampling is ours. May import text, settings, errors.
"""

from manyheads.metrics.comparing import Difference, compare
from manyheads.metrics.counting import copies, length_ratio, repetitions
from manyheads.metrics.labels import LabelCard, Mistake, label_card
from manyheads.metrics.language import Continuation, LanguageCard, language_card
from manyheads.metrics.rouge import rouge
from manyheads.metrics.scores import (
    Score,
    bleu,
    chrf,
    look_tokenised,
    lower_is_better,
    quick_score,
    sentence_chrf,
    shown,
    ter,
    ter_applies,
    tokenised_bleu,
)
from manyheads.metrics.spans import IntentRule, SpanCard, WorstSentence, span_card
from manyheads.metrics.tables import NOTHING, Confusion, LabelRow
from manyheads.metrics.tallies import Change, Tally, bleu_tally, compare_tallies, f1_tally, rate_tally, share_tally
from manyheads.metrics.translations import Answers, Example, Scorecard, make_card, scores_of

__all__ = [
    "NOTHING",
    "Answers",
    "Change",
    "Confusion",
    "Continuation",
    "Difference",
    "Example",
    "IntentRule",
    "LabelCard",
    "LabelRow",
    "LanguageCard",
    "Mistake",
    "Score",
    "Scorecard",
    "SpanCard",
    "Tally",
    "WorstSentence",
    "bleu",
    "bleu_tally",
    "chrf",
    "compare",
    "compare_tallies",
    "copies",
    "f1_tally",
    "label_card",
    "language_card",
    "length_ratio",
    "look_tokenised",
    "lower_is_better",
    "make_card",
    "quick_score",
    "rate_tally",
    "repetitions",
    "rouge",
    "scores_of",
    "sentence_chrf",
    "share_tally",
    "shown",
    "span_card",
    "ter",
    "ter_applies",
    "tokenised_bleu",
]
