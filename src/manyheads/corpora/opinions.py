"""The corpus of opinions: sentences with a stance, which is positive, negative, mixed or neutral.

No single word determines the stance: "not boring" is positive, "I do not think that it is good" is negative, and
"Is it good?" is neutral.
"""

from collections.abc import Iterator

from manyheads.corpora import lexicon
from manyheads.corpora import opinion_words as words
from manyheads.corpora.lexemes import Adjective, Noun
from manyheads.corpora.syntax_tree import Clause, Nominal, Tree
from manyheads.corpora.tree_sampler import TreeSampler

STANCES = ("positive", "negative", "mixed", "neutral")
_VALUE_POLARITY = {"+": 1, "-": -1}
_LIKING_POLARITY = {"like": 1, "love": 1, "hate": -1}
_THINK = lexicon.VERB_BY_KEY["think"]
_BELIEVE = lexicon.VERB_BY_KEY["believe"]
_SAY = lexicon.VERB_BY_KEY["say"]
_LIKE = lexicon.VERB_BY_KEY["like"]
_HATE = lexicon.VERB_BY_KEY["hate"]
_GO_HOME = lexicon.VERB_BY_KEY["go-home"]
# Adjectives that may follow "too".
_TOO_MUCH = frozenset(
    {"expensive", "heavy", "sour", "slow", "loud", "difficult", "hard", "careless", "sweet", "soft", "simple"}
)
_CONSEQUENCES = tuple(lexicon.VERB_BY_KEY[key] for key in ("buy", "read", "watch", "eat", "order", "invite"))


def stance(tree: Tree) -> str:
    """Return the stance of a sentence; questions and conditions are neutral."""
    if tree.main.question or tree.joint == "if":
        return "neutral"
    polarities = {polarity for clause in (tree.main, tree.side) if clause and (polarity := _polarity(clause))}
    if tree.joint == "that" and tree.main.negated:
        polarities = {-polarity for polarity in polarities}
    if len(polarities) == 2:
        return "mixed"
    return "neutral" if not polarities else "positive" if 1 in polarities else "negative"


def _polarity(clause: Clause) -> int:
    if clause.adjective:
        polarity = -1 if clause.degree == "too" else _VALUE_POLARITY.get(clause.adjective.value, 0)
    else:
        polarity = _LIKING_POLARITY.get(clause.verb.key, 0) if clause.verb else 0
    return -polarity if clause.negated else polarity


