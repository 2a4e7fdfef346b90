"""Scores, each with its interval and, where it has one, its signature: a number anybody can check.

BLEU and chrF are sacreBLEU's. May import text, settings, errors.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

# Languages written without spaces; every other is cut as WMT does. (For ja and ko sacreBLEU advises tokenisers that
# need a dictionary of their own; characters need none.)
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
    """Corpus BLEU with sacreBLEU's tokeniser for the language; without one, for what the references look like."""
    return _score(_make_bleu(language, references), "BLEU", hypotheses, references, n_resamples)


def chrf(hypotheses: Sequence[str], references: Sequence[str], *, n_resamples: int = 1000) -> Score:
    """Corpus chrF2: overlap of character n-grams, which needs no tokeniser."""
    return _score(CHRF(), "chrF", hypotheses, references, n_resamples)


def quick_score(name: str, hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """BLEU or chrF alone, without an interval: for progress while training."""
    metric: Metric = CHRF() if name == "chrF" else _make_bleu(language, references)
    return float(metric.corpus_score(list(hypotheses), [list(references)]).score)


def _make_bleu(language: str, references: Sequence[str]) -> BLEU:
    # WMT's tokeniser takes a whole Chinese sentence for one word, and BLEU is then 0 unless all of it is right.
    code = re.split("[-_]", language.lower())[0] or ("zh" if _look_chinese(references) else "")
    return BLEU(tokenize=_TOKENIZERS.get(code, "13a"))


def _look_chinese(texts: Sequence[str]) -> bool:
    letters = [character for text in texts[:100] for character in text if character.isalpha()]
    return sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > len(letters) / 2


def _score(metric: Metric, name: str, hypotheses: Sequence[str], references: Sequence[str], n_resamples: int) -> Score:
    """A corpus score is a function of counts summed over sentences; a resample sums those of sentences drawn again.

    sacreBLEU 2.6 can resample by itself, but dies of a type error where a resample's chrF is 0, and centres its
    interval on the resamples' mean rather than giving their quantiles.
    """
    score = metric.corpus_score(list(hypotheses), [list(references)])
    counts = np.array(metric._extract_corpus_statistics(list(hypotheses), [list(references)]), dtype=np.int64)
    chance, each = np.random.default_rng(12345), np.full(len(counts), 1 / len(counts))
    resampled = [
        metric._compute_score_from_stats((chance.multinomial(len(counts), each) @ counts).tolist()).score
        for _ in range(n_resamples)
    ]
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Score(name, float(score.score), float(low), float(high), str(metric.get_signature()))
