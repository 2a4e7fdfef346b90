"""Metrics: scores with confidence intervals and signatures, scorecards, and comparisons of two systems.

BLEU, chrF and TER are computed by sacreBLEU. All intervals come from `bootstrap`. May import text, settings, language,
errors.
"""

from manyheads.metrics.auroc import auroc
from manyheads.metrics.bootstrap import confidence_interval, resample_matrix, resamples
from manyheads.metrics.card_sections import (
    NO_LABEL,
    Baseline,
    Card,
    Comparison,
    Confusion,
    ExampleRow,
    Examples,
    Figure,
    Figures,
    Generations,
    GenerationSample,
    LabelRow,
    LabelTable,
    Note,
    Section,
    card_record,
    read_sections,
)
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
from manyheads.metrics.display_names import display_name, loss_name, loss_unit_name, rows_name
from manyheads.metrics.label_scorecard import LabelCard, Mistake, label_card
from manyheads.metrics.language_scorecard import LanguageCard, MaskedCard, language_card, masked_card
from manyheads.metrics.rouge import rouge
from manyheads.metrics.score import Score, Use, format_score, lower_is_better, score_notes
from manyheads.metrics.significance import Difference, compare
from manyheads.metrics.span_scorecard import IntentRule, SpanCard, WorstSentence, span_card
from manyheads.metrics.tallies import Change, Tally, bleu_tally, compare_tallies, f1_tally, rate_tally, share_tally
from manyheads.metrics.translation_errors import copies, length_ratio, repetitions
from manyheads.metrics.translation_scorecard import (
    Answers,
    Example,
    TranslationCard,
    translation_card,
    translation_scores,
)

__all__ = [
    "NO_LABEL",
    "Answers",
    "Baseline",
    "Card",
    "Change",
    "Comparison",
    "Confusion",
    "Difference",
    "Example",
    "ExampleRow",
    "Examples",
    "Figure",
    "Figures",
    "GenerationSample",
    "Generations",
    "IntentRule",
    "LabelCard",
    "LabelRow",
    "LabelTable",
    "LanguageCard",
    "MaskedCard",
    "Mistake",
    "Note",
    "Score",
    "Section",
    "SpanCard",
    "Tally",
    "TranslationCard",
    "Use",
    "WorstSentence",
    "auroc",
    "bleu",
    "bleu_tally",
    "card_record",
    "chrf",
    "compare",
    "compare_tallies",
    "confidence_interval",
    "copies",
    "display_name",
    "f1_tally",
    "format_score",
    "label_card",
    "language_card",
    "length_ratio",
    "looks_tokenized",
    "loss_name",
    "loss_unit_name",
    "lower_is_better",
    "masked_card",
    "quick_score",
    "rate_tally",
    "read_sections",
    "repetitions",
    "resample_matrix",
    "resamples",
    "rouge",
    "rows_name",
    "score_notes",
    "sentence_chrf",
    "share_tally",
    "span_card",
    "ter",
    "ter_applies",
    "tokenized_bleu",
    "translation_card",
    "translation_scores",
]
