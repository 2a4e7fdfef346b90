"""Tag who, what, where and when in a sentence, and say what the sentence is for: its intent.

A mention is a noun with its quality ("old bicycle"), without its article; a place without its preposition; an
expression of time as a whole. The same word is a place or a thing by what it does: the cup is on the *table*,
please carry the *table*.
"""

from collections.abc import Callable, Iterator

from manyheads.corpora.builtin import Sentence
from manyheads.corpora.clause_sampler import TreeSampler
from manyheads.corpora.lexemes import Noun
from manyheads.corpora.syntax_tree import ADJECTIVE, ATOMS, DURATION, GOAL, NOUN, PLACE, TIME, RenderedWord, Tree

ENTITIES = ("PERSON", "ANIMAL", "FOOD", "THING", "PLACE", "TIME")
INTENTS = ("statement", "request", "whether", "who", "what", "where", "when", "why")
_FOOD = frozenset({"food", "fruit", "vegetable", "drink", "mass", "soup"})
_WHERE = 2  # the part of an expression of place that names it
_PARTS = (1, 2, 3)

Mention = tuple[str, int]
"""The kind of an entity, and the number of one of its atoms, by which its words belong together."""


def intent(tree: Tree) -> str:
    """What the sentence is for."""
    if tree.main.tense == "order":
        return "request"
    question = tree.main.question
    if question == "subject":
        return "who"
    if question == "object":
        return "who" if tree.main.object and tree.main.object.kind == "who" else "what"
    return question or "statement"


def tagged(sentence: Sentence, language: str) -> Iterator[tuple[str, str]]:
    """The words of the sentence, words or Chinese characters, each with its tag in IOB2."""
    tokens = sentence.tokens(language)
    before: Mention | None = None
    for (word, _), mention in zip(tokens, _mentions(sentence.tree, tokens), strict=True):
        for part in _words_of(word, language):
            if mention is None or part == "'s":
                yield part, "O"
            else:
                yield part, ("I-" if mention == before else "B-") + mention[0]
                before = mention
        before = mention


def _words_of(word: str, language: str) -> tuple[str, ...]:
    if language == "zh":
        return tuple(word)
    return (word[:-2], "'s") if word.endswith("'s") else (word,)


def _mentions(tree: Tree, tokens: list[RenderedWord]) -> list[Mention | None]:
    known = dict(_atoms(tree))
    found = [known.get(atoms[0]) if atoms else None for _, atoms in tokens]
    for place in range(len(tokens) - 2, -1, -1):
        word, atoms = tokens[place]
        after = found[place + 1]
        if atoms or not after:
            continue
        is_inside = place > 0 and found[place - 1] == after  # 诚实*的*工程师
        is_first = word == "很" and tokens[place + 1][1][0] % ATOMS == ADJECTIVE  # *很*长的信
        if is_inside or is_first:
            found[place] = after
    return found


def _atoms(tree: Tree) -> Iterator[tuple[int, Mention]]:
    """Every atom that is a part of a mention."""
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
            yield base + slot + _WHERE, ("PLACE", base + slot)


def _kind(noun: Noun) -> str:
    if "person" in noun.tags:
        return "PERSON"
    if "animal" in noun.tags:
        return "ANIMAL"
    return "FOOD" if noun.tags & _FOOD else "THING"


class IntentSampler(TreeSampler):
    """One sentence after another, by the intent that is asked for."""

    def sentence(self, wanted: str) -> Tree:
        """The next tree with the intent."""
        plan = self._plan(wanted)
        while True:
            tree = self.planned(plan) if plan else self.tree()
            if intent(tree) == wanted:
                return tree

    def _plan(self, wanted: str) -> Callable[[], Tree] | None:
        """What draws such sentences; a statement is what most sentences are."""
        if wanted in ("where", "when", "why"):
            return lambda: self.where_when_why(wanted)
        plans = {"request": self.order, "whether": lambda: self.statement(1.0), "who": self.who, "what": self.what}
        return plans.get(wanted)
