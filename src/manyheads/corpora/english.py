"""Renders a syntax tree in English."""

from manyheads.corpora.lexemes import Adverbial
from manyheads.corpora.syntax_tree import (
    ADJECTIVE,
    ATOMS,
    DEGREE,
    DETERMINER,
    DURATION,
    FREQUENCY,
    GOAL,
    LINK,
    MANNER,
    MEASURE,
    NEGATION,
    NOUN,
    NUMERAL,
    OWNER_MARK,
    PARTICLE,
    PASSIVE,
    PLACE,
    QUESTION,
    RELATIVE,
    TENSE,
    TIME,
    VERB,
    Clause,
    Nominal,
    RenderedWord,
    Tree,
    adverbial_tokens,
)
from manyheads.corpora.word_tables import NUMERALS

_OBJECT = {"I": "me", "you": "you", "he": "him", "she": "her", "it": "it", "we": "us", "they": "them"}
_OWNER = {"I": "my", "you": "your", "he": "his", "she": "her", "it": "its", "we": "our", "they": "their"}
_ARTICLE = {"many": "many", "some": "some", "which": "which", "instrument": "the"}
_MODAL = {"can": "can", "must": "must", "should": "should", "may": "may"}
_CONJUNCTION = {
    "and": "and",
    "because": "because",
    "but": "but",
    "while": "while",
    "that": "that",
    "when": "when",
    "if": "if",
}


def english(tree: Tree) -> list[RenderedWord]:
    """Return the words of the sentence, including punctuation."""
    main, side, joint = tree.main, tree.side, tree.joint
    words: list[RenderedWord] = []
    if side and joint in ("when", "if"):
        words.append((joint, (side.id * ATOMS + LINK,)))
        words += _clause(side)
        words.append((",", ()))
        words += _clause(main)
    else:
        words += _clause(main)
        if side:
            if joint in ("but", "and"):
                words.append((",", ()))
            words.append((_CONJUNCTION[joint], (side.id * ATOMS + LINK,)))
            words += _clause(side)
    words.append(("?" if main.question else ".", ()))
    return words


def pronoun(nominal: Nominal) -> str:
    """Return the subject form of the pronoun for a nominal or its antecedent."""
    if nominal.pronoun:
        return nominal.pronoun
    return "they" if nominal.plural else nominal.sex


def agreement(nominal: Nominal | None) -> str:
    """Return '1' for I, '3' for the third person singular (also weather and question words), 'p' for the rest."""
    if nominal is None:
        return "3"
    if nominal.plural or nominal.second or nominal.pronoun in ("you", "we", "they"):
        return "p"
    return "1" if nominal.pronoun == "I" else "3"


def _nominal(nominal: Nominal, case: str = "subject") -> list[RenderedWord]:
    words = _single(nominal, case)
    if nominal.second:
        words.append(("and", (nominal.second.id * ATOMS + LINK,)))
        words += _single(nominal.second, case)
    return words


def _single(nominal: Nominal, case: str) -> list[RenderedWord]:
    base = nominal.id * ATOMS
    if nominal.noun and nominal.kind == "noun":
        return _noun_phrase(nominal)
    if nominal.name:
        return [(nominal.name.key, (base + NOUN,))]
    if nominal.kind in ("who", "what"):
        return [(nominal.kind, (base + NOUN,))]
    word = pronoun(nominal)
    return [(word if case == "subject" else _OBJECT[word], (base + NOUN,))]


def _noun_phrase(nominal: Nominal) -> list[RenderedWord]:
    noun = nominal.noun
    assert noun is not None
    base = nominal.id * ATOMS
    words: list[RenderedWord] = []
    if nominal.numeral:
        words.append((NUMERALS[nominal.numeral][0], (base + NUMERAL,)))
    if nominal.adjective:
        words.append((nominal.adjective.en, (base + ADJECTIVE,)))
    if nominal.measured and noun.measure:
        words.append((noun.measure.en[nominal.plural], (base + MEASURE,)))
        words.append(("of", ()))
        words.append((noun.en[0], (base + NOUN,)))
    else:
        words.append((noun.en[nominal.plural], (base + NOUN,)))
    words = _determiner(nominal, words[0][0]) + words
    if nominal.relative:
        words += _relative(nominal, nominal.relative)
    return words


