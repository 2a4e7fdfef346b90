"""BLEU, chrF and TER of a corpus, computed by sacreBLEU, and ROUGE, with confidence intervals and signatures."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from manyheads.metrics.bootstrap import N_RESAMPLES, Count, Sums, dense_sums, outer_interval, percentage, sum_resamples
from manyheads.metrics.score import Score

_LENGTH_UNITS = 1 << 20  # of a token
TOKENIZED_BLEU = "BLEU (tokenized, lowercased)"

# Languages written without spaces; all others use WMT's tokenizer. sacreBLEU's own tokenizers for ja and ko need a
# dictionary; characters need none.
_TOKENIZERS = {"zh": "zh", "ja": "char", "ko": "char", "th": "char", "lo": "char", "km": "char", "my": "char"}
_TER_BY_CHARACTER = {"zh", "ja"}
_NO_TER = {"th", "lo", "km", "my"}  # sacreBLEU's TER does not split them: a whole sentence would be one word

Stats = NDArray[np.int64]  # [sentences, columns]: what a metric sums over a corpus before it computes its score

_NAMES = ("ROUGE-1", "ROUGE-2", "ROUGE-L")
# Scripts written without spaces, in which every character is a word: Thai and Lao, Burmese, Khmer, kana, Chinese.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
_SEPARATORS = "PSZC"  # Unicode categories: punctuation, symbols, spaces, control characters
_SIGNATURE = "f1:mean of texts|case:lc|tok:words, or characters where there are no spaces|stem:no"


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], language: str, *, n_resamples: int = N_RESAMPLES
) -> Score:
    """Return corpus BLEU with sacreBLEU's tokenizer for the language; "" detects Chinese from the references."""
    return _score(make_bleu(language, references), "BLEU", hypotheses, references, n_resamples)


def tokenized_bleu(hypotheses: Sequence[str], references: Sequence[str], *, n_resamples: int = N_RESAMPLES) -> Score:
    """Return corpus BLEU of pretokenized, lowercased text: the protocol of many papers.

    The figure depends on the tokenizer of the references and is not comparable with `bleu`: the same output has been
    reported as 37.0 by this protocol and as 32.3 by the other.
    """
    return _score(make_tokenized_bleu(), TOKENIZED_BLEU, hypotheses, references, n_resamples)


def chrf(hypotheses: Sequence[str], references: Sequence[str], *, n_resamples: int = N_RESAMPLES) -> Score:
    """Return corpus chrF2: the overlap of character n-grams. It needs no tokenizer."""
    return _score(CHRF(), "chrF", hypotheses, references, n_resamples)


def ter(
    hypotheses: Sequence[str], references: Sequence[str], language: str, *, n_resamples: int = N_RESAMPLES
) -> Score:
    """Return the translation edit rate: edits per 100 reference words (characters in Chinese and Japanese)."""
    by_character = _language_code(language, references) in _TER_BY_CHARACTER
    metric = TER(normalized=by_character, asian_support=by_character)
    return _score(metric, "TER", hypotheses, references, n_resamples)


def ter_applies(language: str) -> bool:
    """Return whether TER can split text of this language into words."""
    return _language_code(language, ()) not in _NO_TER