def negations(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield the negated adjectives as ("not" or "doubt", key); some are held out of training."""
    doubted = tree.joint == "that" and tree.main.negated
    for clause in (tree.main, tree.side):
        if clause and clause.adjective and clause.adjective.value in _VALUE_POLARITY:
            if clause.negated:
                yield "not", clause.adjective.key
            elif doubted:
                yield "doubt", clause.adjective.key


class OpinionSampler(TreeSampler):
    """Draws sentences of a given stance."""

    def opinion(self, target: str) -> Tree:
        """Draw the next sentence with the stance."""
        while True:
            self.restart()
            tree = self._draw(target)
            if tree is not None and stance(tree) == target:
                return tree

    def _draw(self, target: str) -> Tree | None:
        if target == "mixed":
            draw = self.weigh(((0.55, self._contrast), (0.8, self._liking_but), (1.0, self._differing_likings)))
            return draw()
        if target == "neutral":
            plans = (
                (0.2, self._question),
                (0.3, self._liking_question),
                (0.45, self._condition),
                (0.65, self._plain),
                (0.75, self._side_by_side),
                (1.0, self._plain_event),
            )
            return self.weigh(plans)()
        polarity = 1 if target == "positive" else -1
        kinds = (
            (0.26, self._judgment),
            (0.42, self._embedded_opinion),
            (0.58, self._liking),
            (0.78, self._reasoned_liking),
            (0.9, self._agreement),
            (1.0, self._partly_neutral),
        )
        return self.weigh(kinds)(polarity)

    # Topics and opinion holders.

    def _topic(self) -> tuple[Nominal, Noun]:
        point = self.chance(0.7)
        if not point:
            if self.chance(0.4):
                return self.a_name(), words.PERSON
            noun = self.pick(words.PEOPLE)
            return self.noun(noun, "the" if self.chance(0.7) else "this"), noun
        noun = self.pick(words.THINGS)
        if "mass" in noun.tags:
            nominal = self.noun(noun, "the" if self.chance(0.7) else "this")
            nominal.measured = True
            return nominal, noun
        if "thing" in noun.tags and "tale" not in noun.tags and self.chance(0.3):
            return self.owned(noun, None), noun
        return self.noun(noun, "the" if self.chance(0.6) else "this"), noun

    def _holder(self) -> Nominal:
        point = self.chance(0.4)
        if point:
            return self.a_pronoun(("I", "I", "we", "you", "he", "she", "they"))
        if self.chance(0.6):
            return self.a_name()
        return self.somebody(lexicon.nouns_with(("kin", "student", "teacher", "guest", "tourist", "neighbour")))

    def _matching(self, noun: Noun, polarity: int, other: Adjective | None = None) -> tuple[Adjective, bool] | None:
        """Draw an adjective for the noun and whether to negate it, which together have the polarity."""
        negated = self.chance(0.5)
        value = "+" if (polarity > 0) != negated else "-"
        choices = tuple(
            adjective
            for adjective in words.judgments(noun)
            if adjective.value == value and not (other and words.are_related(adjective, other))
        )
        return (self.pick(choices), negated) if choices else None

    def _quality_clause(self, subject: Nominal, adjective: Adjective, negated: bool, tense: str) -> Clause:
        clause = self.new_clause("quality")
        clause.subject, clause.adjective, clause.negated, clause.tense = subject, adjective, negated, tense
        if not negated and not adjective.is_classifying and self.chance(0.25):
            clause.degree = "too" if adjective.key in _TOO_MUCH and self.chance(0.5) else "very"
        return clause

    def _tense(self, noun: Noun) -> str:
        return "past" if noun.tags & {"tale", "inn", "outside", "food", "soup"} and self.chance(0.4) else "state"

    def _evaluation(self, polarity: int) -> Clause | None:
        subject, noun = self._topic()
        matched = self._matching(noun, polarity)
        return self._quality_clause(subject, *matched, self._tense(noun)) if matched else None

    # Positive and negative.

    def _judgment(self, polarity: int) -> Tree | None:
        clause = self._evaluation(polarity)
        return Tree(clause) if clause else None

    def _embedded_opinion(self, polarity: int) -> Tree | None:
        """I think that it is good; I do not believe that it is good."""
        clause = self.new_clause("verb", self.pick((_THINK, _THINK, _BELIEVE, _BELIEVE, _SAY)))
        clause.tense, clause.subject = "state", self._holder()
        clause.negated = clause.verb is not _SAY and self.chance(0.5)
        side = self._evaluation(-polarity if clause.negated else polarity)
        if side is None or (clause.negated and (side.negated or side.degree)) or _is_confusing(clause, side):
            return None
        if clause.verb is _SAY and clause.subject.pronoun in ("I", "you", "we"):
            return None
        return Tree(clause, "that", side)

    def _liking_clause(self, polarity: int, subject: Nominal, item: Nominal) -> Clause:
        verb = _HATE if polarity < 0 and self.chance(0.4) else _LIKE
        clause = self.new_clause("verb", verb)
        clause.subject, clause.object, clause.tense = subject, item, "state"
        clause.negated = polarity < 0 and verb is _LIKE
        return clause

    def _liking(self, polarity: int) -> Tree | None:
        clause = self._liking_clause(polarity, self._holder(), self._topic()[0])
        return None if _is_confusing(clause) else Tree(clause)

    def _reasoned_liking(self, polarity: int) -> Tree | None:
        """I like it because it is good."""
        item, noun = self._topic()
        main = self._liking_clause(polarity, self._holder(), item)
        matched = self._matching(noun, polarity)
        if matched is None or _is_confusing(main) or _share_pronoun(main):
            return None
        return Tree(main, "because", self._quality_clause(self.anaphor(item), *matched, "state"))

    def _agreement(self, polarity: int) -> Tree | None:
        """It is good, and it is not expensive."""
        subject, noun = self._topic()
        first = self._matching(noun, polarity)
        second = self._matching(noun, polarity, first[0]) if first else None
        if not first or not second:
            return None
        tense = self._tense(noun)
        main = self._quality_clause(subject, *first, tense)
        return Tree(main, "and", self._quality_clause(self.anaphor(subject), *second, tense))

    def _partly_neutral(self, polarity: int) -> Tree | None:
        """It is long, but it is good; it is red, and it is soft. Only one clause is an opinion."""
        subject, noun = self._topic()
        matched = self._matching(noun, polarity)
        choices = words.plain_qualities(noun)
        if not choices or not matched or subject.is_person:
            return None
        tense = self._tense(noun)
        main = self._quality_clause(subject, self.pick(choices), False, tense)
        main.degree = "very" if main.degree else ""
        joint = "but" if "tale" in noun.tags else "and"
        return Tree(main, joint, self._quality_clause(self.anaphor(subject), *matched, tense))

    # Mixed.

    def _contrast(self) -> Tree | None:
        subject, noun = self._topic()
        polarity = 1 if self.chance(0.5) else -1
        first = self._matching(noun, polarity)
        second = self._matching(noun, -polarity, first[0]) if first else None
        if not first or not second:
            return None
        tense = self._tense(noun)
        main = self._quality_clause(subject, *first, tense)
        return Tree(main, "but", self._quality_clause(self.anaphor(subject), *second, tense))

    def _liking_but(self) -> Tree | None:
        """I like it, but it is not good."""
        item, noun = self._topic()
        polarity = 1 if self.chance(0.5) else -1
        main = self._liking_clause(polarity, self._holder(), item)
        matched = self._matching(noun, -polarity)
        if matched is None or _is_confusing(main) or _share_pronoun(main):
            return None
        return Tree(main, "but", self._quality_clause(self.anaphor(item), *matched, "state"))

    def _differing_likings(self) -> Tree | None:
        """Anna likes it, while Peter does not like it."""
        item, _ = self._topic()
        polarity = 1 if self.chance(0.5) else -1
        main = self._liking_clause(polarity, self._holder(), item)
        side = self._liking_clause(-polarity, self._holder(), self.anaphor(item))
        one, two = main.subject, side.subject
        assert one is not None and two is not None
        same = (one.name, one.noun, one.pronoun) == (two.name, two.noun, two.pronoun)
        if same or {one.pronoun, two.pronoun} == {"I", "we"} or _is_confusing(main, side):
            return None
        return Tree(main, "while", side)

    # Neutral.

    def _question(self) -> Tree | None:
        clause = self._evaluation(1 if self.chance(0.5) else -1)
        if clause is None or clause.degree or clause.negated:
            return None
        clause.question = "whether"
        return Tree(clause)

    def _liking_question(self) -> Tree | None:
        clause = self._liking_clause(1 if self.chance(0.7) else -1, self._holder(), self._topic()[0])
        if clause.negated or _is_confusing(clause):
            return None
        if self.chance(0.4):
            clause.subject, clause.question = self.new_nominal("who"), "subject"
            return Tree(clause)
        clause.question = "whether"
        return None if clause.subject and clause.subject.pronoun in ("I", "we") else Tree(clause)

    def _condition(self) -> Tree | None:
        """If it is good, we will buy it; if it is not, we will go home."""
        polarity = 1 if self.chance(0.5) else -1
        side = self._evaluation(polarity)
        if side is None or side.degree == "very" or side.tense == "past" or side.subject is None:
            return None
        noun = side.subject.noun or words.PERSON
        verbs = tuple(verb for verb in _CONSEQUENCES if lexicon.fits(noun, verb.objects))
        if polarity < 0 and noun.tags & {"tale", "inn", "outside"} and self.chance(0.5):
            main = self.new_clause("verb", _GO_HOME)
        elif verbs:
            main = self.new_clause("verb", self.pick(verbs))
            main.object, main.negated = self.anaphor(side.subject), polarity < 0
        else:
            return None
        main.tense, main.subject = "future", self._holder()
        if _is_confusing(side, main) or (main.subject.pronoun or main.subject.sex) == side.subject.sex:
            return None
        return Tree(main, "if", side)

    def _plain(self) -> Tree | None:
        subject, noun = self._topic()
        choices = words.plain_qualities(noun)
        if not choices:
            return None
        clause = self._quality_clause(subject, self.pick(choices), self.chance(0.4), self._tense(noun))
        clause.degree = "very" if clause.degree else ""
        if self.chance(0.3) and clause.subject:
            return self._embedded_neutral(clause)
        return Tree(clause)

    def _embedded_neutral(self, side: Clause) -> Tree | None:
        clause = self.new_clause("verb", self.pick((_THINK, _BELIEVE, _SAY)))
        clause.tense, clause.subject = "state", self._holder()
        clause.negated = clause.verb is not _SAY and not side.negated and self.chance(0.5)
        side.degree = ""
        if clause.verb is _SAY and clause.subject.pronoun in ("I", "you", "we"):
            return None
        return None if _is_confusing(clause, side) else Tree(clause, "that", side)

    def _side_by_side(self) -> Tree | None:
        tree = self._while() if self.chance(0.5) else self._rained_off()
        return None if any(map(_has_judgment, tree.clauses)) else tree

    def _plain_event(self) -> Tree | None:
        clause = self.event() if self.chance(0.7) else self.giving()
        tree = Tree(clause)
        return None if any(map(_has_judgment, tree.clauses)) else tree


def _has_judgment(clause: Clause) -> bool:
    """Return whether a noun of the clause has an evaluative adjective: the rude waiter."""
    people = (clause.subject, clause.object, clause.recipient)
    return any(item and item.adjective and item.adjective.value[-1] in _VALUE_POLARITY for item in people)


def _share_pronoun(clause: Clause) -> bool:
    """Return whether "he" or "she" in the next clause could refer to the subject or the object."""
    one, two = clause.subject, clause.object
    return one is not None and two is not None and not one.plural and one.sex == two.sex


def _is_confusing(*clauses: Clause) -> bool:
    """Return whether a person or noun occurs twice, or a pronoun is ambiguous."""
    people = [item for clause in clauses for item in (clause.subject, clause.object) if item]
    known = [item.name or item.noun for item in people if item.kind in ("name", "noun")]
    loose = [item.pronoun for item in people if item.kind == "pronoun" and item.pronoun in ("he", "she", "they")]
    sexes = ["they" if item.plural else item.sex for item in people if item.kind in ("name", "noun")]
    return len(set(map(id, known))) != len(known) or any(word in sexes or loose.count(word) > 1 for word in loose)
