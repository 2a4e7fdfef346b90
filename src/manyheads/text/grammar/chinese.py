"""Say a tree in Chinese."""

from manyheads.text.grammar.adverbials import NUMERALS
from manyheads.text.grammar.lexemes import Adverbial
from manyheads.text.grammar.tree import (
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
    Token,
    Tree,
    adverbial_tokens,
)

_PRONOUN = {"I": "我", "you": "你", "he": "他", "she": "她", "it": "它", "we": "我们", "they": "他们"}
_DETERMINER = {"the": "那", "this": "这", "a": "一", "which": "哪", "how-many": "几"}
_UNCOUNTED = {"many": "很多", "some": "一些"}
_MODAL = {"can": "能", "must": "必须", "should": "应该", "may": "可以", "want": "想"}
_CONJUNCTION = {"because": "因为", "but": "但是", "while": "而"}


def chinese(tree: Tree) -> list[Token]:
    """The words of the sentence, punctuation included."""
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
        link: Token = (_CONJUNCTION[joint], (side.id * ATOMS + LINK,))
        words = [*_clause(main), ("，", ()), link, *_clause(side)]
    if main.question == "whether":
        words.append(("吗", ()))
    words.append(("？" if main.question else "。", ()))
    return words


def _nominal(nominal: Nominal, *, bare: bool = False) -> list[Token]:
    words = _single(nominal, bare)
    if nominal.second:
        words.append(("和", (nominal.second.id * ATOMS + LINK,)))
        words += _single(nominal.second, bare)
    return words


def _single(nominal: Nominal, bare: bool) -> list[Token]:
    atoms = (nominal.id * ATOMS + NOUN,)
    if nominal.kind == "noun":
        return _noun_phrase(nominal, bare)
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
        return "他们" if nominal.is_person else "它们"
    return _PRONOUN[nominal.sex]


def _noun_phrase(nominal: Nominal, bare: bool) -> list[Token]:
    """Owner or determiner, numeral, classifier, quality, noun.

    A relative clause on an object comes before the determiner (安娜买的那本书), on a subject after it (那个买书的人).
    """
    assert nominal.noun is not None
    words = [] if bare else _determiner(nominal)
    relative = nominal.relative
    if relative:
        modifier: list[Token] = [*_clause(relative), ("的", ())]
        words = modifier + words if relative.gap == "object" else words + modifier
    if nominal.adjective:
        words += attribute(nominal.adjective.zh, nominal.id * ATOMS + ADJECTIVE)
    words.append((nominal.noun.zh, (nominal.id * ATOMS + NOUN,)))
    return words


def attribute(text: str, atom: int) -> list[Token]:
    """A quality before its noun: 老, 红色的, 很长的."""
    words: list[Token] = []
    if text.startswith("很"):
        words.append(("很", ()))
        text = text[1:]
    words.append((text.removesuffix("的"), (atom,)))
    if text.endswith("的"):
        words.append(("的", ()))
    return words


def _determiner(nominal: Nominal) -> list[Token]:
    assert nominal.noun is not None
    base = nominal.id * ATOMS
    kind = nominal.determiner
    words: list[Token] = []
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


def _adverbial(clause: Clause, adverbial: Adverbial | None, slot: int) -> list[Token]:
    return adverbial_tokens(adverbial, "zh", clause.id * ATOMS + slot) if adverbial else []


def _clause(clause: Clause, *, then: bool = False) -> list[Token]:
    """Topic, time, then everything that stands before the verb, the verb, and what follows it."""
    topic = clause.topic
    time = _adverbial(clause, clause.time, TIME)
    subject = _nominal(topic) if topic else []
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


def _location(clause: Clause) -> list[Token]:
    base = clause.id * ATOMS
    negation: list[Token] = [("不", (base + NEGATION,))] if clause.negated else []
    if clause.question == "where":
        return [("在", (base + VERB,)), ("哪里", (base + QUESTION,))]
    place = _adverbial(clause, clause.place, PLACE)
    preposition = (place[0][0], (base + VERB, *place[0][1]))
    return [*negation, preposition, *place[1:]]


