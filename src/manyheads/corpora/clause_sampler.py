"""`ClauseSampler`: draws clauses of states, qualities, comparisons, locations and weather, and passive clauses."""

from manyheads.corpora import lexicon
from manyheads.corpora.event_sampler import TENSE, EventSampler
from manyheads.corpora.lexemes import Adjective, Noun, Verb
from manyheads.corpora.lexicon import OWNERLESS, STATES, TRANSITIVE, WEATHER
from manyheads.corpora.syntax_tree import Clause, Nominal
from manyheads.corpora.word_tables import ALL_ADJECTIVES

_PASSIVE = tuple(verb for verb in TRANSITIVE if verb.zh.passive)


class ClauseSampler(EventSampler):
    """Draws clauses of every kind; `tree_sampler.TreeSampler` combines them into sentences."""

    def state(self) -> Clause:
        """Draw a state verb: somebody likes, knows, needs or has something; something belongs to somebody."""
        verb = self.pick(STATES)
        clause = self.new_clause("verb", verb)
        clause.tense = "state"
        clause.negated = verb.key != "hate" and self.chance(0.18)
        if verb.key == "belong-to":
            noun = self.pick(lexicon.nouns_with(verb.subjects))
            clause.subject = self.decorate(self.noun(noun, self.pick(("the", "this"))), 0.4)
            clause.object = self.person_object(None) or self.item(
                self.pick(lexicon.nouns_with(verb.objects)), None, "known"
            )
            clause.object.plural, clause.object.numeral = False, 0  # ten boys do not share a coat
            return clause
        clause.subject = self.human(verb.subjects)
        noun = self.pick(lexicon.nouns_with(verb.objects))
        person = self.person_object(clause.subject) if "person" in noun.tags else None
        while clause.subject.noun is noun:
            noun = self.pick(lexicon.nouns_with(verb.objects))
        self.leave_to_adults(noun, clause.subject)
        generic = verb.key == "hate" or (verb.key == "like" and not noun.tags.isdisjoint(("fruit", "drink", "flower")))
        generic = generic or (verb.key == "like" and self.chance(0.5) and "person" not in noun.tags)
        clause.object = person or (self._had(clause, noun) if verb.key == "have" else None)
        if clause.object is None:
            style = "habit" if generic else "negated" if clause.negated else "plain" if verb.key == "need" else "known"
            clause.object = self.item(noun, clause.subject, style, owned=verb.key not in OWNERLESS)
        if clause.negated and verb.key != "have" and clause.object.determiner == "a":
            clause.object.determiner = "the"
        if verb.key == "hate":
            clause.object.adjective = None
        self.keep_in_family(clause)
        return clause

    def _had(self, clause: Clause, noun: Noun) -> Nominal:
        if clause.negated or not noun.tags.isdisjoint(("furniture", "costly", "instrument")) or self.chance(0.6):
            return self.decorate(self.noun(noun, "a"), 0.4)
        if self.chance(0.6):
            return self.decorate(self.noun(noun, "", numeral=self.small_number()), 0.3)
        return self.noun(noun, "many", plural=True)

    def topic(self, tags: tuple[str, ...]) -> Nominal:
        """Draw the subject of a predicative adjective."""
        point = self.chance(0.5)
        if "person" in tags or "adult" in tags:
            return self.human(tuple(tag for tag in tags if tag in ("person", "adult")))
        nouns = lexicon.nouns_with(tags)
        noun = self.pick(nouns)
        if "mass" in noun.tags:
            nominal = self.noun(noun, "the" if point else "this")
            nominal.measured = True
            return nominal
        if "kin" in noun.tags or (point and "thing" in noun.tags and self.chance(0.4)):
            return self.owned(noun, None)
        return self.noun(noun, "the" if self.chance(0.75) else "this", plural=self.chance(0.2))

    def quality(self, subject: Nominal | None = None, adjective: Adjective | None = None) -> Clause:
        """Draw a predicative adjective; only temporary states have a past tense, with an adverbial of time."""
        clause = self.new_clause("quality")
        adjective = adjective or self.pick(ALL_ADJECTIVES)
        clause.adjective, clause.tense = adjective, "state"
        clause.subject = subject or self.topic(tuple(sorted(adjective.tags)))
        clause.subject.adjective = None  # avoids "the lazy girl is lazy"
        if adjective.value.startswith("state") and self.chance(0.5):
            if self.chance(0.5):
                clause.tense, clause.time = "past", self.pick(lexicon.times_for("past", long=False))
            else:
                clause.time = self.pick(lexicon.times_for("present", long=False))
        if self.chance(0.14):
            clause.negated = True
        elif not adjective.is_classifying and self.chance(0.3):
            is_state = adjective.value.startswith("state")
            clause.degree = "very" if is_state or adjective.value == "+" or self.chance(0.6) else "too"
        return clause

    def comparison(self) -> Clause:
        """Draw a comparison of two things of one kind."""
        clause = self.new_clause("comparison")
        adjective = self.pick(ALL_ADJECTIVES)
        while not adjective.en_more or adjective.value.startswith("state"):
            adjective = self.pick(ALL_ADJECTIVES)
        clause.adjective, clause.tense = adjective, "state"
        # No mouse is bigger than a lion.
        tags = tuple(sorted(adjective.tags - {"animal"}))
        first = self.topic(tags)
        clause.subject, first.adjective = first, None
        if first.noun is None or "person" in first.noun.tags:
            second = self.person_object(first)
            if second and second.kind == "pronoun":
                second = None
            clause.object = second or self._other_than(first, ("friend", "neighbour", "kin"))
        else:
            clause.object = self._other_than(first, tags)
        return clause

    def _other_than(self, first: Nominal, tags: tuple[str, ...]) -> Nominal:
        """Draw the standard of a comparison: another animal, another story, but a bed only with a bed."""
        noun = first.noun
        if noun is None or "person" in noun.tags:
            return self._other_person(noun, tags)
        kind = next((tag for tag in ("animal", "tale", "fruit", "drink") if tag in noun.tags), noun.key)
        others = tuple(other for other in lexicon.nouns_with((kind,)) if not other.tags.isdisjoint(tags))
        if kind in ("animal", "drink"):  # avoids "my lion"
            others = tuple(other for other in others if other is not noun) or others
        other = self.pick(others)
        if other is noun:
            first.determiner, first.plural, first.owner = "this", False, None
            return self.owned(noun, None)
        nominal = self.noun(other, "the", plural=first.plural)
        nominal.measured = first.measured
        return nominal

    def _other_person(self, noun: Noun | None, tags: tuple[str, ...]) -> Nominal:
        other = self.pick(tuple(other for other in lexicon.nouns_with(tags) if other is not noun))
        return self.owned(other, None) if "kin" in other.tags else self.noun(other, "the")

    def _measured(self, noun: Noun) -> Nominal:
        nominal = self.noun(noun, "the")
        nominal.measured = True
        return nominal

    def location(self) -> Clause:
        """Draw a location or an existence clause."""
        noun = self.pick(lexicon.nouns_with(("small", "pet", "vehicle", "small", "person")))
        noun = noun if "kin" not in noun.tags else self.pick(lexicon.nouns_with(("small",)))
        place = self.pick(lexicon.spots_for(noun))
        if self.chance(0.5):
            clause = self.new_clause("location")
            clause.subject = self.item(noun, None, "known")
        else:
            clause = self.new_clause("existence")
            point = self.chance(0.5)
            clause.negated = self.chance(0.15) and "person" not in noun.tags
            if point or clause.negated:
                clause.subject = self.noun(noun, "a")
            else:
                clause.subject = self.noun(noun, "", numeral=self.small_number())
            self.decorate(clause.subject, 0.0 if clause.negated else 0.3)
        clause.place, clause.tense = place, "state"
        return clause

    def passive(self) -> Clause:
        """Draw a passive clause with a definite patient and an optional agent."""
        verb = self.pick(_PASSIVE)
        clause = self.new_clause("verb", verb)
        clause.passive, clause.tense = True, "past"
        noun = self.pick(lexicon.nouns_with(verb.objects))
        person = self.person_object(None) if "person" in noun.tags else None
        if "mass" in noun.tags:
            person = self._measured(noun)
        clause.object = person or self.item(noun, None, "known", owned=verb.key not in OWNERLESS)
        self.avoid_clash(clause)
        clause.negated = self.chance(0.13)
        if verb.key in ("devour", "munch", "see") or self.chance(0.65):
            clause.subject = self._other_agent(verb, clause.object)
            if clause.subject and verb.key in ("eat", "drink", "devour", "munch", "buy", "steal", "pick"):
                clause.subject.plural, clause.subject.numeral = False, 0
        if self.chance(0.5):
            clause.time = self.pick(lexicon.times_for("past", long=self.may_take_long(clause)))
            clause.fronted = self.chance(0.25)
        ends_clean = clause.time is None or clause.fronted
        if (
            clause.subject
            and ends_clean
            and not clause.negated
            and self.may_have_relative(clause.subject)
            and self.chance(0.3)
        ):
            self.relative(clause.subject, clause)
        elif self.may_have_relative(clause.object) and self.chance(0.15):
            self.relative(clause.object, clause)
        return clause

    def _other_agent(self, verb: Verb, patient: Nominal) -> Nominal | None:
        """Draw an agent different from the patient; return None after several attempts."""
        for _ in range(4):
            agent = self.subject(verb.subjects)
            pronouns = {agent.pronoun, patient.pronoun}
            is_same = bool(agent.name and agent.name is patient.name) or bool(agent.noun and agent.noun is patient.noun)
            is_same = is_same or (len(pronouns) == 1 and pronouns != {""}) or pronouns == {"I", "we"}
            if not is_same and not agent.second:
                return agent
        return None

    def weather(self, letter: str = "") -> Clause:
        """Draw a weather clause."""
        letter = letter or self.weigh(((0.4, "P"), (0.6, "G"), (1.0, "F")))
        clause = self.new_clause("verb", self.pick(WEATHER))
        clause.tense = TENSE[letter]
        if letter != "G":
            clause.time = self.pick(lexicon.times_for(clause.tense, long=False))
        return clause
