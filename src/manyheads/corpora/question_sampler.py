"""`QuestionSampler`: draws questions with a question word, and requests."""

from manyheads.corpora import lexicon
from manyheads.corpora.clause_sampler import ClauseSampler
from manyheads.corpora.lexemes import Verb
from manyheads.corpora.lexicon import INTRANSITIVE, OWNERLESS, TRANSITIVE
from manyheads.corpora.syntax_tree import Clause, Nominal, Tree

# "What is Anna playing?" and "What did she watch?" have several Chinese translations.
_ASKABLE = tuple(
    verb
    for verb in TRANSITIVE
    if not verb.key.startswith(("play", "put", "observe", "watch", "pick", "build", "feed", "push", "answer", "close"))
)
# Involuntary events, for which "why" is not asked.
_NO_REASON = ("arrive", "wake-up", "fall", "disappear", "fly", "lose", "break", "see", "hear", "meet", "find", "catch")
_UNWILLED = {"why": _NO_REASON, "when": ("fly", "disappear"), "where": ("fly", "disappear", "push", "pick")}


class QuestionSampler(ClauseSampler):
    """Draws questions with who, what, which, how many, where, when and why, and requests."""

    def who(self) -> Tree:
        """Draw a question about the subject."""
        letter = self.weigh(((0.6, "P"), (0.8, "G"), (1.0, "F")))
        person = self.new_nominal("who")
        verbs = lexicon.with_letter(TRANSITIVE if self.chance(0.75) else INTRANSITIVE, letter)
        verb = self.pick(verbs)
        while "person" not in verb.subjects and "adult" not in verb.subjects:
            verb = self.pick(verbs)
        clause = self.event(letter, verb, person, negated=False, plain=True)
        self._unfront(clause)
        clause.question = "subject"
        return Tree(clause)

    def what(self) -> Tree:
        """Draw a question about the object: what, which or how many."""
        letter = self.weigh(((0.6, "P"), (0.8, "G"), (1.0, "F")))
        verb = self.pick(lexicon.with_letter(_ASKABLE, letter))
        clause = self.event(letter, verb, negated=False, plain=True)
        self._unfront(clause)
        clause.question = "object"
        noun = clause.object.noun if clause.object else None
        is_mass = noun is not None and noun.measure is not None and letter == "G"
        if (
            noun is None
            or is_mass
            or verb.key == "write"
            or "person" in noun.tags
            or "kin" in noun.tags
            or self.chance(0.5)
        ):
            self._ask_plainly(clause, verb)
        else:
            assert clause.object is not None
            self._ask_which(clause.object, is_over=letter != "G")
        return Tree(clause)

    def _ask_plainly(self, clause: Clause, verb: Verb) -> None:
        nouns = lexicon.nouns_with(verb.objects)
        people = sum("person" in noun.tags for noun in nouns)
        clause.object = self.new_nominal("who" if people * 2 > len(nouns) else "what")

    def _ask_which(self, item: Nominal, *, is_over: bool) -> None:
        item.owner = None
        assert item.noun is not None
        item.numeral, item.adjective = 0, None
        if item.noun.measure:
            item.measured, item.determiner, item.plural = True, "how-many", True
        elif not is_over or self.chance(0.5):
            item.determiner, item.plural = "which", False
        else:
            item.determiner, item.plural = "how-many", True

    def where_when_why(self, question: str = "") -> Tree:
        """Draw a question about an adverbial: where, when or why."""
        question = question or self.weigh(((0.36, "where"), (0.67, "when"), (1.0, "why")))
        if question == "where" and self.chance(0.4):
            clause = self.journey(self.weigh(((0.6, "P"), (1.0, "F"))), negated=False)
            clause.manner = None
        else:
            letter = "P" if question == "why" else self.weigh(((0.6, "P"), (1.0, "F")))
            verb = self.verb_for(letter)
            while "D" in verb.tenses or (question == "where" and not verb.places) or verb.key in _UNWILLED[question]:
                verb = self.verb_for(letter)
            negated = question == "why" and self.chance(0.4)
            clause = self.event(letter, verb, negated=negated, plain=True)
            clause.place = None if question == "where" else clause.place
            self.make_known(clause)
        if question == "when":
            clause.time = None
        self._unfront(clause)
        clause.question = question
        return Tree(clause)

    def make_known(self, clause: Clause) -> None:
        """Adapt the clause to 是…的, which requires a definite object."""
        item = clause.object
        if item and item.kind == "noun" and not item.is_definite and item.determiner not in ("game", "instrument"):
            if item.noun and item.noun.measure:
                item.determiner, item.measured, item.plural, item.numeral = "bare", False, False, 0
            else:
                item.determiner, item.plural, item.numeral = "the", item.determiner == "some", 0

    def _unfront(self, clause: Clause) -> None:
        clause.fronted = False
        clause.manner = None

    def order(self) -> Tree:
        """Draw a request."""
        point = self.chance(0.3)
        if point:
            clause = self.giving("I")
        elif self.chance(0.15):
            clause = self.journey("I")
        else:
            verb = self.pick(lexicon.with_letter(TRANSITIVE + INTRANSITIVE, "I"))
            clause = self.new_clause("verb", verb)
            clause.tense = "order"
            if verb.objects:
                noun = self.pick(lexicon.nouns_with(verb.objects))
                you = self.a_pronoun(("you",))
                person = self.person_object(you) if "person" in noun.tags else None
                clause.object = person or self.item(noun, None, "known", owned=verb.key not in OWNERLESS)
                self.avoid_clash(clause)
            if verb.manners and self.chance(0.25):
                manner = lexicon.MANNER_BY_KEY[self.pick(verb.manners)]
                clause.manner = None if manner.key in ("together", "alone", "secretly") else manner
        return Tree(clause)