def _existence(clause: Clause) -> list[Token]:
    assert clause.subject is not None
    base = clause.id * ATOMS
    place = _adverbial(clause, clause.place, PLACE)[1:]
    word = "没有" if clause.negated else "有"
    atoms = (base + VERB, base + NEGATION) if clause.negated else (base + VERB,)
    return [*place, (word, atoms), *_nominal(clause.subject, bare=clause.negated)]


def _predicate(clause: Clause) -> list[Token]:
    assert clause.adjective is not None
    base = clause.id * ATOMS
    text = clause.adjective.zh_predicate
    words: list[Token] = []
    if clause.kind == "comparison":
        assert clause.object is not None
        link: Token = ("比", (clause.object.id * ATOMS + LINK,))
        return [link, *_nominal(clause.object), (text, (base + VERB,))]
    if clause.adjective.is_classifying:
        if clause.negated:
            words.append(("不", (base + NEGATION,)))
        return [*words, ("是", (base + TENSE,)), (text[1:-1], (base + VERB,)), ("的", ())]
    if clause.negated:
        words.append(("不", (base + NEGATION,)))
    elif clause.degree:
        words.append(({"very": "非常", "too": "太"}[clause.degree], (base + DEGREE,)))
    elif not clause.question:
        words.append(("很", ()))
    words.append((text, (base + VERB,)))
    if clause.degree == "too":
        words.append(("了", ()))
    return words


def _before_verb(clause: Clause) -> list[Token]:
    """Frequency, negation, modal or aspect, place, manner, and objects that stand before the verb."""
    base = clause.id * ATOMS
    words = _adverbial(clause, clause.frequency, FREQUENCY)
    if clause.question == "why":
        words.append(("为什么", (base + QUESTION,)))
    is_then = clause.question in ("where", "when") and clause.tense == "past"
    if is_then:
        words.append(("是", ()))
    if clause.question == "when":
        words.append(("什么时候", (base + QUESTION,)))
    words += _auxiliary(clause)
    place = _adverbial(clause, clause.place, PLACE)
    if clause.question == "where" and clause.goal is None:
        place = [("在", ()), ("哪里", (base + QUESTION,))]
    if clause.tense in ("progressive", "was-progressive"):
        # 正在 and the 在 of a place are one word: 正在公园里读书.
        words.append(("正在", (base + TENSE, *(place[0][1] if place else ()))))
        place = place[1:]
    words += place + _adverbial(clause, clause.manner, MANNER)
    return words + _early_objects(clause)


def _auxiliary(clause: Clause) -> list[Token]:
    base = clause.id * ATOMS
    tense, negation = base + TENSE, base + NEGATION
    assert clause.verb is not None
    no: list[Token] = [("不", (negation,))] if clause.negated else []
    if clause.tense == "future":
        return [*no, ("会", (tense,))]
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


def _early_objects(clause: Clause) -> list[Token]:
    """被 and the agent; 给, 和 or 把 and an object."""
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


def _verb_and_object(clause: Clause) -> list[Token]:
    base = clause.id * ATOMS
    assert clause.verb is not None
    verb = clause.verb.zh
    word = verb.passive if clause.passive else verb.word
    tail = "" if clause.duration else verb.tail
    is_then = clause.question in ("where", "when") and clause.tense == "past"
    in_gap = clause.gap == "object"
    has_le = clause.tense == "past" and not clause.negated and not is_then and not in_gap
    words: list[Token] = []
    if has_le or clause.tense == "worn":
        words = [(word, (base + VERB,)), ("着" if clause.tense == "worn" else "了", (base + TENSE,))]
        if tail:
            words.append((tail, (base + PARTICLE, base + VERB)))
    else:
        words = [(word + tail, (base + VERB,))]
    words += _late_objects(clause)
    words += _adverbial(clause, clause.duration, DURATION)
    if clause.goal and clause.question == "where":
        words.append(("哪里", (base + QUESTION,)))
    else:
        words += _adverbial(clause, clause.goal, GOAL)
    return [*words, ("的", ())] if is_then and not clause.goal else words


def _late_objects(clause: Clause) -> list[Token]:
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
