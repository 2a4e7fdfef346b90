"""ROUGE (Lin, 2004), the score of summaries: shared words, word pairs and longest common subsequence.

Tests require the figures of Google's rouge_score for English text (docs/decisions/0011-rouge.md).
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np

from manyheads.metrics.bootstrap import N_RESAMPLES, Count, Sums, percentage, sum_resamples
from manyheads.metrics.score import Score

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
