"""ROUGE, the score of summaries: which words, pairs of words and longest common sequence a summary shares."""

import unicodedata
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from itertools import chain

from manyheads.metrics.bootstrap import Sums, percentage, sum_resamples
from manyheads.metrics.score import Score

_NAMES = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
# Scripts written without spaces, of which every character is a token: Thai and Lao, Burmese, Khmer, kana and Chinese.
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
_BETWEEN = "PSZC"  # categories that end a word: punctuation, symbols, space, control


def rouge(hypotheses: Sequence[str], references: Sequence[str], *, n_resamples: int = 1000) -> list[Score]:
    """ROUGE-1, ROUGE-2 and ROUGE-L: the mean of the texts' F1, in per cent, of lower-cased words without stemming.

    English words are cut as in Google's rouge_score. In scripts without spaces each character counts as a word.
    """
    # Imported here, since it takes seconds and only summaries need it.
    from torchmetrics.functional.text import rouge_score

    counts = []
    for text, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        found = rouge_score(hypothesis, reference, normalizer=str.lower, tokenizer=cut_words, rouge_keys=tuple(_NAMES))
        counts += [(text, column, float(found[f"{key}_fmeasure"])) for column, key in enumerate(_NAMES)]
        counts.append((text, len(_NAMES), 1.0))
    sums = sum_resamples(counts, len(hypotheses), len(_NAMES) + 1, n_resamples)
    tokens = "tok:words, or characters where there are no spaces"
    how = f"f1:mean of texts|case:lc|{tokens}|stem:no|torchmetrics:{version('torchmetrics')}"
    return [sums.score(name, partial(_mean, column=column), how) for column, name in enumerate(_NAMES.values())]


def cut_words(text: str) -> list[str]:
    """The words of a text without punctuation; single characters in scripts that set no spaces."""
    return "".join(chain.from_iterable(map(_set_apart, text))).split()


def _set_apart(character: str) -> str:
    if unicodedata.category(character)[0] in _BETWEEN:
        return " "
    code = ord(character)
    return f" {character} " if any(first <= code <= last for first, last in _UNSPACED) else character


def _mean(sums: Sums, column: int) -> Sums:
    return percentage(sums[..., column], sums[..., len(_NAMES)])