def _determiner(nominal: Nominal, following: str) -> list[RenderedWord]:
    atoms = (nominal.id * ATOMS + DETERMINER,)
    kind = nominal.determiner
    if kind == "the":
        return [("the", atoms)]
    if kind == "a":
        return [("an" if following[0] in "aeiou" or following == "honest" else "a", atoms)]
    if kind == "this":
        return [("these" if nominal.plural else "this", atoms)]
    if kind == "own" and nominal.owner:
        owner = nominal.owner
        if owner.name:
            return [(owner.name.key + "'s", (owner.id * ATOMS + NOUN, owner.id * ATOMS + OWNER_MARK))]
        return [(_OWNER[pronoun(owner)], (owner.id * ATOMS + NOUN,))]
    if kind == "how-many":
        return [("how", atoms), ("many", atoms)]
    return [(_ARTICLE[kind], atoms)] if kind in _ARTICLE else []


def _relative(head: Nominal, clause: Clause) -> list[RenderedWord]:
    gap = clause.subject if clause.gap == "subject" else clause.object
    assert gap is not None
    person = "who" if clause.gap == "subject" else "whom"
    word = person if head.is_person else "that"
    atoms = (gap.id * ATOMS + RELATIVE,)
    return [(word, atoms), *_clause(clause)]


def _verb(clause: Clause) -> tuple[list[RenderedWord], list[RenderedWord]]:
    """Return the auxiliary (with "not"), which comes first in questions, and the rest of the verb."""
    base = clause.id * ATOMS
    verb = clause.verb.en if clause.verb else None
    who = agreement(clause.topic)
    tense = (base + TENSE,)
    negation: list[RenderedWord] = [("not", (base + NEGATION,))] if clause.negated else []
    be = {"1": "am", "3": "is", "p": "are"}[who]
    was = "were" if who == "p" else "was"
    if verb is None or clause.kind != "verb":
        is_place = clause.kind in ("location", "existence")
        past = clause.tense == "past"
        return [(was if past else be, (base + VERB,) if is_place else tense), *negation], []
    atoms = (base + VERB,)
    # "with" is aligned with mit and 和; the "for" of "look for" is part of suchen and 寻找.
    part = (base + PARTICLE,) if clause.verb and clause.verb.de.preposition else (base + PARTICLE, base + VERB)
    particle: list[RenderedWord] = [(word, part) for word in verb.particle.split("_") if word]
    if clause.passive:
        return [(was, (base + PASSIVE,)), *negation], [(verb.participle, atoms), *particle]
    if clause.tense in ("progressive", "worn", "was-progressive"):
        be = was if clause.tense == "was-progressive" else be
        return [(be, tense), *negation], [(verb.progressive, atoms), *particle]
    if clause.tense == "future":
        return [("will", tense), *negation], [(verb.base, atoms), *particle]
    if clause.tense == "modal" and clause.modal != "want":
        if clause.modal == "can" and clause.negated:
            return [("cannot", (*tense, base + NEGATION))], [(verb.base, atoms), *particle]
        return [(_MODAL[clause.modal], tense), *negation], [(verb.base, atoms), *particle]
    return _simple_verb(clause, who, negation, particle)


def _simple_verb(
    clause: Clause, who: str, negation: list[RenderedWord], particle: list[RenderedWord]
) -> tuple[list[RenderedWord], list[RenderedWord]]:
    """Return simple past and present forms, with do-support in negations and questions; includes "want to"."""
    assert clause.verb is not None
    base = clause.id * ATOMS
    verb = clause.verb.en
    atoms, tense = (base + VERB,), (base + TENSE,)
    wants = clause.tense == "modal"
    is_past = clause.tense in ("past", "moment", "was-state")
    tail: list[RenderedWord] = [("to", tense), (verb.base, atoms), *particle] if wants else particle
    if negation or clause.question not in ("", "subject"):
        do = "did" if is_past else "does" if who == "3" else "do"
        bare: RenderedWord = ("want", tense) if wants else (verb.base, atoms)
        return [(do, tense), *negation], [bare, *tail]
    if wants:
        return [], [("wants" if who == "3" else "want", tense), *tail]
    if clause.tense == "order":
        return [("please", tense)], [(verb.base, atoms), *particle]
    word = verb.past if is_past else verb.third if who == "3" else verb.base
    return [], [(word, (base + VERB, base + TENSE) if is_past else atoms), *particle]


