"""Entities and intents: tags for the people, things, locations and times of a sentence, and its intent.

A mention is a noun with its adjective ("old bicycle") but without its article, a location without its preposition, or
a whole time expression. The same word is a PLACE or a THING depending on its role: the cup is on the *table*, please
carry the *table*.
"""

from collections.abc import Callable, Iterator

from manyheads.corpora.builtin import Sentence
from manyheads.corpora.lexemes import Noun
from manyheads.corpora.syntax_tree import ADJECTIVE, ATOMS, DURATION, GOAL, NOUN, PLACE, TIME, RenderedWord, Tree
from manyheads.corpora.tree_sampler import TreeSampler

ENTITIES = ("PERSON", "ANIMAL", "FOOD", "THING", "PLACE", "TIME")
INTENTS = ("statement", "request", "whether", "who", "what", "where", "when", "why")
_FOOD = frozenset({"food", "fruit", "vegetable", "drink", "mass", "soup"})
_LOCATION_NOUN = 2  # the part of a locative adverbial that names the location
_PARTS = (1, 2, 3)

Mention = tuple[str, int]
"""The type of an entity and the number of one of its atoms; the words of one mention have equal values."""


def intent(tree: Tree) -> str:
    """Return the intent of a sentence."""
    if tree.main.tense == "order":
        return "request"
    question = tree.main.question
    if question == "subject":
        return "who"
    if question == "object":
        return "who" if tree.main.object and tree.main.object.kind == "who" else "what"
    return question or "statement"


def tagged(sentence: Sentence, language: str) -> Iterator[tuple[str, str]]:
    """Yield the words of the sentence (in Chinese, the characters), each with its IOB2 tag."""
    tokens = sentence.tokens(language)
    previous: Mention | None = None
    for (word, _), mention in zip(tokens, _mentions(sentence.tree, tokens), strict=True):
        for part in _words_of(word, language):
            if mention is None or part == "'s":
                yield part, "O"
            else:
                yield part, ("I-" if mention == previous else "B-") + mention[0]
                previous = mention
        previous = mention


def _words_of(word: str, language: str) -> tuple[str, ...]:
    if language == "zh":
        return tuple(word)
    return (word[:-2], "'s") if word.endswith("'s") else (word,)


def _mentions(tree: Tree, tokens: list[RenderedWord]) -> list[Mention | None]:
    mention_of_atom = dict(_atoms(tree))
    mentions = [mention_of_atom.get(atoms[0]) if atoms else None for _, atoms in tokens]
    for position in range(len(tokens) - 2, -1, -1):
        word, atoms = tokens[position]
        following = mentions[position + 1]
        if atoms or not following:
            continue
        is_inside = position > 0 and mentions[position - 1] == following  # 诚实*的*工程师
        is_first = word == "很" and tokens[position + 1][1][0] % ATOMS == ADJECTIVE  # *很*长的信
        if is_inside or is_first:
            mentions[position] = following
    return mentions


def _atoms(tree: Tree) -> Iterator[tuple[int, Mention]]:
    """Yield every atom that belongs to a mention, with the mention."""
    for nominal in tree.nominals:
        if nominal.name or (nominal.noun and nominal.kind == "noun"):
            base = nominal.id * ATOMS
            mention = (_kind(nominal.noun) if nominal.noun else "PERSON", base)
            yield base + NOUN, mention
            yield base + ADJECTIVE, mention
    for clause in tree.clauses:
        base = clause.id * ATOMS
        for slot in (TIME, DURATION):
            for part in _PARTS:
                yield base + slot + part, ("TIME", base + slot)
        for slot in (PLACE, GOAL):
            yield base + slot + _LOCATION_NOUN, ("PLACE", base + slot)


def _kind(noun: Noun) -> str:
    if "person" in noun.tags:
        return "PERSON"
    if "animal" in noun.tags:
        return "ANIMAL"
    return "FOOD" if noun.tags & _FOOD else "THING"


class IntentSampler(TreeSampler):
    """Draws sentences of a given intent."""

    def sentence(self, target: str) -> Tree:
        """Draw the next tree with the intent."""
        plan = self._plan(target)
        while True:
            tree = self.planned(plan) if plan else self.tree()
            if intent(tree) == target:
                return tree

    def _plan(self, target: str) -> Callable[[], Tree] | None:
        """Return the function that draws sentences of an intent; None for statements, which most sentences are."""
        if target in ("where", "when", "why"):
            return lambda: self.where_when_why(target)
        plans = {"request": self.order, "whether": lambda: self.statement(1.0), "who": self.who, "what": self.what}
        return plans.get(target)
