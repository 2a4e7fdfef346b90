"""Corpus scores, each with its interval and its signature: numbers anybody can check."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

# Languages written without spaces; every other is cut as WMT does. (For ja and ko sacreBLEU advises tokenizers that
# need a dictionary of their own; characters need none.)
_TOKENIZERS = {"zh": "zh", "ja": "char", "ko": "char", "th": "char", "lo": "char", "km": "char", "my": "char"}
_TER_BY_CHARACTER = {"zh", "ja"}
_TER_BLIND = {"th", "lo", "km", "my"}  # no spaces, and sacreBLEU's TER does not cut them: a sentence would be a word
_LOWER_IS_BETTER = {"ter", "loss", "perplexity", "nats", "bits", "calibration"}  # the first word of such names
_DIGITS = {"loss": 3, "nats": 3, "bits": 3, "perplexity": 2}  # after the point; of all others one

Counts = NDArray[np.int64]  # a row a sentence: what a metric sums over a corpus before it computes its score


@dataclass(frozen=True)
class Score:
    """One figure: 95 % of bootstrap resamples of the test set lie between low and high."""

    name: str
    value: float
    low: float
    high: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], language: str, *, n_resamples: int = 1000) -> Score:
    """Corpus BLEU with sacreBLEU's tokenizer for the language; without one, for what the references look like."""
    return _score(make_bleu(language, references), "BLEU", hypotheses, references, n_resamples)


def tokenized_bleu(hypotheses: Sequence[str], references: Sequence[str], *, n_resamples: int = 1000) -> Score:
    """Corpus BLEU of text tokenized beforehand, as it stands but lower-cased: the protocol of many papers.

    The tokenizer of whoever made the references decides about the figure, so it is not comparable with `bleu`:
    one and the same output has been reported as 37.0 this way and 32.3 that way.
    """
    return _score(make_tokenized_bleu(), TOKENIZED_BLEU, hypotheses, references, n_resamples)


def chrf(hypotheses: Sequence[str], references: Sequence[str], *, n_resamples: int = 1000) -> Score:
    """Corpus chrF2: overlap of character n-grams, which needs no tokenizer."""
    return _score(CHRF(), "chrF", hypotheses, references, n_resamples)


def ter(hypotheses: Sequence[str], references: Sequence[str], language: str, *, n_resamples: int = 1000) -> Score:
    """Translation edit rate: edits per 100 reference words, or characters in Chinese and Japanese; lower is better."""
    by_character = _code(language, references) in _TER_BY_CHARACTER
    metric = TER(normalized=by_character, asian_support=by_character)
    return _score(metric, "TER", hypotheses, references, n_resamples)


def ter_applies(language: str) -> bool:
    """Whether TER knows where a word of the language ends."""
    return _code(language, ()) not in _TER_BLIND


def quick_score(name: str, hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """BLEU or chrF alone, without an interval: for progress while training."""
    metric: Metric = CHRF() if name == "chrF" else make_bleu(language, references)
    return float(metric.corpus_score(list(hypotheses), [list(references)]).score)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF2 of each sentence alone."""
    metric = CHRF()
    return [score_from_stats(metric, row) for row in sentence_stats(metric, hypotheses, references)]


def lower_is_better(name: str) -> bool:
    """Whether a figure of this name is the better, the smaller it is."""
    return name.lower().partition(" ")[0] in _LOWER_IS_BETTER


def format_score(name: str, value: float) -> str:
    """A figure of this name with as many digits as mean something.

    A look at a model in training has those of which lower is better with their sign turned round; it is turned back.
    """
    value = abs(value) if lower_is_better(name) else value
    return f"{value:,.{_DIGITS.get(name.lower().partition(' ')[0], 1)}f}"


def looks_tokenized(texts: Sequence[str]) -> bool:
    """Whether most of the texts that end in a full stop have a space before it, as tokenizers leave it."""
    ended = [text.rstrip() for text in texts if re.search(r"\.\s*$", text)]  # French has a space before ? and !
    return sum(text[-2:-1].isspace() for text in ended) > len(ended) / 2


TOKENIZED_BLEU = "BLEU (tokenized, lowercased)"


def make_bleu(language: str, references: Sequence[str]) -> BLEU:
    """sacreBLEU's BLEU with the tokenizer for the language; without one, for what the references look like."""
    # WMT's tokenizer takes a whole Chinese sentence for one word, and BLEU is then 0 unless all of it is right.
    # force: sacreBLEU would log a warning about tokenized text; who asks for scores learns of it another way.
    return BLEU(tokenize=_TOKENIZERS.get(_code(language, references), "13a"), force=True)


def make_tokenized_bleu() -> BLEU:
    """sacreBLEU's BLEU of the words as they stand, lower-cased."""
    return BLEU(tokenize="none", lowercase=True, force=True)


def sentence_stats(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Counts:
    """What a metric counts in each sentence: any corpus score is a function of sums of such rows."""
    return np.array(metric._extract_corpus_statistics(list(hypotheses), [list(references)]), dtype=np.int64)


def score_from_stats(metric: Metric, total: NDArray[Any]) -> float:
    """The score of a corpus whose rows sum to this."""
    return float(metric._compute_score_from_stats(total.tolist()).score)


def _score(metric: Metric, name: str, hypotheses: Sequence[str], references: Sequence[str], n_resamples: int) -> Score:
    """A corpus score is a function of counts summed over sentences; a resample sums those of sentences drawn again.

    sacreBLEU 2.6 can resample by itself, but dies of a type error where a resample's chrF is 0, and centres its
    interval on the resamples' mean rather than giving their quantiles.
    """
    counts = sentence_stats(metric, hypotheses, references)
    rng, each = np.random.default_rng(12345), np.full(len(counts), 1 / len(counts))
    resampled = [score_from_stats(metric, rng.multinomial(len(counts), each) @ counts) for _ in range(n_resamples)]
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Score(name, score_from_stats(metric, counts.sum(0)), float(low), float(high), str(metric.get_signature()))


def _code(language: str, references: Sequence[str]) -> str:
    return re.split("[-_]", language.lower())[0] or ("zh" if _look_chinese(references) else "")


def _look_chinese(texts: Sequence[str]) -> bool:
    letters = [character for text in texts[:100] for character in text if character.isalpha()]
    return sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > len(letters) / 2
