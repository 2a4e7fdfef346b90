"""Renders a syntax tree in Chinese: clauses, and noun phrases with numerals, classifiers, 的 and pronouns."""

from collections.abc import Callable

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

_MODAL = {"can": "能", "must": "必须", "should": "应该", "may": "可以", "want": "想"}
_CONJUNCTION = {"and": "而且", "because": "因为", "but": "但是", "while": "而"}

Clauses = Callable[[Clause], list[RenderedWord]]

_PRONOUN = {"I": "我", "you": "你", "he": "他", "she": "她", "it": "它", "we": "我们", "they": "他们"}
_DETERMINER = {"the": "那", "this": "这", "a": "一", "which": "哪", "how-many": "几"}
_UNCOUNTED = {"many": "很多", "some": "一些"}


def chinese(tree: Tree) -> list[RenderedWord]:
    """Return the words of the sentence, including punctuation."""
    main, side, joint = tree.main, tree.side, tree.joint
    if side is None:
        words = _clause(main)
    elif joint == "that":
        words = _clause(main) + _clause(side)
    elif joint == "when":
        words = [*_clause(side), ("的", ()), ("时候", (side.id * ATOMS + LINK,)), ("，", ()), *_clause(main)]
    elif joint == "if":
        words = [("如果", (side.id * ATOMS + LINK,)), *_clause(side), ("，", ()), *_clause(main, then=True)]
    else:
        link: RenderedWord = (_CONJUNCTION[joint], (side.id * ATOMS + LINK,))
        words = [*_clause(main), ("，", ()), link, *_clause(side)]
    if main.question == "whether":
        words.append(("吗", ()))
    words.append(("？" if main.question else "。", ()))
    return words


def _nominal(nominal: Nominal, *, bare: bool = False) -> list[RenderedWord]:
    return nominal_words(nominal, _clause, bare=bare)


def _adverbial(clause: Clause, adverbial: Adverbial | None, slot: int) -> list[RenderedWord]:
    return adverbial_tokens(adverbial, "zh", clause.id * ATOMS + slot) if adverbial else []


def _clause(clause: Clause, *, then: bool = False) -> list[RenderedWord]:
    """Return topic, time, preverbal words, the verb, and the words after it."""
    topic = clause.topic
    time = _adverbial(clause, clause.time, TIME)
    subject = _nominal(topic) if topic else []
    if clause.time and "habit" in clause.time.tags:
        time.append(("都", ()))
    words = time + subject if clause.fronted else subject + time
    if clause.kind == "existence":
        return _existence(clause)
    if then:
        words.append(("就", ()))
    if clause.tense == "order":
        words = [("请", (clause.id * ATOMS + TENSE,)), *words]
    if clause.kind == "location":
        return words + _location(clause)
    if clause.kind in ("quality", "comparison"):
        return words + _predicate(clause)
    return words + _before_verb(clause) + _verb_and_object(clause)


def _location(clause: Clause) -> list[RenderedWord]:
    base = clause.id * ATOMS
    negation: list[RenderedWord] = [("不", (base + NEGATION,))] if clause.negated else []
    if clause.question == "where":
        return [("在", (base + VERB,)), ("哪里", (base + QUESTION,))]
    place = _adverbial(clause, clause.place, PLACE)
    preposition = (place[0][0], (base + VERB, *place[0][1]))
    return [*negation, preposition, *place[1:]]


def _existence(clause: Clause) -> list[RenderedWord]:
    assert clause.subject is not None
    base = clause.id * ATOMS
    place = _adverbial(clause, clause.place, PLACE)[1:]
    word = "没有" if clause.negated else "有"
    atoms = (base + VERB, base + NEGATION) if clause.negated else (base + VERB,)
    return [*place, (word, atoms), *_nominal(clause.subject, bare=clause.negated)]


def _predicate(clause: Clause) -> list[RenderedWord]:
    assert clause.adjective is not None
    base = clause.id * ATOMS
    text = clause.adjective.zh_predicate
    words: list[RenderedWord] = []
    if clause.kind == "comparison":
        assert clause.object is not None
        link: RenderedWord = ("比", (clause.object.id * ATOMS + LINK,))
        return [link, *_nominal(clause.object), (text, (base + VERB,))]
    if clause.adjective.is_classifying:
        if clause.negated:
            words.append(("不", (base + NEGATION,)))
        return [*words, ("是", (base + TENSE,)), (text[1:-1], (base + VERB,)), ("的", ())]
    if clause.negated:
        words.append(("没" if text.startswith("有") else "不", (base + NEGATION,)))
    elif clause.degree:
        words.append(({"very": "非常", "too": "太"}[clause.degree], (base + DEGREE,)))
    elif not clause.question:
        words.append(("很", ()))
    words.append((text, (base + VERB,)))
    if clause.degree == "too":
        words.append(("了", ()))
    return words


