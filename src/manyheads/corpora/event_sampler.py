"""`EventSampler`: draws clauses of events in every tense, with transitive, ditransitive and motion verbs."""

from manyheads.corpora import lexicon
from manyheads.corpora.lexemes import Noun, Verb
from manyheads.corpora.lexicon import (
    GIVING,
    INTRANSITIVE,
    MOTION,
    NEW_WHEN_NEGATED,
    OWNERLESS,
    TRANSITIVE,
)
from manyheads.corpora.sampler import Sampler
from manyheads.corpora.syntax_tree import Clause, Nominal
from manyheads.corpora.word_tables import DURATIONS, FREQUENCIES, TIMES

_LETTERS = ((0.34, "P"), (0.52, "G"), (0.69, "H"), (0.79, "F"), (0.87, "M"), (1.0, "W"))
TENSE = {"P": "past", "D": "past", "G": "progressive", "H": "habit", "F": "future", "M": "modal", "W": "worn"}
_STYLE = {"P": "full", "D": "full", "G": "plain", "H": "habit", "F": "full", "M": "plain", "W": "new"}
_MODALS = ((0.4, "want"), (0.6, "must"), (0.8, "should"), (1.0, "may"))
_SHOPPING = frozenset({"food", "fruit", "small", "flower", "vegetable", "mass"})
# Adjectives of the object that contradict the verb.
_CLASHES = frozenset(
    {
        ("wash", "clean"),
        ("tidy", "clean"),
        ("bake", "delicious"),
        ("cook", "delicious"),
        ("build", "old-thing"),
        ("build", "short"),
        ("pick", "sour"),
        ("write", "boring"),
        ("feed", "thirsty"),
        ("build", "cheap"),
        ("build", "expensive"),
        ("plant", "old-thing"),
    }
)
# Verbs whose object is plural if the subject is.
_DISTRIBUTIVE = frozenset({"eat", "munch", "pick", "cook", "write"})
# Verbs whose object is a relative of the subject.
_FAMILY = frozenset({"love", "kiss", "hug"})
# Verbs with a singular object.
_SINGULAR_OBJECT = frozenset({"push", "carry", "use", "find", "build", "build-bridge"})
# Destinations of rare journeys, not daily ones.
_OUTINGS = frozenset({"cinema", "theatre", "museum", "zoo", "restaurant", "airport", "hospital", "beach"})
# Verbs that are not negated.
_NOT_NEGATED = frozenset({"play", "fall", "disappear", "fly", "bark"})
_NEGATABLE = {"P": 0.18, "F": 0.2, "M": 0.2, "H": 0.2}


