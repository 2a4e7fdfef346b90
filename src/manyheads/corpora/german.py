"""Renders a syntax tree in German."""

from manyheads.corpora.german_nominals import agreement, nominal_words, relative_pronoun
from manyheads.corpora.lexemes import Adverbial
from manyheads.corpora.syntax_tree import (
    ATOMS,
    DEGREE,
    DURATION,
    FREQUENCY,
    GOAL,
    LINK,
    MANNER,
    NEGATION,
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

_BE = {"1": "bin", "2": "bist", "3": "ist", "p": "sind"}
_WAS = {"1": "war", "2": "warst", "3": "war", "p": "waren"}
_HAVE = {"1": "habe", "2": "hast", "3": "hat", "p": "haben"}
_WILL = {"1": "werde", "2": "wirst", "3": "wird", "p": "werden"}
_BECAME = {"1": "wurde", "2": "wurdest", "3": "wurde", "p": "wurden"}
_LIE = {"3": "liegt", "p": "liegen"}
_STAND = {"3": "steht", "p": "stehen"}
_MODAL = {
    "can": {"1": "kann", "2": "kannst", "3": "kann", "p": "können"},
    "must": {"1": "muss", "2": "musst", "3": "muss", "p": "müssen"},
    "should": {"1": "sollte", "2": "solltest", "3": "sollte", "p": "sollten"},
    "may": {"1": "darf", "2": "darfst", "3": "darf", "p": "dürfen"},
    "want": {"1": "will", "2": "willst", "3": "will", "p": "wollen"},
}
_CONJUNCTION = {
    "and": "und",
    "because": "weil",
    "but": "aber",
    "while": "während",
    "that": "dass",
    "when": "als",
    "if": "wenn",
}
_QUESTION = {"where": "wo", "when": "wann", "why": "warum"}
_DEGREE = {"very": "sehr", "too": "zu"}


def german(tree: Tree) -> list[RenderedWord]:
    """Return the words of the sentence, including punctuation."""
    main, side, joint = tree.main, tree.side, tree.joint
    if side is None:
        words = _main_clause(main)
    else:
        link: RenderedWord = (_CONJUNCTION[joint], (side.id * ATOMS + LINK,))
        if joint in ("when", "if"):
            words = [link, *_final_clause(side), (",", ()), *_main_clause(main, inverted=True)]
        elif joint in ("but", "and"):
            words = [*_main_clause(main), (",", ()), link, *_main_clause(side)]
        else:
            words = [*_main_clause(main), (",", ()), link, *_final_clause(side)]
    words.append(("?" if main.question else ".", ()))
    return _tidy_commas(words)


def _tidy_commas(words: list[RenderedWord]) -> list[RenderedWord]:
    """Merge adjacent commas and remove a comma before the final punctuation."""
    tidy: list[RenderedWord] = []
    for word in words:
        if tidy and tidy[-1][0] == "," and word[0] in ",.?":
            tidy.pop()
        tidy.append(word)
    return tidy


def _adverbial(clause: Clause, adverbial: Adverbial | None, slot: int) -> list[RenderedWord]:
    return adverbial_tokens(adverbial, "de", clause.id * ATOMS + slot) if adverbial else []


def _verb(clause: Clause) -> tuple[RenderedWord, list[RenderedWord], bool]:
    """Return the finite verb, the right bracket, and whether the latter is only a separable prefix."""
    base = clause.id * ATOMS
    who = agreement(clause.topic)
    tense = (base + TENSE,)
    if clause.kind != "verb" or clause.verb is None:
        return _linking_verb(clause, who), [], False
    verb = clause.verb.de
    atoms = (base + VERB,)
    closing: list[RenderedWord] = [(word, atoms) for word in verb.participle.split()]
    if len(closing) > 1:
        closing = [(word, (base + PARTICLE, base + VERB)) for word, _ in closing[:-1]] + closing[-1:]
    if clause.passive:
        return (_BECAME[who], (base + PASSIVE,)), closing, False
    if clause.tense == "past":
        return ((_BE if verb.auxiliary == "sein" else _HAVE)[who], tense), closing, False
    if clause.tense in ("future", "modal"):
        table = _WILL if clause.tense == "future" else _MODAL[clause.modal]
        if clause.modal == "must" and clause.negated:
            table = _MODAL["may"]
        return (table[who], tense), _infinitive(clause), False
    prefix: list[RenderedWord] = [(word, (base + PARTICLE, base + VERB)) for word in verb.prefix.split()]
    if clause.tense == "order":
        return (verb.imperative, atoms), prefix, True
    if clause.tense in ("moment", "was-state", "was-progressive"):
        moment = clause.tense != "was-progressive"
        return (verb.preterite[who], (base + VERB, base + TENSE) if moment else atoms), prefix, True
    return (verb.present[who], atoms), prefix, True


def _infinitive(clause: Clause) -> list[RenderedWord]:
    assert clause.verb is not None
    verb = clause.verb.de
    base = clause.id * ATOMS
    *particles, last = (verb.prefix + verb.infinitive).split()
    words: list[RenderedWord] = [(word, (base + PARTICLE, base + VERB)) for word in particles]
    return [*words, (last, (base + VERB,))]


def _linking_verb(clause: Clause, who: str) -> RenderedWord:
    """Return the form of sein, or of liegen or stehen for the location of a thing."""
    base = clause.id * ATOMS
    topic = clause.topic
    if clause.kind in ("quality", "comparison"):
        return ((_WAS if clause.tense == "past" else _BE)[who], (base + TENSE,))
    table = _BE
    if topic and topic.noun and clause.question == "" and clause.place:
        is_upright = "upright" in topic.noun.tags and not clause.place.key.startswith("in-")
        table = _STAND if is_upright else _LIE if "small" in topic.noun.tags else _BE
    return (table[who], (base + VERB,))


def _main_clause(clause: Clause, *, inverted: bool = False) -> list[RenderedWord]:
    """Return a verb-second clause: one constituent, finite verb, middle field, right bracket, relative clauses."""
    finite, closing, _ = _verb(clause)
    before, middle, after = _fields(clause)
    if clause.tense == "order":
        return [("bitte", (clause.id * ATOMS + TENSE,)), finite, *middle, *closing, *after]
    first, subject = _first_position(clause, before)
    if inverted or clause.question == "whether":
        first, subject = [], first
    return [*first, finite, *subject, *middle, *closing, *after]


def _first_position(clause: Clause, subject: list[RenderedWord]) -> tuple[list[RenderedWord], list[RenderedWord]]:
    """Return the prefield, and the subject if it is not in the prefield."""
    base = clause.id * ATOMS
    if clause.kind == "existence" and clause.question == "":
        return _adverbial(clause, clause.place, PLACE), subject
    if clause.question == "object" and clause.object and clause.verb:
        return _object(clause, clause.object), subject
    if clause.question in _QUESTION:
        word = "wohin" if clause.question == "where" and clause.goal else _QUESTION[clause.question]
        return [(word, (base + QUESTION,))], subject
    if clause.fronted:
        return _adverbial(clause, clause.time, TIME), subject
    return subject, []


def _final_clause(clause: Clause) -> list[RenderedWord]:
    """Return a subordinate clause: the finite verb comes last, joined to its prefix."""
    finite, closing, is_prefix = _verb(clause)
    before, middle, after = _fields(clause)
    if is_prefix and closing:
        *loose, last = closing
        assert clause.verb is not None
        if clause.verb.de.prefix.endswith(" "):
            return [*before, *middle, *closing, finite, *after]
        return [*before, *middle, *loose, (last[0] + finite[0], finite[1]), *after]
    return [*before, *middle, *closing, finite, *after]


def _relative_clause(head: Nominal, clause: Clause) -> list[RenderedWord]:
    gap = clause.subject if clause.gap == "subject" else clause.object
    assert gap is not None and clause.verb is not None
    verb = clause.verb.de
    case = "nominative" if clause.gap == "subject" else verb.case
    words: list[RenderedWord] = [(",", ())]
    if clause.gap == "object" and verb.preposition:
        words.append((verb.preposition, (clause.id * ATOMS + PARTICLE,)))
    words.append((relative_pronoun(head, case), (gap.id * ATOMS + RELATIVE,)))
    return [*words, *_final_clause(clause), (",", ())]


def _object(clause: Clause, item: Nominal) -> list[RenderedWord]:
    """Return an object with the case and the preposition that the verb governs."""
    assert clause.verb is not None
    verb = clause.verb.de
    negation = clause.id * ATOMS + NEGATION if clause.negated else 0
    words = nominal_words(item, verb.case, negation)
    if verb.preposition and item is clause.object:
        return [(verb.preposition, (clause.id * ATOMS + PARTICLE,)), *words]
    return words


def _subject(clause: Clause) -> list[RenderedWord]:
    topic = clause.topic
    if topic is None:
        return [] if clause.tense == "order" else [("es", ())]
    if topic.kind == "gap":
        return []
    is_absent = clause.kind == "existence" and clause.negated
    words = nominal_words(topic, "nominative", clause.id * ATOMS + NEGATION if is_absent else 0)
    if topic.relative:
        words += _relative_clause(topic, topic.relative)
    return words


def _fields(clause: Clause) -> tuple[list[RenderedWord], list[RenderedWord], list[RenderedWord]]:
    """Return the subject, the middle field, and the relative clause that is moved after the verb."""
    subject = _subject(clause)
    if clause.kind in ("quality", "comparison", "location", "existence"):
        return subject, _nominal_middle(clause), []
    after: list[RenderedWord] = []
    last = clause.subject if clause.passive else clause.object
    if last and last.relative and last.kind == "noun":
        after = _relative_clause(last, last.relative)
    return subject, _middle(clause), after


def _negation(clause: Clause) -> list[RenderedWord]:
    return [("nicht", (clause.id * ATOMS + NEGATION,))] if clause.negated else []


def _nominal_middle(clause: Clause) -> list[RenderedWord]:
    base = clause.id * ATOMS
    time = [] if clause.fronted else _adverbial(clause, clause.time, TIME)
    if clause.kind == "existence":
        return _adverbial(clause, clause.place, PLACE) if clause.question else []
    if clause.kind == "location":
        place = [] if clause.question == "where" else _adverbial(clause, clause.place, PLACE)
        return time + _negation(clause) + place
    assert clause.adjective is not None
    if clause.kind == "comparison":
        assert clause.object is not None
        than: RenderedWord = ("als", (clause.object.id * ATOMS + LINK,))
        return [*time, (clause.adjective.de_more, (base + VERB,)), than, *nominal_words(clause.object, "nominative")]
    degree: list[RenderedWord] = [(_DEGREE[clause.degree], (base + DEGREE,))] if clause.degree else []
    return time + _negation(clause) + [*degree, (clause.adjective.de, (base + VERB,))]


def _middle(clause: Clause) -> list[RenderedWord]:
    """Return pronouns, time, definite objects, manner, place, indefinite objects, in this order.

    A negation moves definite objects before the time.
    """
    base = clause.id * ATOMS
    pronouns, known, new, prepositional = _sorted_objects(clause)
    time = [] if clause.fronted else _adverbial(clause, clause.time, TIME)
    if clause.tense in ("progressive", "was-progressive") and clause.subject and not clause.gap and not clause.is_side:
        time = [*time, ("gerade", (base + TENSE,))]
    time += _adverbial(clause, clause.frequency, FREQUENCY) + _adverbial(clause, clause.duration, DURATION)
    manner = _adverbial(clause, clause.manner, MANNER)
    place = _adverbial(clause, clause.place, PLACE)
    goal = [] if clause.question == "where" else _adverbial(clause, clause.goal, GOAL)
    if not clause.negated:
        return pronouns + time + known + manner + place + new + prepositional + goal
    has_kein = clause.object is not None and clause.object.determiner in ("a", "bare") and bool(new)
    negation = [] if has_kein else _negation(clause)
    return pronouns + known + time + negation + manner + place + new + prepositional + goal


def _sorted_objects(
    clause: Clause,
) -> tuple[list[RenderedWord], list[RenderedWord], list[RenderedWord], list[RenderedWord]]:
    pronouns: list[RenderedWord] = []
    known: list[RenderedWord] = []
    new: list[RenderedWord] = []
    prepositional: list[RenderedWord] = []
    verb = clause.verb.de if clause.verb else None
    receiver, item = clause.recipient, clause.object
    if receiver:
        words = nominal_words(receiver, "dative")
        (pronouns if receiver.is_pronoun else known).extend(words)
    if clause.passive:
        if clause.subject and clause.subject.kind != "gap":
            prepositional = _agent(clause.subject)
    elif item and item.kind != "gap" and clause.question != "object":
        words = _object(clause, item)
        if verb and verb.preposition:
            prepositional = words
        elif item.is_pronoun and not (receiver and not receiver.is_pronoun):
            pronouns = words + pronouns
        elif item.is_pronoun:
            pronouns += words
        elif not item.is_definite:
            new = words
        else:
            known += words
    return pronouns, known, new, prepositional


def _agent(agent: Nominal) -> list[RenderedWord]:
    words = nominal_words(agent, "dative")
    link = agent.id * ATOMS + LINK
    if words[0][0] == "dem" and agent.relative is None:
        return [("vom", (link, *words[0][1])), *words[1:]]
    return [("von", (link,)), *words]