def quick_score(name: str, hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """Return BLEU or chrF without an interval, for validation during training."""
    metric: Metric = CHRF() if name == "chrF" else make_bleu(language, references)
    return float(metric.corpus_score(list(hypotheses), [list(references)]).score)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return chrF2 of each sentence."""
    metric = CHRF()
    return [score_from_stats(metric, row) for row in sentence_stats(metric, hypotheses, references)]


def looks_tokenized(texts: Sequence[str]) -> bool:
    """Return whether most texts that end in a full stop have a space before it, as in tokenized text."""
    ended = [text.rstrip() for text in texts if re.search(r"\.\s*$", text)]  # French writes a space before ? and !
    return sum(text[-2:-1].isspace() for text in ended) > len(ended) / 2


def make_bleu(language: str, references: Sequence[str]) -> BLEU:
    """Return sacreBLEU's BLEU with the tokenizer for the language."""
    # WMT's tokenizer treats a whole Chinese sentence as one word, so BLEU is 0 unless the sentence is perfect.
    # force: suppresses sacreBLEU's warning about tokenized text; `looks_tokenized` covers it.
    return BLEU(tokenize=_TOKENIZERS.get(_language_code(language, references), "13a"), force=True)


def make_tokenized_bleu() -> BLEU:
    """Return sacreBLEU's BLEU over space-separated, lowercased words."""
    return BLEU(tokenize="none", lowercase=True, force=True)


def sentence_stats(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Stats:
    """Return a metric's statistics of each sentence; a corpus score is a function of their sum."""
    return np.array(metric._extract_corpus_statistics(list(hypotheses), [list(references)]), dtype=np.int64)


def score_from_stats(metric: Metric, total: NDArray[Any]) -> float:
    """Return the corpus score of summed statistics."""
    stats = total.tolist()
    if isinstance(metric, BLEU):
        # sacreBLEU cuts both lengths to whole numbers, which those of weighted texts are not; only their ratio counts.
        stats[:2] = [round(length * _LENGTH_UNITS) for length in stats[:2]]
    return float(metric._compute_score_from_stats(stats).score)


def _score(metric: Metric, name: str, hypotheses: Sequence[str], references: Sequence[str], n_resamples: int) -> Score:
    # sacreBLEU 2.6 can resample too, but raises a TypeError where a resample's chrF is 0, and centers its interval on
    # the mean of the resamples instead of returning their quantiles.
    stats = sentence_stats(metric, hypotheses, references)
    value = score_from_stats(metric, stats.sum(0))
    drawn = dense_sums(stats, partial(stats_extremes, metric), n_resamples)
    resampled = np.apply_along_axis(partial(score_from_stats, metric), -1, drawn)
    low, high = outer_interval(value, resampled)
    return Score(name, value, low, high, str(metric.get_signature()), len(stats))


def stats_extremes(metric: Metric, mean: Sums) -> tuple[Sums, Sums]:
    """The statistics of a sentence of mean length without one correct n-gram, and of a perfect one."""
    wrong, right = mean.copy(), mean.copy()
    if isinstance(metric, BLEU):  # both lengths, then the correct and all n-grams of each order
        n = metric.max_ngram_order
        wrong[2 : 2 + n], right[0] = 0.0, mean[1]
        right[2 : 2 + n] = right[2 + n :] = np.maximum(mean[1] - np.arange(n), 0.0)
    elif isinstance(metric, CHRF):  # n-grams of hypothesis, of reference, and of both, for each length
        wrong[2::3] = 0.0
        right[0::3] = right[2::3] = mean[1::3]
    else:  # TER: edits, and words of the reference
        wrong[0], right[0] = max(mean[0], mean[1]), 0.0
    return wrong, right


def _language_code(language: str, references: Sequence[str]) -> str:
    return re.split("[-_]", language.lower())[0] or ("zh" if _is_mostly_chinese(references) else "")


def _is_mostly_chinese(texts: Sequence[str]) -> bool:
    letters = [character for text in texts[:100] for character in text if character.isalpha()]
    return sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > len(letters) / 2


def rouge(hypotheses: Sequence[str], references: Sequence[str], *, n_resamples: int = N_RESAMPLES) -> list[Score]:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L: the mean F1 of the texts in percent, lowercased, without stemming.

    English text is split as in Google's rouge_score. In scripts without spaces each character is a word.
    """
    counts: list[Count] = []
    for text, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        values = text_rouge(rouge_words(hypothesis.lower()), rouge_words(reference.lower()))
        counts += [(text, column, value) for column, value in enumerate((*values, 1.0))]
    sums = sum_resamples(counts, len(hypotheses), len(_NAMES) + 1, _extremes, n_resamples)
    return [sums.score(name, partial(_mean, column=column), _SIGNATURE) for column, name in enumerate(_NAMES)]


def text_rouge(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[float, float, float]:
    """Return the F1 of ROUGE-1, ROUGE-2 and ROUGE-L of one text, from 0 to 1."""
    shared = _longest_common_subsequence(hypothesis, reference)
    return (
        _ngram_f1(hypothesis, reference, 1),
        _ngram_f1(hypothesis, reference, 2),
        2 * shared / max(1, len(hypothesis) + len(reference)),
    )


def _ngram_f1(hypothesis: Sequence[str], reference: Sequence[str], n: int) -> float:
    ours, theirs = (Counter(zip(*(words[i:] for i in range(n)), strict=False)) for words in (hypothesis, reference))
    return 2 * (ours & theirs).total() / max(1, ours.total() + theirs.total())


def _longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence (bit-parallel: Hyyrö, 2004)."""
    positions: dict[str, int] = {}
    for index, word in enumerate(first):
        positions[word] = positions.get(word, 0) | 1 << index
    everything = (1 << len(first)) - 1
    row = everything  # a 0 bit is a position where the length grows
    for word in second:
        matches = row & positions.get(word, 0)
        row = ((row + matches) | (row - matches)) & everything
    return len(first) - row.bit_count()


def rouge_words(text: str) -> list[str]:
    """Return the words of a text without punctuation; single characters in scripts without spaces."""
    return "".join(chain.from_iterable(map(_separate, text))).split()


def _separate(character: str) -> str:
    if unicodedata.category(character)[0] in _SEPARATORS:
        return " "
    code = ord(character)
    return f" {character} " if any(first <= code <= last for first, last in _UNSPACED) else character


def _extremes(mean: Sums) -> tuple[Sums, Sums]:
    return np.append(np.zeros(len(_NAMES)), 1.0), np.ones(len(_NAMES) + 1)


def _mean(sums: Sums, column: int) -> Sums:
    return percentage(sums[..., column], sums[..., len(_NAMES)])
