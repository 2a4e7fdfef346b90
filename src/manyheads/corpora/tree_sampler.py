"""`TreeSampler`: draws complete sentences, which are statements, questions, requests and two-clause sentences."""

from collections.abc import Callable

from manyheads.corpora import lexicon
from manyheads.corpora.lexemes import Verb
from manyheads.corpora.lexicon import HOPED_FOR, INTRANSITIVE, REASONS, THINKING, TRANSITIVE
from manyheads.corpora.question_sampler import QuestionSampler
from manyheads.corpora.syntax_tree import Clause, Nominal, Tree
from manyheads.corpora.word_tables import ALL_ADJECTIVES

_OPPOSITES = (
    {"rich", "poor"},
    {"clean", "dirty"},
    {"cheap", "expensive"},
    {"interesting", "boring"},
    {"funny", "boring"},
    {"good", "boring"},
    {"new", "old-thing"},
    {"happy", "sad"},
    {"happy", "angry"},
    {"diligent", "lazy"},
    {"sweet", "sour"},
    {"ripe", "sour"},
    {"simple", "difficult"},
    {"light", "heavy"},
    {"friendly", "angry"},
    {"brave", "shy"},
)
_TOO = {"expensive": ("buy",), "heavy": ("carry",), "difficult": ("answer",), "long": ("read",)}
_HOPED_FOR = tuple(verb for verb in TRANSITIVE + INTRANSITIVE if verb.key in HOPED_FOR)
_RAINED_OFF = ("run", "walk", "swim")


