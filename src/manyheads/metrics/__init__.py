"""The metrics room: scores, each with its interval and signature, comparisons of two systems, and plain counts.

A scorecard for each kind of answer: labels, spans, text foretold. BLEU, chrF and TER are sacreBLEU's, ROUGE is
torchmetrics's; the resampling is ours. May import text, settings, errors.
"""

from manyheads.metrics.bootstrap import confidence_interval, resample_matrix, resamples
from manyheads.metrics.corpus_scores import (
    bleu,
    chrf,
    looks_tokenized,
    quick_score,
    sentence_chrf,
    ter,
    ter_applies,
    tokenized_bleu,
)
from manyheads.metrics.label_scorecard import LabelCard, Mistake, label_card
from manyheads.metrics.label_tables import NOTHING, Confusion, LabelRow
from manyheads.metrics.language_scorecard import GenerationSample, LanguageCard, language_card
from manyheads.metrics.rouge import rouge
from manyheads.metrics.score import Score, format_score, lower_is_better
from manyheads.metrics.significance import Difference, compare
from manyheads.metrics.span_scorecard import IntentRule, SpanCard, WorstSentence, span_card
from manyheads.metrics.tallies import Change, Tally, bleu_tally, compare_tallies, f1_tally, rate_tally, share_tally
from manyheads.metrics.translation_faults import copies, length_ratio, repetitions
from manyheads.metrics.translation_scorecard import Answers, Example, TranslationCard, scores_of, translation_card

__all__ = [
    "NOTHING",
    "Answers",
    "Change",
    "Confusion",
    "Difference",
    "Example",
    "GenerationSample",
    "IntentRule",
    "LabelCard",
    "LabelRow",
    "LanguageCard",
    "Mistake",
    "Score",
    "SpanCard",
    "Tally",
    "TranslationCard",
    "WorstSentence",
    "bleu",
    "bleu_tally",
    "chrf",
    "compare",
    "compare_tallies",
    "confidence_interval",
    "copies",
    "f1_tally",
    "format_score",
    "label_card",
    "language_card",
    "length_ratio",
    "looks_tokenized",
    "lower_is_better",
    "quick_score",
    "rate_tally",
    "repetitions",
    "resample_matrix",
    "resamples",
    "rouge",
    "scores_of",
    "sentence_chrf",
    "share_tally",
    "span_card",
    "ter",
    "ter_applies",
    "tokenized_bleu",
    "translation_card",
]
