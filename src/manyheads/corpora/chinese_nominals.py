"""Chinese noun phrases: determiners, numerals, classifiers, 的, pronouns."""

from collections.abc import Callable

from manyheads.corpora.syntax_tree import (
    ADJECTIVE,
    ATOMS,
    DETERMINER,
    LINK,
    MEASURE,
    NOUN,
    NUMERAL,
    OWNER_MARK,
    Clause,
    Nominal,
    RenderedWord,
)
from manyheads.corpora.word_tables import NUMERALS

Clauses = Callable[[Clause], list[RenderedWord]]

_PRONOUN = {"I": "我", "you": "你", "he": "他", "she": "她", "it": "它", "we": "我们", "they": "他们"}
_DETERMINER = {"the": "那", "this": "这", "a": "一", "which": "哪", "how-many": "几"}
_UNCOUNTED = {"many": "很多", "some": "一些"}


def nominal_words(nominal: Nominal, clause_words: Clauses, *, bare: bool = False) -> list[RenderedWord]:
    """Return the words of a nominal; `clause_words` renders its relative clause; `bare` omits 一 and its classifier."""
    words = _single(nominal, clause_words, bare)
    if nominal.second:
        words.append(("和", (nominal.second.id * ATOMS + LINK,)))
        words += _single(nominal.second, clause_words, bare)
    return words


def _single(nominal: Nominal, clause_words: Clauses, bare: bool) -> list[RenderedWord]:
    atoms = (nominal.id * ATOMS + NOUN,)
    if nominal.kind == "noun":
        return _noun_phrase(nominal, clause_words, bare)
    if nominal.name:
        return [(nominal.name.zh, atoms)]
    if nominal.kind == "gap":
        return []
    if nominal.kind == "who":
        return [("谁", atoms)]
    if nominal.kind == "what":
        return [("什么", atoms)]
    return [(_pronoun(nominal), atoms)]


def _pronoun(nominal: Nominal) -> str:
    if nominal.pronoun:
        return _PRONOUN[nominal.pronoun]
    if nominal.plural:
        if not nominal.is_person:
            return "它们"
        return "她们" if _is_female_group(nominal) else "他们"
    return _PRONOUN[nominal.sex]


def _is_female_group(nominal: Nominal) -> bool:
    """Return whether all are women (安娜和伊娃, 那些女孩); occupations have no gender in Chinese."""
    if nominal.antecedent:
        return _is_female_group(nominal.antecedent)
    if nominal.second:
        return nominal.sex == nominal.second.sex == "she"
    return nominal.sex == "she" and nominal.noun is not None and "worker" not in nominal.noun.tags


def _noun_phrase(nominal: Nominal, clause_words: Clauses, bare: bool) -> list[RenderedWord]:
    """Return owner or determiner, numeral, classifier, adjective, noun.

    A relative clause on an object comes before the determiner (安娜买的那本书), on a subject after it (那个买书的人).
    """
    assert nominal.noun is not None
    words = [] if bare else _determiner(nominal)
    relative = nominal.relative
    if relative:
        modifier: list[RenderedWord] = [*clause_words(relative), ("的", ())]
        words = modifier + words if relative.gap == "object" else words + modifier
    if nominal.adjective:
        words += _attribute(nominal.adjective.zh, nominal.id * ATOMS + ADJECTIVE)
    words.append((nominal.noun.zh, (nominal.id * ATOMS + NOUN,)))
    return words


def _attribute(text: str, atom: int) -> list[RenderedWord]:
    """Return an attributive adjective: 老, 红色的, 很长的."""
    words: list[RenderedWord] = []
    if text.startswith("很"):
        words.append(("很", ()))
        text = text[1:]
    words.append((text.removesuffix("的"), (atom,)))
    if text.endswith("的"):
        words.append(("的", ()))
    return words


def _determiner(nominal: Nominal) -> list[RenderedWord]:
    assert nominal.noun is not None
    base = nominal.id * ATOMS
    kind = nominal.determiner
    words: list[RenderedWord] = []
    counted = base + DETERMINER
    if kind == "own" and nominal.owner:
        owner = nominal.owner.id * ATOMS
        word = nominal.owner.name.zh if nominal.owner.name else _pronoun(nominal.owner)
        words = [(word, (owner + NOUN,)), ("的", (owner + OWNER_MARK,))]
    elif kind in _UNCOUNTED:
        return [(_UNCOUNTED[kind], (counted,))]
    elif kind in ("the", "this") and nominal.plural and not nominal.numeral:
        return [(_DETERMINER[kind] + "些", (counted,))]
    elif kind in _DETERMINER:
        words.append((_DETERMINER[kind], (counted,)))
    if nominal.numeral:
        counted = base + NUMERAL
        words.append((NUMERALS[nominal.numeral][1], (counted,)))
    elif kind == "own":
        return words
    if words and nominal.measured and nominal.noun.measure:
        words.append((nominal.noun.measure.zh, (base + MEASURE,)))
    elif words:
        words.append((nominal.noun.classifier, (counted,)))
    return words