def _adverbial(clause: Clause, adverbial: Adverbial | None, slot: int) -> list[RenderedWord]:
    return adverbial_tokens(adverbial, "en", clause.id * ATOMS + slot) if adverbial else []


def _clause(clause: Clause) -> list[RenderedWord]:
    base = clause.id * ATOMS
    auxiliary, verb = _verb(clause)
    topic = clause.topic
    if topic is None:
        subject: list[RenderedWord] = [] if clause.tense == "order" else [("it", ())]
    elif topic.kind == "gap":
        subject = []
    else:
        subject = _nominal(topic)
    time = _adverbial(clause, clause.time, TIME)
    words: list[RenderedWord] = []
    if clause.fronted:
        words, time = time, []
    if clause.kind == "existence":
        return _existence(clause, auxiliary)
    if clause.question in ("where", "when", "why"):
        words.append((clause.question, (base + QUESTION,)))
    rest = verb
    if clause.question == "object" and clause.object:
        words += _nominal(clause.object)
    else:
        rest = verb + _complements(clause)
    if clause.question == "object" and clause.recipient:
        rest = [*rest, ("to", (clause.recipient.id * ATOMS + LINK,)), *_nominal(clause.recipient, "object")]
    frequency = _adverbial(clause, clause.frequency, FREQUENCY)
    if clause.question and clause.question != "subject":
        # "Why did Anna not …": the negation stays after the subject.
        words += auxiliary[:1] + subject + auxiliary[1:]
    else:
        words += subject + auxiliary
    words += frequency + rest
    if clause.question != "where":
        words += _adverbial(clause, clause.goal, GOAL)
    words += _adverbial(clause, clause.manner, MANNER)
    words += _adverbial(clause, clause.place, PLACE) + _adverbial(clause, clause.duration, DURATION)
    return words + time


def _complements(clause: Clause) -> list[RenderedWord]:
    """Return the words after the verb: objects, the agent of a passive, the predicate."""
    if clause.kind in ("quality", "comparison"):
        return _predicate(clause)
    if clause.passive:
        if clause.subject is None or clause.subject.kind == "gap":
            return []
        return [("by", (clause.subject.id * ATOMS + LINK,)), *_nominal(clause.subject, "object")]
    if clause.object is None or clause.object.kind == "gap":
        return []
    words = _nominal(clause.object, "object")
    if clause.recipient is None:
        return words
    receiver = _nominal(clause.recipient, "object")
    if clause.object.is_definite:
        assert clause.verb is not None
        link = "for" if clause.verb.key.endswith("-for") else "to"
        return [*words, (link, (clause.recipient.id * ATOMS + LINK,)), *receiver]
    return receiver + words


def _predicate(clause: Clause) -> list[RenderedWord]:
    assert clause.adjective is not None
    base = clause.id * ATOMS
    if clause.kind == "quality":
        degree: list[RenderedWord] = [(clause.degree, (base + DEGREE,))] if clause.degree else []
        return [*degree, (clause.adjective.en, (base + VERB,))]
    assert clause.object is not None
    more: list[RenderedWord] = [(word, (base + VERB,)) for word in clause.adjective.en_more.split()]
    if len(more) == 2:
        more[0] = (more[0][0], (base + DEGREE,))
    return [*more, ("than", (clause.object.id * ATOMS + LINK,)), *_nominal(clause.object)]


def _existence(clause: Clause, auxiliary: list[RenderedWord]) -> list[RenderedWord]:
    assert clause.subject is not None
    place = _adverbial(clause, clause.place, PLACE)
    if clause.question == "subject":
        return _nominal(clause.subject) + auxiliary + place
    if clause.negated:
        what = _nominal(clause.subject)[1:]
        atoms = (clause.id * ATOMS + NEGATION, clause.subject.id * ATOMS + DETERMINER)
        return [("there", ()), auxiliary[0], ("no", atoms), *what, *place]
    return [("there", ()), *auxiliary, *_nominal(clause.subject), *place]