def _before_verb(clause: Clause) -> list[RenderedWord]:
    """Return frequency, negation, modal or aspect, place, manner, and preverbal objects."""
    base = clause.id * ATOMS
    words = _adverbial(clause, clause.frequency, FREQUENCY)
    if clause.question == "why":
        words.append(("为什么", (base + QUESTION,)))
    if _is_past_question(clause):
        words.append(("是", ()))
    if clause.question == "when":
        words.append(("什么时候", (base + QUESTION,)))
    words += _auxiliary(clause)
    place = _adverbial(clause, clause.place, PLACE)
    if clause.question == "where" and clause.goal is None:
        place = [("在", ()), ("哪里", (base + QUESTION,))]
    if clause.tense in ("progressive", "was-progressive") and not (clause.tense[0] == "w" and not clause.subject):
        # 正在 and a locative 在 merge into one word: 正在公园里读书.
        words.append(("正在", (base + TENSE, *(place[0][1] if place else ()))))
        place = place[1:]
    words += place + _adverbial(clause, clause.manner, MANNER)
    return words + _early_objects(clause)


def _auxiliary(clause: Clause) -> list[RenderedWord]:
    base = clause.id * ATOMS
    tense, negation = base + TENSE, base + NEGATION
    assert clause.verb is not None
    no: list[RenderedWord] = [("不", (negation,))] if clause.negated else []
    if clause.tense == "future":
        return [*no, ("能" if clause.hoped else "会", (tense,))]
    if clause.tense == "modal":
        word = _MODAL[clause.modal]
        if clause.modal == "can" and "K" in clause.verb.tenses:
            word = "会"
        if clause.modal == "must" and clause.negated:
            word = "可以"
        return [*no, (word, (tense,))]
    if clause.tense in ("past", "moment") and clause.negated:
        return [("没有", (negation, tense))]
    if clause.tense == "state" and clause.verb.key == "have" and clause.negated:
        return [("没", (negation,))]
    return no


def _early_objects(clause: Clause) -> list[RenderedWord]:
    """Return 被 with the agent, and 给, 和 or 把 with an object."""
    assert clause.verb is not None
    if clause.passive:
        passive = clause.id * ATOMS + PASSIVE
        if clause.subject is None or clause.subject.kind == "gap":
            return [("被", (passive,))]
        return [("被", (passive, clause.subject.id * ATOMS + LINK)), *_nominal(clause.subject)]
    preposition = clause.verb.zh.preposition
    moved = clause.recipient or clause.object
    if preposition and moved:
        atom = moved.id * ATOMS + LINK if clause.recipient else clause.id * ATOMS + PARTICLE
        return [(preposition, (atom,)), *_nominal(moved)]
    if clause.recipient and clause.object and clause.object.is_definite and clause.object.kind != "gap":
        if clause.question == "object":
            return []
        return [("把", ()), *_nominal(clause.object)]
    return []


def _verb_and_object(clause: Clause) -> list[RenderedWord]:
    base = clause.id * ATOMS
    assert clause.verb is not None
    verb = clause.verb.zh
    word = verb.passive if clause.passive else verb.word
    tail = "" if clause.duration else verb.tail
    is_then = _is_past_question(clause)
    in_gap = clause.gap == "object"
    is_weather = clause.subject is None and clause.tense == "was-progressive"
    has_le = (clause.tense == "past" or is_weather) and not clause.negated and not is_then and not in_gap
    words: list[RenderedWord] = [(word + tail, (base + VERB,))]
    if has_le or clause.tense == "worn":
        words.append(("着" if clause.tense == "worn" else "了", (base + TENSE,)))
    words += _late_objects(clause)
    words += _adverbial(clause, clause.duration, DURATION)
    if clause.goal and clause.question == "where":
        words.append(("哪里", (base + QUESTION,)))
    else:
        words += _adverbial(clause, clause.goal, GOAL)
    return [*words, ("的", ())] if is_then else words


def _is_past_question(clause: Clause) -> bool:
    """Return whether a question uses 是…的, as "where" and "when" do, except for motion: 去了哪里."""
    return clause.tense == "past" and (clause.question == "when" or (clause.question == "where" and not clause.goal))


def _late_objects(clause: Clause) -> list[RenderedWord]:
    assert clause.verb is not None
    if clause.passive or clause.object is None:
        return []
    preposition = clause.verb.zh.preposition
    item = clause.object
    is_bare = clause.negated and item.determiner == "a"
    if clause.recipient is None:
        return [] if preposition else _nominal(item, bare=is_bare)
    if preposition:
        return _nominal(item, bare=is_bare)
    receiver = _nominal(clause.recipient)
    if item.is_definite and clause.question != "object":
        return receiver
    return receiver + _nominal(item, bare=is_bare)


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
