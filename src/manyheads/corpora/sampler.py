"""`Sampler`: random choices and noun phrases, the base of all samplers of sentences."""

from random import Random
from typing import TypeVar

from manyheads.corpora import lexicon
from manyheads.corpora.lexemes import Noun, Verb
from manyheads.corpora.syntax_tree import Clause, Nominal
from manyheads.corpora.word_tables import ALL_NAMES

T = TypeVar("T")

_DEICTIC = ("I", "you", "he", "she", "we", "they")
_OBJECT_PRONOUNS = ("I", "you", "he", "she", "we")
_SHE = tuple(name for name in ALL_NAMES if name.sex == "she")
_HUMAN = frozenset({"person", "adult"})


class Sampler:
    """Draws nominals; `event_sampler` and `clause_sampler` build clauses from them."""

    def __init__(self, seed: int) -> None:
        # Only .random() is used, because its sequence is the same on every machine and Python version.
        self._random = Random(seed).random
        self._next = 1
        # Whether temporary states (the hungry dog) fit the clause, which they do if it is past or progressive.
        self.lively = False

    def pick(self, items: tuple[T, ...]) -> T:
        """Draw one of the items with equal probability."""
        return items[int(self._random() * len(items))]

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self._random() < probability

    def weigh(self, table: tuple[tuple[float, T], ...]) -> T:
        """Draw one of the items by cumulative probability; the last one is 1."""
        point = self._random()
        for limit, item in table:
            if point < limit:
                return item
        return table[-1][1]

    def restart(self) -> None:
        """Start a new tree."""
        self._next = 1
        self.lively = False

    def new_nominal(self, kind: str) -> Nominal:
        """Return a new nominal with the next node number."""
        self._next += 1
        return Nominal(self._next - 1, kind)

    def new_clause(self, kind: str, verb: Verb | None = None) -> Clause:
        """Return a new clause with the next node number."""
        self._next += 1
        return Clause(self._next - 1, kind, verb)

    def noun(self, noun: Noun, determiner: str, *, plural: bool = False, numeral: int = 0) -> Nominal:
        """Return a noun phrase."""
        nominal = self.new_nominal("noun")
        nominal.noun, nominal.determiner = noun, determiner
        nominal.plural, nominal.numeral = plural or numeral > 1, numeral
        return nominal

    def a_name(self, *, lady: bool = False) -> Nominal:
        """Draw a person's name."""
        nominal = self.new_nominal("name")
        nominal.name = self.pick(_SHE if lady else ALL_NAMES)
        return nominal

    def a_pronoun(self, words: tuple[str, ...] = _DEICTIC) -> Nominal:
        """Draw a pronoun: I, you, he, she, we or they."""
        nominal = self.new_nominal("pronoun")
        nominal.pronoun = self.pick(words)
        return nominal

    def anaphor(self, antecedent: Nominal) -> Nominal:
        """Return the pronoun that refers to an earlier nominal."""
        nominal = self.new_nominal("anaphor")
        nominal.antecedent = antecedent
        nominal.plural = antecedent.plural or antecedent.second is not None
        if antecedent.pronoun:
            nominal.pronoun = antecedent.pronoun
        return nominal

    def decorate(self, nominal: Nominal, probability: float = 0.55) -> Nominal:
        """Add an adjective that fits the noun, with the given probability."""
        noun = nominal.noun
        if noun is None or nominal.measured or not self.chance(probability):
            return nominal
        choices = lexicon.attributes_for(noun)
        if not choices:
            return nominal
        adjective = self.pick(choices)
        # Chinese would need two 的 in a row: 我的红色的包.
        if nominal.determiner == "own" and (adjective.zh.endswith("的") or "kin" in noun.tags):
            return nominal
        if adjective.value.startswith("state") and not (self.lively and self.chance(0.5)):
            return nominal
        nominal.adjective = adjective
        return nominal

    def owned(self, noun: Noun, owner_of: Nominal | None) -> Nominal:
        """Draw a noun phrase with an owner: my bag, Anna's bag; his or her bag only if the owner is the subject."""
        nominal = self.noun(noun, "own")
        if owner_of is not None and not owner_of.is_person:
            owner_of = None  # a dog has no grandfather
        point = self._random()
        if owner_of is not None and owner_of.pronoun != "we" and (owner_of.sex or owner_of.is_several) and point < 0.55:
            nominal.owner = self.owner(owner_of)
            nominal.plural = owner_of.is_several  # the boys and their books
        elif point < 0.75:
            nominal.owner = self.a_name()
        else:
            nominal.owner = self.a_pronoun(("I", "you", "we"))
        if nominal.owner.name and owner_of is not None and owner_of.name is nominal.owner.name:
            nominal.owner = self.owner(owner_of)
        return nominal

    def owner(self, subject: Nominal) -> Nominal:
        """Return the possessive pronoun of the subject."""
        return self.anaphor(subject)

    def human(self, tags: tuple[str, ...]) -> Nominal:
        """Draw a person as a subject: a name, a pronoun, a relative, an occupation, or two people."""
        lady = "lady" in tags
        if _HUMAN.isdisjoint(tags) and not lady:
            return self.somebody(lexicon.nouns_with(tags))
        point = self._random()
        if point < 0.26:
            nominal = self.a_name(lady=lady)
            if not lady and self.chance(0.14):
                self.join(nominal)
            return nominal
        if point < 0.42:
            return self.a_pronoun(("she",) if lady else _DEICTIC)
        nouns = lexicon.nouns_with(tags if not lady else ("person",))
        if lady:
            nouns = tuple(noun for noun in nouns if noun.sex == "she")
        return self.somebody(nouns)

    def join(self, nominal: Nominal) -> None:
        """Turn "Anna" into "Anna and Peter" at random."""
        second = self.a_name()
        if second.name is not nominal.name:
            nominal.second = second

    def somebody(self, nouns: tuple[Noun, ...]) -> Nominal:
        """Draw a subject noun phrase, usually a definite one."""
        noun = self.pick(nouns)
        if "kin" in noun.tags:
            return self.owned(noun, None)
        point = self._random()
        if point < 0.5:
            return self.decorate(self.noun(noun, "the"))
        if point < 0.64:
            return self.decorate(self.noun(noun, "the", plural=True))
        if point < 0.74:
            return self.decorate(self.noun(noun, "the", numeral=self.small_number()))
        if point < 0.86:
            return self.decorate(self.noun(noun, "this", plural=self.chance(0.25)))
        return self.decorate(self.noun(noun, "this", numeral=self.small_number()))

    def small_number(self) -> int:
        """Draw a numeral from two to ten; small ones are more frequent."""
        return 2 + int(self._random() * self._random() * 9)

    def subject(self, tags: tuple[str, ...]) -> Nominal:
        """Draw the subject of a verb."""
        if "person" in tags and len(tags) > 1 and self.chance(0.5):
            tags = tuple(tag for tag in tags if tag != "person")
        return self.human(tags)

    def item(self, noun: Noun, subject: Nominal | None, style: str, *, owned: bool = True) -> Nominal:
        """Draw an object noun phrase in the style of its clause: full, negated, habit, plain, known."""
        if "game" in noun.tags:
            return self.noun(noun, "game")
        if "mass" in noun.tags:
            return self._portion(noun, style, subject)
        if "kin" in noun.tags:
            return self.owned(noun, subject)
        if style == "habit":
            return self.decorate(self.noun(noun, "bare", plural=True), 0.35)
        point = self._random()
        if style == "negated":
            if point < 0.6 or "person" in noun.tags:
                return self.decorate(self.noun(noun, "the"), 0.4)
            return self.noun(noun, "a")
        if style == "known" or "person" in noun.tags:
            return self._known(noun, subject, point, owned)
        if point < 0.35:
            return self.decorate(self.noun(noun, "a"), 0.5)
        if point < 0.47 and style == "full":
            return self.decorate(self.noun(noun, "", numeral=self.small_number()), 0.3)
        if point < 0.54 and style == "full":
            return self.decorate(self.noun(noun, "many" if self.chance(0.5) else "some", plural=True), 0.2)
        return self._known(noun, subject, self._random(), owned)

    def _known(self, noun: Noun, subject: Nominal | None, point: float, owned: bool) -> Nominal:
        is_ownable = noun.tags.isdisjoint(("person", "animal", "vegetable")) and noun.classifier != "颗"  # no cherry
        if owned and point < 0.22 and is_ownable:
            return self.decorate(self.owned(noun, subject), 0.5)
        if point < 0.34:
            return self.decorate(self.noun(noun, "this", plural=self.chance(0.2)), 0.3)
        if point < 0.44:
            return self.decorate(self.noun(noun, "the", numeral=self.small_number()), 0.3)
        return self.decorate(self.noun(noun, "the", plural=self.chance(0.2)), 0.45)

    def _portion(self, noun: Noun, style: str, subject: Nominal | None) -> Nominal:
        """Draw a mass noun phrase: tea, a cup of tea, two cups of tea; several people do not share a cup."""
        if style in ("negated", "habit") or (subject and subject.is_several) or self.chance(0.2):
            return self.decorate(self.noun(noun, "bare"), 0.55)
        nominal = self.noun(noun, "the" if style == "known" else "a")
        nominal.measured = True
        if nominal.determiner == "a" and style == "full" and self.chance(0.4):
            nominal.determiner, nominal.numeral, nominal.plural = "", self.small_number(), True
        return nominal

    def person_object(self, subject: Nominal | None) -> Nominal | None:
        """Draw a name or a pronoun as an object, different from the subject."""
        point = self._random()
        if point < 0.3:
            nominal = self.a_name()
            names = [who.name for who in (subject, subject.second if subject else None) if who]
            return None if nominal.name in names else nominal
        if point < 0.5:
            taken = subject.pronoun if subject else ""
            same = {"I": ("I", "we"), "we": ("I", "we"), "they": ("he", "she")}.get(taken, (taken,))
            return self.a_pronoun(tuple(word for word in _OBJECT_PRONOUNS if word not in same))
        return None
