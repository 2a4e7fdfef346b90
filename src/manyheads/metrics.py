"""Scores, each with its interval and, where it has one, its signature: a number anybody can check.

BLEU and chrF are sacreBLEU's. May import text, settings, errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

# sacreBLEU's own advice on tokenisers; every other language is cut as WMT does.
_TOKENIZERS = {"zh": "zh", "ja": "char", "ko": "char", "th": "char"}


@dataclass(frozen=True)
class Score:
    """One figure: 95 % of bootstrap resamples of the test set lie between low and high."""

    name: str
    value: float
    low: float
    high: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], language: str, *, n_resamples: int = 1000) -> Score:
    """Corpus BLEU with sacreBLEU's tokeniser for the language."""
    return _score(BLEU(tokenize=_TOKENIZERS.get(language, "13a")), "BLEU", hypotheses, references, n_resamples)


def chrf(hypotheses: Sequence[str], references: Sequence[str], *, n_resamples: int = 1000) -> Score:
    """Corpus chrF2: overlap of character n-grams, which needs no tokeniser."""
    return _score(CHRF(), "chrF", hypotheses, references, n_resamples)


def quick_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """BLEU alone, without an interval: for progress while training."""
    metric = BLEU(tokenize=_TOKENIZERS.get(language, "13a"))
    return float(metric.corpus_score(list(hypotheses), [list(references)]).score)


def _score(metric: Metric, name: str, hypotheses: Sequence[str], references: Sequence[str], n_resamples: int) -> Score:
    result = metric.corpus_score(list(hypotheses), [list(references)], n_bootstrap=n_resamples)
    # sacreBLEU centres its interval on the resamples' mean rather than on the score.
    return Score(
        name=name,
        value=float(result.score),
        low=float(result._mean - result._ci),
        high=float(min(100.0, result._mean + result._ci)),
        signature=str(metric.get_signature()),
    )