class TreeSampler(QuestionSampler):
    """Draws syntax trees from a seed."""

    def tree(self) -> Tree:
        """Draw the next sentence."""
        plan: Callable[[TreeSampler], Tree] = self.weigh(_PLANS)
        return self.planned(lambda: plan(self))

    def planned(self, plan: Callable[[], Tree]) -> Tree:
        """Draw sentences with `plan` until one is unambiguous, and return it."""
        while True:
            self.restart()
            tree = plan()
            if is_clear(tree):
                return tree

    def statement(self, asking: float = 0.13) -> Tree:
        """Draw a statement or, with probability `asking`, a yes-no question."""
        clause = self.weigh(_CLAUSES)(self)
        self.identify_subject(clause)
        askable = clause.tense != "worn" and not clause.negated and not clause.fronted and not clause.degree
        if clause.frequency and "negative" in clause.frequency.tags:
            askable = False
        if askable and clause.kind not in ("comparison", "existence") and self.chance(asking):
            subject = clause.topic
            known = subject is None or (subject.is_definite and subject.relative is None)
            about_me = subject is not None and subject.pronoun in ("I", "we")
            if known and not (about_me and clause.modal not in ("may", "should", "must")):
                clause.question = "whether"
        return Tree(clause)

    def _person(self, *, animal: bool = False) -> Nominal:
        """Draw a singular subject that has a pronoun."""
        while True:
            nominal = self.subject(("pet",)) if animal else self.human(("person",))
            if nominal.pronoun or nominal.sex or nominal.plural or nominal.second:
                return nominal

    def _that(self) -> Tree:
        verb = self.pick(THINKING)
        clause = self.new_clause("verb", verb)
        clause.tense = "state"
        clause.subject = self._person()
        clause.negated = verb.key in ("know-that", "believe") and self.chance(0.2)
        inner = self.anaphor(clause.subject) if verb.key != "know-that" and self.chance(0.6) else None
        if inner:
            clause.subject.adjective = None  # avoids "the old man says that he is young"
        side = self._reported(verb, inner)
        side.fronted, side.hoped = False, verb.key == "hope"
        side.negated = side.negated and not clause.negated
        if not clause.negated and clause.subject.pronoun not in ("I", "we") and verb.key != "say" and self.chance(0.15):
            clause.question = "whether"
        return Tree(clause, "that", side)

    def _reported(self, verb: Verb, inner: Nominal | None) -> Clause:
        if verb.key == "hope":
            if self.chance(0.3):
                return self.journey("F", inner, negated=False)
            return self.event("F", self.pick(_HOPED_FOR), inner, negated=False, plain=True)
        point = self.chance(0.4)
        if point and inner:
            adjective = self.pick(lexicon.adjectives_for(lexicon.NOUN_BY_KEY["woman"]))
            # People feel temporary states; they do not believe or hope them.
            while verb.key != "say" and adjective.value.startswith("state"):
                adjective = self.pick(lexicon.adjectives_for(lexicon.NOUN_BY_KEY["woman"]))
            side = self.quality(inner, adjective)
            side.degree, side.time, side.tense = "very" if self.chance(0.2) else "", None, "state"
            side.negated = side.negated and not side.degree
            return side
        if point:
            return self.quality()
        if inner is None and self.chance(0.3):
            return self.passive_plain()
        letter = self.weigh(((0.4, "P"), (0.6, "F"), (1.0, "M")))
        if inner and verb.key != "say":
            letter = "M"
        side = self.event(letter, self._doable(letter), inner, plain=True)
        if inner and side.modal in ("want", "may") and verb.key != "say":
            side.modal = "must" if side.negated else "should"
        elif side.modal == "may":
            side.modal = "should"
        return side

    def passive_plain(self) -> Clause:
        """Draw a passive clause without relative clauses."""
        while True:
            clause = self.passive()
            if not any(nominal and nominal.relative for nominal in (clause.subject, clause.object)):
                return clause

    def _doable(self, letter: str) -> Verb:
        """Draw a verb that fits every adult."""
        while True:
            verb = self.verb_for(letter)
            if "person" in verb.subjects or "adult" in verb.subjects:
                return verb

    def _because(self) -> Tree:
        if self.chance(0.2):
            return self._rained_off()
        key = self.pick(tuple(REASONS))
        name, done = self.pick(REASONS[key])
        main = self._reasoned(key, name, done, "P", None)
        side = self.new_clause("quality")
        assert main.subject is not None
        side.subject, side.adjective, side.tense = self.anaphor(main.subject), lexicon.ADJECTIVE_BY_KEY[key], "past"
        if self.chance(0.2):
            side.degree = "very"
        return Tree(main, "because", side)

    def _reasoned(self, key: str, name: str, done: bool, letter: str, subject: Nominal | None) -> Clause:
        """Return the clause of what somebody does or does not do because of a state."""
        if subject is None:
            subject = self._dog() if name == "bark" else self._person()
            if subject.noun:
                subject.adjective = None
        if name == "go":
            return self.journey(letter, subject, negated=not done)
        food = name.partition("-")[2] if name.startswith(("buy-", "order-")) else ""
        verb = lexicon.VERB_BY_KEY[name.partition("-")[0] if food else name]
        if "adult" in verb.subjects and subject.noun and "child" in subject.noun.tags:
            verb = lexicon.VERB_BY_KEY["sleep" if done else "dance"]
        clause = self.event(letter, verb, subject, negated=not done, plain=True)
        clause.manner = None
        if food:
            noun = self.pick(lexicon.nouns_with((food,)))
            clause.object = self.item(noun, subject, "full", owned=False)
            if clause.object.is_definite:
                clause.object.determiner, clause.object.plural, clause.object.numeral = "a", False, 0
            clause.time = clause.time if clause.time and "long" not in clause.time.tags else None
            clause.fronted = clause.fronted and clause.time is not None
            clause.place = None if food == "drink" else clause.place
        return clause

    def _dog(self) -> Nominal:
        return self.somebody((lexicon.NOUN_BY_KEY["dog"],))

    def _rained_off(self) -> Tree:
        subject = self._person()
        if self.chance(0.5):
            main = self.journey("P", subject, negated=True)
            main.goal = self.pick(lexicon.goals_with("open"))
        else:
            verb = lexicon.VERB_BY_KEY[self.pick(_RAINED_OFF)]
            main = self.event("P", verb, subject, negated=True, plain=True)
        side = self.weather("G")
        side.tense = "was-progressive"
        return Tree(main, "because", side)

    def _but(self) -> Tree:
        return self._but_not_quite() if self.chance(0.6) else self._but_too()

    def _but_not_quite(self) -> Tree:
        """Draw a contrast of two qualities: it is good, but expensive."""
        while True:
            self.restart()
            first = self.pick(ALL_ADJECTIVES)
            main = self.quality(None, first)
            assert main.subject is not None
            noun = main.subject.noun or lexicon.NOUN_BY_KEY["woman"]
            second = self.pick(lexicon.adjectives_for(noun))
            if self._contrasts(main.subject, first.key, second.key):
                break
        main.negated, main.degree, main.time, main.tense, main.fronted = False, "", None, "state", False
        main.subject.adjective = None
        side = self.new_clause("quality")
        side.subject, side.adjective, side.tense = self.anaphor(main.subject), second, "state"
        side.negated = first.value[-1] == second.value[-1]
        if not side.negated and self.chance(0.3):
            side.degree = "very"
        return Tree(main, "but", side)

    def _contrasts(self, subject: Nominal, first: str, second: str) -> bool:
        one, two = lexicon.ADJECTIVE_BY_KEY[first], lexicon.ADJECTIVE_BY_KEY[second]
        if first == second or "0" in (one.value, two.value) or {first, second} in _OPPOSITES:
            return False
        if not (subject.sex or subject.plural or subject.second):
            return False
        if one.value.startswith("state") != two.value.startswith("state"):
            return False
        return one.value[-1] != two.value[-1] or one.value[-1] == "+"

    def _but_too(self) -> Tree:
        """Draw an intention and an obstacle: the thing is too heavy, or the person is too tired."""
        subject = self._person()
        key = self.pick((*_TOO, "tired", "busy", "nervous"))
        side = self.new_clause("quality")
        side.adjective, side.tense, side.degree = lexicon.ADJECTIVE_BY_KEY[key], "state", "too"
        if key in _TOO:
            verb = lexicon.VERB_BY_KEY[self.pick(_TOO[key])]
            nouns = lexicon.nouns_with(verb.objects)
            noun = self.pick(tuple(noun for noun in nouns if side.adjective.tags & noun.tags))
            main = self.new_clause("verb", verb)
            main.subject, main.object = subject, self.noun(noun, "the" if self.chance(0.7) else "this")
            main.tense, main.modal = "modal", "want"
            if subject.noun and "child" in subject.noun.tags and ("adult" in verb.subjects or "costly" in noun.tags):
                subject.noun, subject.adjective = lexicon.NOUN_BY_KEY["student"], None
                if subject.owner:
                    subject.owner = None
                    subject.determiner = "the"
            side.subject = self.anaphor(main.object)
        else:
            names = tuple(name for name, done in REASONS[key] if not done)
            main = self._reasoned(key, self.pick(names), True, "M", subject)
            main.modal, main.time, main.fronted = "want", None, False
            side.subject = self.anaphor(subject)
        return Tree(main, "but", side)

    def _while(self) -> Tree:
        main, side = self._two_events("G", "G")
        side.is_side = True
        return Tree(main, "while", side)

    def _when(self) -> Tree:
        side, main = self._two_events("N", "G")
        main.tense = "was-progressive"
        return Tree(main, "when", side)

    def _two_events(self, one: str, two: str) -> tuple[Clause, Clause]:
        """Draw two events with two different subjects; the tense letter N is a moment."""
        while True:
            if one == "N":
                verb = self.pick(lexicon.with_letter(TRANSITIVE + INTRANSITIVE, "N"))
                first = self.event("P", verb, negated=False, plain=True)
                first.tense, first.time, first.manner, first.place, first.fronted = "moment", None, None, None, False
                self.make_known(first)
            else:
                first = self.event(one, negated=False, plain=True)
            second = self.event(two, negated=False, plain=True)
            assert first.subject is not None and second.subject is not None
            pronouns = first.subject.pronoun, second.subject.pronoun
            # German "als du lasest" is archaic.
            is_good = (pronouns[0] != pronouns[1] or pronouns[0] == "") and set(pronouns) != {"I", "we"}
            if is_good and not (one == "N" and "you" in pronouns):
                return first, second

    def _if(self) -> Tree:
        if self.chance(0.4):
            side = self.weather("F")
            side.tense = "state"
            main = self._in_the_rain()
        else:
            key = self.pick(tuple(REASONS))
            name, done = self.pick(tuple(item for item in REASONS[key] if item[0] not in ("cry", "bark")))
            side = self.new_clause("quality")
            side.adjective, side.tense = lexicon.ADJECTIVE_BY_KEY[key], "state"
            side.subject = self._person()
            side.subject.adjective = None
            verb_subject = self.anaphor(side.subject)
            main = self._reasoned(key, name, done, "F", verb_subject)
            main.place = None
        main.time, main.fronted, main.manner, main.duration = None, False, None, None
        return Tree(main, "if", side)

    def _in_the_rain(self) -> Clause:
        """Draw a plan for a rainy day: not to do something outdoors, or to do something at home."""
        if self.chance(0.5):
            main = self.journey("F", negated=True)
            main.goal = self.pick(lexicon.goals_with("open"))
            return main
        verb = lexicon.VERB_BY_KEY[self.pick((*_RAINED_OFF, "work", "study", "sleep"))]
        main = self.event("F", verb, plain=True, negated=verb.key in _RAINED_OFF)
        main.place = None if main.negated else lexicon.places_with(("own",))[0]
        return main


