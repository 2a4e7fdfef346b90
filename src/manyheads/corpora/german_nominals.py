"""German noun phrases: articles, adjective endings, pronouns, in three cases."""

from manyheads.corpora.lexemes import CASES
from manyheads.corpora.syntax_tree import (
    ADJECTIVE,
    ATOMS,
    DETERMINER,
    LINK,
    MEASURE,
    NOUN,
    NUMERAL,
    OWNER_MARK,
    Nominal,
    RenderedWord,
)
from manyheads.corpora.word_tables import NUMERALS

_CASE = {name: place for place, name in enumerate(CASES)}
# By gender (p: plural), in the order nominative, accusative, dative.
_DEFINITE = {
    "m": ("der", "den", "dem"),
    "f": ("die", "die", "der"),
    "n": ("das", "das", "dem"),
    "p": ("die", "die", "den"),
}
_RELATIVE = {**_DEFINITE, "p": ("die", "die", "denen")}
# Endings of dieser, welcher, and of adjectives without an article.
_STRONG = {"m": ("er", "en", "em"), "f": ("e", "e", "er"), "n": ("es", "es", "em"), "p": ("e", "e", "en")}
# Endings of ein, kein, mein.
_INDEFINITE = {"m": ("", "en", "em"), "f": ("e", "e", "er"), "n": ("", "", "em"), "p": ("e", "e", "en")}
# Endings of adjectives after der, dieser, and after ein, kein, mein.
_WEAK = {"m": ("e", "en", "en"), "f": ("e", "e", "en"), "n": ("e", "e", "en"), "p": ("en", "en", "en")}
_MIXED = {"m": ("er", "en", "en"), "f": ("e", "e", "en"), "n": ("es", "es", "en"), "p": ("en", "en", "en")}

_PRONOUN = {
    "I": ("ich", "mich", "mir"),
    "you": ("du", "dich", "dir"),
    "m": ("er", "ihn", "ihm"),
    "f": ("sie", "sie", "ihr"),
    "n": ("es", "es", "ihm"),
    "we": ("wir", "uns", "uns"),
    "p": ("sie", "sie", "ihnen"),
}
_OWNER = {"I": "mein", "you": "dein", "m": "sein", "f": "ihr", "n": "sein", "we": "unser", "p": "ihr"}
_WHO = ("wer", "wen", "wem")
_SEX = {"he": "m", "she": "f", "they": "p", "I": "I", "you": "you", "we": "we"}


def agreement(nominal: Nominal | None) -> str:
    """Return the person of the verb: 1 ich, 2 du, 3 er, p wir and sie."""
    if nominal is None:
        return "3"
    if nominal.plural or nominal.second or nominal.pronoun in ("we", "they"):
        return "p"
    return {"I": "1", "you": "2"}.get(nominal.pronoun, "3")


def gender(nominal: Nominal) -> str:
    """Return the grammatical gender, or p for plurals; a measured mass noun has the gender of its measure."""
    if nominal.plural or nominal.second:
        return "p"
    if nominal.noun is None:
        return _SEX[nominal.sex]
    if nominal.measured and nominal.noun.measure:
        return nominal.noun.measure.gender
    return nominal.noun.gender


def pronoun_gender(nominal: Nominal) -> str:
    """Return the gender of the pronoun: natural for people (das Mädchen: sie), grammatical for the rest."""
    if nominal.pronoun:
        return _SEX[nominal.pronoun]
    head = nominal.antecedent or nominal
    if head is not nominal and (head.antecedent or head.pronoun):
        return pronoun_gender(head)
    if nominal.plural or head.plural or head.second:
        return "p"
    return _SEX[head.sex] if head.is_person else gender(head)


def relative_pronoun(head: Nominal, case: str) -> str:
    """Return the relative pronoun, with the gender and number of the head and the case in the clause."""
    return _RELATIVE[gender(head)][_CASE[case]]


def nominal_words(nominal: Nominal, case: str, negation: int = 0) -> list[RenderedWord]:
    """Return the words of a nominal without its relative clause; the atom `negation` turns "ein" into "kein"."""
    words = _single(nominal, _CASE[case], negation)
    if nominal.second:
        words.append(("und", (nominal.second.id * ATOMS + LINK,)))
        words += _single(nominal.second, _CASE[case], negation)
    return words


def _single(nominal: Nominal, case: int, negation: int) -> list[RenderedWord]:
    atoms = (nominal.id * ATOMS + NOUN,)
    if nominal.kind == "noun":
        return _noun_phrase(nominal, case, negation)
    if nominal.name:
        return [(nominal.name.key, atoms)]
    if nominal.kind == "who":
        return [(_WHO[case], atoms)]
    if nominal.kind == "what":
        return [("was", atoms)]
    return [(_PRONOUN[pronoun_gender(nominal)][case], atoms)]


def _noun_phrase(nominal: Nominal, case: int, negation: int) -> list[RenderedWord]:
    noun = nominal.noun
    assert noun is not None
    base = nominal.id * ATOMS
    form = "p" if nominal.plural else gender(nominal)
    words, endings = _determiner(nominal, form, case, negation)
    if nominal.numeral:
        words.append((NUMERALS[nominal.numeral][2], (base + NUMERAL,)))
    if nominal.adjective:
        words.append((nominal.adjective.de_stem + endings[form][case], (base + ADJECTIVE,)))
    if nominal.measured and noun.measure:
        measure = noun.measure.de[nominal.plural]
        if nominal.plural and case == 2 and not measure.endswith(("n", "Stück")):
            measure += "n"
        words.append((measure, (base + MEASURE,)))
        words.append((noun.de[0][0], (base + NOUN,)))
    else:
        words.append((noun.de[nominal.plural][case], (base + NOUN,)))
    return words


def _determiner(
    nominal: Nominal, form: str, case: int, negation: int
) -> tuple[list[RenderedWord], dict[str, tuple[str, str, str]]]:
    """Return the words of the determiner, and the adjective endings after it."""
    determiner = nominal.id * ATOMS + DETERMINER
    kind = nominal.determiner
    if kind == "the":
        return [(_DEFINITE[form][case], (determiner,))], _WEAK
    if kind == "this":
        return [("dies" + _STRONG[form][case], (determiner,))], _WEAK
    if kind == "which":
        return [("welch" + _STRONG[form][case], (determiner,))], _WEAK
    if negation and kind in ("a", "bare"):
        return [("kein" + _INDEFINITE[form][case], (negation, determiner))], _MIXED
    if kind == "a":
        return [("ein" + _INDEFINITE[form][case], (determiner,))], _MIXED
    if kind == "own" and nominal.owner:
        owner = nominal.owner.id * ATOMS
        if nominal.owner.name:
            return [(nominal.owner.name.key + "s", (owner + NOUN, owner + OWNER_MARK))], _STRONG
        stem = _OWNER[pronoun_gender(nominal.owner)]
        ending = _INDEFINITE[form][case]
        return [(stem + ending, (owner + NOUN,))], _MIXED
    words = {"many": ["viele"], "some": ["einige"], "how-many": ["wie", "viele"]}.get(kind, [])
    if case == 2 and words:
        words[-1] += "n"
    return [(word, (determiner,)) for word in words], _STRONG
