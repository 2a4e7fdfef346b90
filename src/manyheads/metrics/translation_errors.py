"""Errors of translations that a score does not show: copies, repetitions, wrong lengths."""

from collections.abc import Sequence

from manyheads.metrics.corpus_scores import make_bleu

_LONGEST_PHRASE = 4  # tokens
_N_TIMES = 3  # occurrences in a row that count as a repetition
_MAY_REPEAT = ".…·-–—~～_*=!?！？"  # and digits: "wait...", "10000"


def length_ratio(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """Return tokens of the hypotheses / tokens of the references, as BLEU counts them."""
    ours, theirs = (sum(map(len, _tokens(texts, references, language))) for texts in (hypotheses, references))
    return ours / max(theirs, 1)


def copies(sources: Sequence[str], hypotheses: Sequence[str]) -> list[bool]:
    """Return for each hypothesis whether it equals its source, apart from surrounding space; empty ones do not."""
    return [
        bool(hypothesis.strip()) and hypothesis.strip() == source.strip()
        for source, hypothesis in zip(sources, hypotheses, strict=True)
    ]


def repetitions(hypotheses: Sequence[str], references: Sequence[str], language: str) -> list[bool]:
    """Return for each hypothesis whether it repeats a word or short phrase three times in a row.

    A repetition that the reference has too does not count. In languages without spaces, characters are compared.
    """
    ours, theirs = (_tokens(texts, references, language) for texts in (hypotheses, references))
    return [_has_repetition(mine) and not _has_repetition(other) for mine, other in zip(ours, theirs, strict=True)]


def _tokens(texts: Sequence[str], references: Sequence[str], language: str) -> list[list[str]]:
    tokenize = make_bleu(language, references).tokenizer
    return [tokenize(text.rstrip()).split() for text in texts]


def _has_repetition(tokens: Sequence[str]) -> bool:
    for size in range(1, _LONGEST_PHRASE + 1):
        n_equal = 0  # consecutive tokens that equal the token `size` positions before
        for position in range(size, len(tokens)):
            n_equal = n_equal + 1 if tokens[position] == tokens[position - size] else 0
            phrase = "".join(tokens[position - size + 1 : position + 1])
            if n_equal == (_N_TIMES - 1) * size and not _may_repeat(phrase):
                return True
    return False


def _may_repeat(phrase: str) -> bool:
    return all(character in _MAY_REPEAT or character.isdigit() for character in phrase)