def is_clear(tree: Tree) -> bool:
    """Return whether a sentence has no repetition and no ambiguous pronoun."""
    acts = [clause.verb.en.base for clause in tree.clauses if clause.verb]
    ways = [way for clause in tree.clauses for way in (clause.place, clause.manner) if way]
    if len(acts) != len(set(acts)) or len(ways) != len(set(ways)):
        return False
    subject = tree.main.subject
    asked_myself = subject and (subject.pronoun == "I" or (subject.pronoun == "we" and tree.main.tense == "future"))
    if asked_myself and tree.main.question in ("object", "where", "when", "why"):
        return False
    antecedents: list[str] = []  # possible antecedents of pronouns
    named: list[int] = []
    meant: list[str] = []
    free: list[str] = []
    for nominal in tree.nominals:
        pronoun = "they" if nominal.plural or nominal.second else nominal.sex
        if nominal.kind == "anaphor":
            meant.append(nominal.pronoun or pronoun)
        elif nominal.kind in ("noun", "name"):
            named.append(id(nominal.name or nominal.noun))
            antecedents.append(pronoun)
        elif nominal.pronoun in ("he", "she", "they"):
            free.append(nominal.pronoun)
            antecedents.append(nominal.pronoun)
    qualities = [nominal.adjective for nominal in tree.nominals if nominal.adjective]
    if len(qualities) != len(set(qualities)):
        return False
    if tree.side and any(antecedents.count(word) > 1 for word in free):
        return False
    # In "The chef hopes that he …", English "he" could be the chef.
    if tree.joint == "that" and free and subject and subject.kind == "noun":
        return False
    is_repeated = len(named) != len(set(named)) and tree.main.kind != "comparison"
    if is_repeated or len(free) > 1:
        return False
    owners = [nominal.owner.sex for nominal in tree.nominals if nominal.owner and nominal.owner.name]
    return not (free and free[0] in owners) and all(antecedents.count(word) <= 1 for word in meant)


_CLAUSES: tuple[tuple[float, Callable[[TreeSampler], Clause]], ...] = (
    (0.40, TreeSampler.event),
    (0.50, TreeSampler.giving),
    (0.56, TreeSampler.journey),
    (0.64, TreeSampler.state),
    (0.71, TreeSampler.quality),
    (0.76, TreeSampler.comparison),
    (0.86, TreeSampler.location),
    (0.985, TreeSampler.passive),
    (1.0, TreeSampler.weather),
)
_PLANS: tuple[tuple[float, Callable[[TreeSampler], Tree]], ...] = (
    (0.545, TreeSampler.statement),
    (0.575, TreeSampler.who),
    (0.61, TreeSampler.what),
    (0.695, TreeSampler.where_when_why),
    (0.73, TreeSampler.order),
    (0.80, TreeSampler._that),
    (0.86, TreeSampler._because),
    (0.91, TreeSampler._but),
    (0.94, TreeSampler._while),
    (0.97, TreeSampler._when),
    (1.0, TreeSampler._if),
)
