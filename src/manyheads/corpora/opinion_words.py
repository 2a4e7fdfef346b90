"""Additional nouns and adjectives for opinions, kept apart so that the translation corpus does not change."""

from functools import cache

from manyheads.corpora import lexicon
from manyheads.corpora.lexemes import Adjective, Noun
from manyheads.corpora.word_tables import adjective_table, noun_table

VENUES = noun_table("venue")

ADJECTIVES = adjective_table("opinion_adjectives")

# Adjectives that are not clearly positive or negative.
_AMBIGUOUS = frozenset({"small", "new", "old-thing", "fat", "rich", "poor", "strong", "shy", "serious", "strict"})
_EVALUATIVE = tuple(
    adjective
    for adjective in (*lexicon.ADJECTIVE_BY_KEY.values(), *ADJECTIVES)
    if adjective.value in "+-" and adjective.key not in _AMBIGUOUS
)
_PLAIN = tuple(
    lexicon.ADJECTIVE_BY_KEY[key] for key in ("long", "short", "thick", "big", "red", "blue", "green", "black", "tall")
)
# Sets of adjectives that are too close in meaning to occur in one sentence, negated or not.
_RELATED_QUALITIES = (
    {"good", "bad", "interesting", "boring", "exciting", "disappointing", "funny"},
    {"boring-place", "modern", "disappointing"},
    {"bad", "disappointing"},
    {"beautiful", "ugly", "cute", "fashionable"},
    {"friendly", "rude", "polite", "selfish"},
    {"diligent", "lazy", "careless", "reliable", "experienced"},
    {"clever", "experienced", "famous"},
    {"honest", "selfish"},
    {"slow", "fast", "diligent", "lazy"},
    {"loud", "quiet"},
    {"clean", "dirty", "dusty", "tidy"},
    {"cheap", "expensive"},
    {"sweet", "sour", "ripe"},
    {"delicious", "disgusting", "fresh"},
    {"simple", "difficult"},
    {"light", "heavy"},
)


@cache
def judgments(noun: Noun) -> tuple[Adjective, ...]:
    """Return the positive and negative adjectives that fit a noun."""
    return tuple(adjective for adjective in _EVALUATIVE if adjective.tags & noun.tags)


@cache
def plain_qualities(noun: Noun) -> tuple[Adjective, ...]:
    """Return the neutral adjectives that fit a noun."""
    return tuple(adjective for adjective in _PLAIN if adjective.tags & noun.tags)


@cache
def are_related(first: Adjective, second: Adjective) -> bool:
    """Return whether two adjectives are too close in meaning to be contrasted or combined."""
    return first is second or any({first.key, second.key} <= qualities for qualities in _RELATED_QUALITIES)


def _has_both(noun: Noun) -> bool:
    values = {adjective.value for adjective in judgments(noun)}
    return values == {"+", "-"}


_DULL = frozenset({"lemon", "question", "ticket", "cup", "plate", "bowl", "box", "towel", "flower", "gift"})
THINGS = tuple(
    noun
    for noun in (*lexicon.NOUN_BY_KEY.values(), *VENUES)
    if noun.sex == "it" and _has_both(noun) and "animal" not in noun.tags and noun.key not in _DULL
)
PEOPLE = tuple(noun for noun in lexicon.NOUN_BY_KEY.values() if noun.sex in ("he", "she") and "kin" not in noun.tags)
PERSON = lexicon.NOUN_BY_KEY["woman"]  # its adjectives fit every named person