class EventSampler(Sampler):
    """Draws events with adverbials and relative clauses; `clause_sampler` adds states."""

    def event(
        self,
        letter: str = "",
        verb: Verb | None = None,
        subject: Nominal | None = None,
        *,
        negated: bool | None = None,
        plain: bool = False,
    ) -> Clause:
        """Draw an event; `plain` excludes relative clauses and indefinite subjects."""
        letter = letter or self.weigh(_LETTERS)
        verb = verb or self.verb_for(letter)
        self.lively = letter in "PG"
        clause = self.new_clause("verb", verb)
        clause.tense = TENSE[letter]
        if clause.tense == "modal":
            self._choose_modal(clause)
        clause.negated = self.chance(_NEGATABLE.get(letter, 0.0)) if negated is None else negated
        is_habit = "K" in verb.tenses or verb.key in ("eat", "drink")
        if clause.modal == "may" or (letter == "H" and not is_habit):
            clause.negated = False
        clause.subject = subject or self._agent(verb, letter, plain)
        if verb.key in _NOT_NEGATED or not clause.subject.is_person:
            clause.negated = False
        self._add_object(clause, letter)
        self._add_adverbials(clause, letter)
        if not plain:
            self._add_relatives(clause)
        return clause

    def verb_for(self, letter: str) -> Verb:
        """Draw a verb that allows the tense; two thirds of them are transitive."""
        transitive = self.chance(0.66) or letter == "W"
        verbs = TRANSITIVE if transitive else INTRANSITIVE
        if letter == "P" and self.chance(0.5 if verbs is INTRANSITIVE else 0.2):
            letter = "D"
        return self.pick(lexicon.with_letter(verbs, letter))

    def _choose_modal(self, clause: Clause) -> None:
        assert clause.verb is not None
        if (
            clause.verb.key == "find"
            or ("K" in clause.verb.tenses and self.chance(0.6))
            or ("C" in clause.verb.tenses and self.chance(0.4))
        ):
            clause.modal = "can"
        elif "K" in clause.verb.tenses:
            clause.modal = "want"
        else:
            clause.modal = self.weigh(_MODALS)

    def _agent(self, verb: Verb, letter: str, plain: bool) -> Nominal:
        # Only people have plans.
        planned = letter in "FM" and "person" in verb.subjects
        subject = self.subject(("person",) if planned else verb.subjects)
        is_noun = subject.noun is not None and subject.determiner != "own"
        if letter == "G" and is_noun and not plain and self.chance(0.15):
            subject.determiner = "" if subject.numeral else "a"
            subject.plural = bool(subject.numeral)
        if letter == "W":
            subject.plural, subject.numeral, subject.second = False, 0, None
            subject.pronoun = {"we": "I", "they": "he"}.get(subject.pronoun, subject.pronoun)
        return subject

    def _add_object(self, clause: Clause, letter: str) -> None:
        verb, subject = clause.verb, clause.subject
        if verb is None or not verb.objects or clause.goal:
            return
        noun = self.pick(lexicon.nouns_with(verb.objects))
        if "person" in noun.tags:
            person = self.person_object(subject)
            if person:
                clause.object = person
                return
        while (subject is not None and subject.noun is noun) or (letter == "H" and "costly" in noun.tags):
            noun = self.pick(lexicon.nouns_with(verb.objects))
        self.leave_to_adults(noun, subject)
        if ("instrument" in noun.tags and verb.key == "play-it") or verb.key == "play-bow":
            clause.object = self.noun(noun, "instrument")
            return
        style = "negated" if clause.negated else _STYLE[letter]
        if (
            (letter == "H" and "h" in verb.tenses)
            or verb.zh.preposition == "把"
            or "asked" in noun.tags
            or verb.key == "praise"
        ):
            style = "known"
        elif (letter == "H" and clause.negated) or verb.key == "collect":
            style = "habit"
        elif clause.negated and verb.key not in NEW_WHEN_NEGATED and not noun.measure:
            style = "known"
        if subject and subject.kind == "who" and letter in "PF" and not noun.measure and self.chance(0.7):
            style = "known"
        clause.object = self.item(noun, subject, style, owned=verb.key not in OWNERLESS)
        self.avoid_clash(clause)
        if letter == "H" and clause.negated:
            clause.object.adjective = None
        shares = subject is not None and subject.is_several and not (noun.measure or clause.negated)
        if shares and clause.object.determiner == "a" and verb.key in _DISTRIBUTIVE:
            clause.object.determiner, clause.object.plural = "some", True
        if shares and verb.key in ("eat", "munch", "pick") and clause.object.is_definite and "sized" not in noun.tags:
            clause.object.plural = True
        if verb.key in ("write", "build") and letter in "FM" and not clause.negated:
            clause.object.determiner, clause.object.numeral, clause.object.plural = "a", 0, False
        if verb.key == "buy" and noun.tags & {"food", "fruit"} and clause.object.determiner == "the":
            clause.object.determiner = "" if clause.object.numeral else "some" if clause.object.plural else "a"
        if verb.key in _SINGULAR_OBJECT:
            clause.object.plural, clause.object.numeral = False, 0
            if not clause.object.is_definite:
                clause.object.determiner = "a"
        self.keep_in_family(clause)
        if letter == "W":
            clause.object.determiner, clause.object.numeral, clause.object.plural = "a", 0, False
            clause.object.owner = None

    def avoid_clash(self, clause: Clause) -> None:
        """Remove an adjective that contradicts the verb, such as washing a clean cup."""
        item = clause.object
        if clause.verb and item and item.adjective and (clause.verb.en.base, item.adjective.key) in _CLASHES:
            item.adjective = None

    def leave_to_adults(self, noun: Noun, subject: Nominal | None) -> None:
        """Replace a child as the subject by a woman if the object requires an adult: a house, a sofa, coffee."""
        if subject and subject.noun and "child" in subject.noun.tags and noun.tags & {"costly", "furniture", "coffee"}:
            subject.noun, subject.adjective = lexicon.NOUN_BY_KEY["woman"], None
            if subject.determiner == "own":
                subject.determiner, subject.owner = "the", None

    def keep_in_family(self, clause: Clause) -> None:
        """Make the object of love, kiss or hug a relative of the subject."""
        item, subject = clause.object, clause.subject
        if clause.verb and clause.verb.key in _FAMILY and item and item.determiner == "own" and subject and subject.sex:
            item.owner = self.owner(subject)
            item.plural = subject.is_several and subject.pronoun != "we"

    def _add_adverbials(self, clause: Clause, letter: str) -> None:
        verb = clause.verb
        assert verb is not None
        self._add_time(clause, letter)
        if clause.tense == "worn":
            return
        if "D" in verb.tenses and clause.tense == "past" and not clause.negated:
            clause.duration = self.pick(DURATIONS)
            if clause.time and "ago" in clause.time.tags:
                clause.time = TIMES[0]
            if clause.time and clause.time.key in ("this-morning", "last-night"):
                clause.duration = self.pick(DURATIONS[:4])  # without "all day"
        if verb.places and self.chance(0.12 if clause.negated else 0.4) and clause.modal != "can":
            self._add_place(clause, verb)
        if verb.manners and not clause.negated and clause.modal != "can" and self.chance(0.32):
            self._add_manner(clause, verb)
        goes_without = clause.object is None or clause.object.determiner in ("game", "instrument")
        if clause.frequency and goes_without and not clause.place and clause.frequency.key in ("usually", "always"):
            clause.frequency = FREQUENCIES[1]  # "Peter usually studies" is incomplete without a location

    def _add_place(self, clause: Clause, verb: Verb) -> None:
        """Add a location that fits the verb; animals have their own, and a house is not bought in a supermarket."""
        subject, item = clause.subject, clause.object
        places = verb.places
        if subject and subject.noun and not subject.is_person:
            own = {"pet": ("pets",), "farm": ("farms",), "far": ("cages",), "wild": ("wilds",)}
            places = next((own[tag] for tag in own if tag in subject.noun.tags), ())
        elif item and item.noun and "wild" in item.noun.tags:
            places = ("cages",) if "far" in item.noun.tags else ("wilds",)
        elif item and item.noun and "farm" in item.noun.tags:
            places = ("farms",)
        if verb.key == "buy" and not (item and item.noun and item.noun.tags & _SHOPPING):
            return
        if verb.key == "eat" and not (item and item.noun and item.noun.tags & {"ordered", "baked", "rice"}):
            places = ("home",)
        if verb.key == "study" and subject and subject.noun and subject.noun.tags & {"child", "student", "teacher"}:
            places = ("study",)
        if verb.key == "work" and subject and subject.noun and subject.noun.key in ("doctor", "nurse"):
            places = ("healing",)
        if places:
            clause.place = self.pick(lexicon.places_with(places))

    def _add_manner(self, clause: Clause, verb: Verb) -> None:
        manner = lexicon.MANNER_BY_KEY[self.pick(verb.manners)]
        subject = clause.subject
        if subject is None or clause.duration or clause.frequency:
            return
        if manner.key in ("together", "alone"):
            if subject.is_several != (manner.key == "together"):
                return
        elif clause.tense in ("future", "modal") or (clause.object and (clause.place or clause.tense == "habit")):
            return  # plans get no adverbial of manner
        clause.manner = manner

    def may_take_long(self, clause: Clause) -> bool:
        """Return whether the event may take weeks or years: buying a house, not a banana."""
        assert clause.verb is not None
        noun = clause.object.noun if clause.object else None
        if clause.verb.key == "buy" and noun and noun.tags & _SHOPPING:
            return False
        return "y" in clause.verb.tenses.lower()

    def _add_time(self, clause: Clause, letter: str) -> None:
        verb = clause.verb
        assert verb is not None
        long = self.may_take_long(clause)
        short = "Y" not in verb.tenses
        if clause.tense == "past" and self.chance(0.55):
            clause.time = self.pick(lexicon.times_for("past", long=long, short=short))
            if clause.negated and "ago" in clause.time.tags:
                clause.time = None
        elif clause.tense == "future" and (not clause.negated or "K" in verb.tenses or self.chance(0.6)):
            clause.time = self.pick(lexicon.times_for("future", long=long, short=short))
        elif clause.modal in ("must", "should") and not clause.negated and "F" in verb.tenses and self.chance(0.35):
            clause.time = self.pick(lexicon.times_for("future", long=not short, short=short))
        elif letter == "H" and not clause.negated:
            if self.chance(0.6):
                clause.frequency = self.pick(FREQUENCIES)
            else:
                clause.time = self.pick(lexicon.times_for("habit", long=False))
            if clause.time and verb.en.base in ("eat", "drink") and "rare" in clause.time.tags:
                clause.time = next(time for time in TIMES if time.key == "every-day")
            if clause.time and verb.key == "travel":
                clause.time, clause.frequency = None, FREQUENCIES[1]
        if clause.time and letter != "H" and self.chance(0.3):
            clause.fronted = True

    def _add_relatives(self, clause: Clause) -> None:
        item, subject = clause.object, clause.subject
        if clause.tense == "habit":
            return
        ends_clean = not (clause.place or clause.manner or clause.duration or (clause.time and not clause.fronted))
        if item and self.may_have_relative(item) and ends_clean and not clause.recipient and self.chance(0.55):
            self.relative(item, clause)
        elif subject and self.may_have_relative(subject) and self.chance(0.6):
            self.relative(subject, clause)

    def identify_subject(self, clause: Clause) -> None:
        """Add a relative clause at random: the book that Anna bought is interesting."""
        subject = clause.subject
        if clause.kind not in ("quality", "location") or clause.time or subject is None:
            return
        if self.may_have_relative(subject) and self.chance(0.5):
            self.relative(subject, clause)

    def may_have_relative(self, nominal: Nominal) -> bool:
        """Return whether a noun phrase may have a relative clause: the book, not a book or my book."""
        return nominal.kind == "noun" and nominal.determiner == "the" and not nominal.measured

    def relative(self, head: Nominal, main: Clause) -> None:
        """Add a relative clause to a definite noun phrase, if a verb fits."""
        noun = head.noun
        assert noun is not None
        as_object = lexicon.verbs_in_relative(noun, main.verb)
        if main.passive and head is main.subject:
            as_object = ()  # 被 and two subjects in a row are hard to read
        if as_object and self.chance(0.25 if head.is_person else 0.75):
            self._object_relative(head, self.pick(as_object), dated=main.time is None)
            return
        letter = self.weigh(((0.5, "G"), (0.8, "P"), (1.0, "W")))
        if letter == "G" and (main.time or main.kind == "location" or main.tense == "progressive"):
            letter = "W"
        if letter == "W" and head.plural:
            letter = "P"
        verbs = lexicon.verbs_with_subject(noun, letter)
        verbs = tuple(verb for verb in verbs if (verb.objects or letter == "G") and verb.key not in ("sleep", "dream"))
        if letter == "P":
            # 聊天了的 is ungrammatical, and drinks are rarely identified by who drank them.
            verbs = tuple(verb for verb in verbs if not verb.zh.tail and verb.en.base not in ("eat", "drink"))
        if verbs:
            self._subject_relative(head, self.pick(verbs), letter)

    def _gap(self, head: Nominal) -> Nominal:
        gap = self.new_nominal("gap")
        gap.antecedent, gap.plural = head, head.plural
        return gap

    def _object_relative(self, head: Nominal, verb: Verb, *, dated: bool) -> None:
        clause = self.new_clause("verb", verb)
        clause.gap, clause.object = "object", self._gap(head)
        if verb.subjects == ("person",) or "adult" in verb.subjects:
            clause.subject = self.a_name() if self.chance(0.6) else self.a_pronoun()
        else:
            clause.subject = self.noun(self.pick(lexicon.nouns_with(verb.subjects)), "the")
        if clause.subject.noun and "kin" in clause.subject.noun.tags:
            clause.subject.determiner, clause.subject.owner = "own", self.a_pronoun(("I", "you", "we"))
        if dated and self.chance(0.45):
            clause.time = self.pick(
                lexicon.times_for("past", long="y" in verb.tenses.lower(), short="Y" not in verb.tenses)
            )
        head.relative = clause

    def _subject_relative(self, head: Nominal, verb: Verb, letter: str) -> None:
        clause = self.new_clause("verb", verb)
        clause.gap, clause.subject, clause.tense = "subject", self._gap(head), TENSE[letter]
        head.relative, head.adjective = clause, None
        noun = self.pick(lexicon.nouns_with(verb.objects)) if verb.objects else None
        if noun is None:
            return
        if noun is head.noun or "costly" in noun.tags or "kin" in noun.tags or "person" in noun.tags:
            # "die Frau, die Leo gerettet hat" is ambiguous.
            is_open = head.plural or (head.noun is not None and head.noun.gender == "m")
            person = "person" in lexicon.nouns_with(verb.objects)[0].tags or "kin" in noun.tags
            clause.object = self.a_name() if person and is_open else None
        elif verb.key in ("play-it", "play-bow"):
            clause.object = self.noun(noun, "instrument")
        elif "game" in noun.tags:
            clause.object = self.noun(noun, "game")
        elif "mass" in noun.tags:
            clause.object = self.noun(noun, "bare")
        else:
            definite = verb.zh.preposition == "把" or letter == "P"
            clause.object = self.decorate(self.noun(noun, "the" if definite else "a"), 0.2)
        if clause.object is None:
            head.relative = None

    def giving(self, letter: str = "") -> Clause:
        """Draw an event with a recipient."""
        letter = letter or self.weigh(((0.5, "P"), (0.7, "F"), (0.9, "M"), (1.0, "G")))
        verb = self.pick(lexicon.with_letter(GIVING, letter))
        clause = self.new_clause("verb", verb)
        clause.tense = "order" if letter == "I" else TENSE[letter]
        if letter == "M":
            clause.modal = self.weigh(_MODALS[:3])
        clause.negated = self.chance({"P": 0.15, "F": 0.15, "M": 0.1}.get(letter, 0.0))
        clause.subject = None if letter == "I" else self.subject(verb.subjects)
        # The subject of a request is "you", so the recipient is another.
        receiver = self.person_object(clause.subject or self.a_pronoun(("you",)))
        if receiver is None:
            nouns = lexicon.nouns_with(("person",))
            noun = self.pick(nouns)
            while clause.subject and clause.subject.noun is noun:
                noun = self.pick(nouns)
            receiver = self.item(noun, clause.subject, "known")
        clause.recipient = receiver
        noun = self.pick(lexicon.nouns_with(verb.objects))
        if "costly" in noun.tags and clause.subject and clause.subject.noun:
            clause.subject.noun, clause.subject.adjective = lexicon.NOUN_BY_KEY["man"], None
            if clause.subject.determiner == "own":
                clause.subject.determiner = "the"
                clause.subject.owner = None
        style = {"P": "full", "F": "full", "M": "plain", "G": "plain", "I": "known"}[letter]
        if style == "full" and verb.key in ("give", "lend", "sell", "show", "buy-for"):
            style = "plain"
        self.lively = letter in "PG"
        if clause.negated:
            style = "negated" if verb.zh.preposition else "known"
        clause.object = self.item(noun, clause.subject, style, owned=verb.key not in OWNERLESS)
        if verb.key == "write-to" and letter in "FM" and not clause.negated:
            clause.object.determiner, clause.object.numeral, clause.object.plural = "a", 0, False
        if letter != "I" and letter != "G":
            self._add_time(clause, letter)
        return clause

    def journey(self, letter: str = "", subject: Nominal | None = None, *, negated: bool | None = None) -> Clause:
        """Draw a motion to a destination."""
        letter = letter or self.weigh(((0.45, "P"), (0.6, "H"), (0.8, "F"), (1.0, "M")))
        verb = MOTION[0] if subject is not None or self.chance(0.65) else MOTION[1]
        clause = self.new_clause("verb", verb)
        clause.tense = "order" if letter == "I" else TENSE[letter]
        if letter == "M":
            clause.modal = self.weigh(_MODALS)
        clause.negated = self.chance(_NEGATABLE.get(letter, 0.0) * 0.8) if negated is None else negated
        if clause.modal == "may" or letter == "H":
            clause.negated = False
        if letter != "I":
            clause.subject = subject or self.subject(verb.subjects)
            self._add_time(clause, letter)
            if not clause.negated and self.chance(0.2):
                self._add_manner(clause, verb)
        if clause.frequency and clause.frequency.key == "usually":
            clause.frequency = FREQUENCIES[1]
        clause.goal = self.pick(lexicon.goals_with(verb.objects[0]))
        who = clause.subject.noun if clause.subject else None
        if who and (who.tags & {"child", "student", "teacher"}) and verb.key == "go" and self.chance(0.4):
            clause.goal = lexicon.goals_with("learn")[0]
        if letter == "H" and clause.time and clause.goal.key in _OUTINGS:
            clause.time = next(time for time in TIMES if time.key == "every-week")
        return clause
