"""What goes wrong with translations in ways a score does not name: copies, repetitions, wrong lengths."""

from collections.abc import Sequence

from manyheads.metrics.corpus_scores import make_bleu

_LONGEST = 4  # tokens of a phrase that may be repeated
_TIMES = 3  # so often in a row is no longer style
_OFTEN_REPEATED = ".…·-–—~～_*=!?！？"  # and digits: "wait...", "10000"


def length_ratio(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """Tokens of the hypotheses to tokens of the references, as BLEU counts them."""
    ours, theirs = (sum(map(len, _tokens(texts, references, language))) for texts in (hypotheses, references))
    return ours / max(theirs, 1)


def copies(sources: Sequence[str], hypotheses: Sequence[str]) -> list[bool]:
    """Which hypotheses are their source, but for space around it; an empty one is not a copy of anything."""
    return [
        bool(hypothesis.strip()) and hypothesis.strip() == source.strip()
        for source, hypothesis in zip(sources, hypotheses, strict=True)
    ]


def repetitions(hypotheses: Sequence[str], references: Sequence[str], language: str) -> list[bool]:
    """Which hypotheses say a word or a short phrase three times in a row where the reference does no such thing.

    In languages written without spaces it is characters that are counted.
    """
    ours, theirs = (_tokens(texts, references, language) for texts in (hypotheses, references))
    return [_stutters(mine) and not _stutters(other) for mine, other in zip(ours, theirs, strict=True)]


def _tokens(texts: Sequence[str], references: Sequence[str], language: str) -> list[list[str]]:
    cut = make_bleu(language, references).tokenizer
    return [cut(text.rstrip()).split() for text in texts]


def _stutters(tokens: Sequence[str]) -> bool:
    for size in range(1, _LONGEST + 1):
        same = 0  # how many tokens in a row are what stands `size` before them
        for place in range(size, len(tokens)):
            same = same + 1 if tokens[place] == tokens[place - size] else 0
            if same == (_TIMES - 1) * size and not _may_repeat("".join(tokens[place - size + 1 : place + 1])):
                return True
    return False


def _may_repeat(phrase: str) -> bool:
    return all(character in _OFTEN_REPEATED or character.isdigit() for character in phrase)
