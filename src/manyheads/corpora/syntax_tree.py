"""The language-independent syntax tree of a sentence: nominals and clauses, and the atoms of meaning in them.

An atom is a number, `node * ATOMS + slot`, for one part of the meaning of a node, such as the noun of a nominal or the
negation of a clause. Each language labels its words with the atoms that they express; two words of two languages are
aligned if they share an atom. Words without a counterpart (的, 吗, 很, a comma) have no atom.

A Chinese classifier has the atom of its numeral or else of its determiner: in 那两本书, 两 and 本 are aligned with
"two"; in 一本书, 一 and 本 are aligned with "a".
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from manyheads.corpora.lexemes import Adjective, Adverbial, Name, Noun, Verb

ATOMS = 40
# Slots of a nominal.
NOUN, DETERMINER, NUMERAL, ADJECTIVE, MEASURE, RELATIVE, LINK, OWNER_MARK = range(8)
# Slots of a clause; LINK is its conjunction. An adverbial takes four slots, for itself and its parts 1, 2 and 3.
VERB, TENSE, NEGATION, PASSIVE, DEGREE, QUESTION, _, PARTICLE = range(8)
TIME, PLACE, MANNER, FREQUENCY, DURATION, GOAL = 8, 12, 16, 20, 24, 28

RenderedWord = tuple[str, tuple[int, ...]]
"""A surface word and the atoms it expresses; it is the head word of the first atom."""


@dataclass(slots=True, eq=False)
class Nominal:
    """A participant: a noun phrase, a name, a pronoun, a question word, or the gap of a relative clause."""

    id: int
    kind: str  # noun, name, pronoun, anaphor, who, what, gap
    noun: Noun | None = None
    name: Name | None = None
    pronoun: str = ""  # I, you, he, she, we, they
    plural: bool = False
    determiner: str = ""  # the, a, this, bare, instrument, game, many, some, which, how-many, own
    numeral: int = 0
    measured: bool = False
    adjective: Adjective | None = None
    owner: "Nominal | None" = None
    relative: "Clause | None" = None
    antecedent: "Nominal | None" = None
    second: "Nominal | None" = None

    @property
    def sex(self) -> str:
        """The English singular pronoun for this nominal: he, she, it, or empty if there is none."""
        if self.name:
            return self.name.sex
        if self.noun:
            return self.noun.sex
        return self.antecedent.sex if self.antecedent else self.pronoun

    @property
    def is_person(self) -> bool:
        """Whether it denotes a person."""
        if self.noun:
            return "person" in self.noun.tags
        return self.antecedent.is_person if self.antecedent else True

    @property
    def is_definite(self) -> bool:
        """Whether the nominal is definite."""
        return self.kind != "noun" or self.determiner in ("the", "this", "own", "which")

    @property
    def is_several(self) -> bool:
        """Whether it denotes more than one."""
        return self.plural or self.second is not None or self.pronoun in ("we", "they")

    @property
    def is_pronoun(self) -> bool:
        """Whether it is a pronoun, which German moves to the front of the middle field."""
        return self.kind in ("pronoun", "anaphor")


@dataclass(slots=True, eq=False)
class Clause:
    """An event or a state. `subject` is the agent and `object` the patient, in passive clauses too."""

    id: int
    kind: str  # verb, quality, comparison, location, existence
    verb: Verb | None = None
    adjective: Adjective | None = None
    subject: Nominal | None = None
    object: Nominal | None = None
    recipient: Nominal | None = None
    tense: str = (
        "past"  # past, progressive, was-progressive, moment, habit, state, was-state, worn, future, modal, order
    )
    modal: str = ""  # can, must, should, may, want
    negated: bool = False
    passive: bool = False
    question: str = ""  # whether, subject, object, where, when, why
    degree: str = ""  # very, too
    is_side: bool = False  # whether it is the while-clause of another
    hoped: bool = False  # whether it is the object of a hope
    gap: str = ""  # subject or object: the role of the head noun inside a relative clause
    time: Adverbial | None = None
    fronted: bool = False
    place: Adverbial | None = None
    manner: Adverbial | None = None
    frequency: Adverbial | None = None
    duration: Adverbial | None = None
    goal: Adverbial | None = None

    @property
    def topic(self) -> Nominal | None:
        """The grammatical subject."""
        return self.object if self.passive else self.subject


@dataclass(slots=True, eq=False)
class Tree:
    """A sentence: a main clause and, optionally, a second clause with a conjunction."""

    main: Clause
    joint: str = ""  # and, because, but, while, when, if, that
    side: Clause | None = None
    clauses: list[Clause] = field(default_factory=list)
    nominals: list[Nominal] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Collect all nodes of the sentence."""
        self._add_clause(self.main)
        if self.side:
            self._add_clause(self.side)

    def _add_clause(self, clause: Clause) -> None:
        self.clauses.append(clause)
        for nominal in (clause.subject, clause.object, clause.recipient):
            if nominal:
                self._add_nominal(nominal)

    def _add_nominal(self, nominal: Nominal) -> None:
        self.nominals.append(nominal)
        for part in (nominal.owner, nominal.second):
            if part:
                self._add_nominal(part)
        if nominal.relative:
            self._add_clause(nominal.relative)

    def adverbial_keys(self) -> Iterator[str]:
        """Yield the keys of all adverbials; "Where did you go?" does not contain its goal."""
        for clause in self.clauses:
            goal = None if clause.question == "where" else clause.goal
            for adverbial in (clause.time, clause.place, clause.manner, goal, clause.frequency, clause.duration):
                if adverbial:
                    yield adverbial.key

    def content_keys(self) -> list[str]:
        """Return the keys of all content words; trees with equal text in any language have equal keys."""
        keys = list(self.adverbial_keys())
        for nominal in self.nominals:
            if nominal.noun:
                keys.append(nominal.noun.key)
            elif nominal.name:
                keys.append(nominal.name.key)
            elif nominal.pronoun:
                keys.append(nominal.pronoun)
            if nominal.adjective:
                keys.append(nominal.adjective.key)
        for clause in self.clauses:
            if clause.verb:
                keys.append(clause.verb.key)
            if clause.adjective:
                keys.append(clause.adjective.key)
        return keys

    def combinations(self) -> Iterator[tuple[str, str]]:
        """Yield the (adjective, noun) and (verb, object) pairs, some of which are held out of training."""
        for nominal in self.nominals:
            if nominal.adjective and nominal.noun:
                yield nominal.adjective.en, nominal.noun.key
        for clause in self.clauses:
            if clause.adjective and clause.subject and clause.subject.noun:
                yield clause.adjective.en, clause.subject.noun.key
            head = clause.object
            if clause.verb and head and head.noun:
                yield clause.verb.en.base + clause.verb.en.particle, head.noun.key

    def relations(self) -> Iterator[tuple[str, int, int]]:
        """Yield the gold relations as (kind, atom of the dependent word, atom of its head)."""
        for clause in self.clauses:
            verb = clause.id * ATOMS + VERB
            for kind, nominal in (
                ("subject", clause.topic),
                ("object", clause.object if clause.kind == "verb" and not clause.passive else None),
                ("indirect-object", clause.recipient),
            ):
                if nominal:
                    yield kind, nominal.id * ATOMS + (RELATIVE if nominal.kind == "gap" else NOUN), verb
        for nominal in self.nominals:
            noun = nominal.id * ATOMS + NOUN
            if nominal.adjective:
                yield "modifier", nominal.id * ATOMS + ADJECTIVE, noun
            if nominal.antecedent:
                slot = RELATIVE if nominal.kind == "gap" else NOUN
                yield "antecedent", nominal.id * ATOMS + slot, nominal.antecedent.id * ATOMS + NOUN


def adverbial_tokens(adverbial: Adverbial, language: str, base: int) -> list[RenderedWord]:
    """Return the words of an adverbial, labelled with the atoms from `base` on."""
    return [(word, tuple(base + part for part in parts)) for word, parts in adverbial.phrases[language]]
