"""The lexicon: the verbs by group, the nouns that fit a verb, the adjectives and verbs that fit a noun."""

from functools import cache

from manyheads.corpora.lexemes import Adjective, Adverbial, Noun, Verb
from manyheads.corpora.word_tables import (
    ALL_ADJECTIVES,
    ALL_NAMES,
    ALL_NOUNS,
    DURATIONS,
    FREQUENCIES,
    GOALS,
    MANNERS,
    NUMERALS,
    PLACES,
    SPOTS,
    TIMES,
    verb_table,
)

TRANSITIVE = verb_table("transitive")
INTRANSITIVE = verb_table("intransitive")
GIVING = verb_table("giving")  # with two objects
STATES = verb_table("states")
THINKING = verb_table("thinking")
MOTION = verb_table("motion")
WEATHER = verb_table("weather")
ALL_VERBS: tuple[Verb, ...] = TRANSITIVE + INTRANSITIVE + GIVING + STATES + THINKING + MOTION + WEATHER

# Verbs whose object is indefinite under negation (did not buy a book); with other verbs it is definite.
NEW_WHEN_NEGATED = frozenset(
    {"buy", "read", "write", "eat", "drink", "order", "bring", "paint", "bake", "cook", "watch", "plant", "hear", "use"}
)
# Verbs for things that people hope to do.
HOPED_FOR = frozenset(
    {
        "visit",
        "watch",
        "sing",
        "dance",
        "swim",
        "travel",
        "return",
        "arrive",
        "help",
        "invite",
    }
)
# Verbs whose object has no owner yet.
OWNERLESS = frozenset(
    {
        "buy",
        "order",
        "bake",
        "cook",
        "bring",
        "plant",
        "pick",
        "catch",
        "buy-for",
        "bake-for",
        "build",
        "write",
        "write-to",
        "understand",
        "watch",
        "answer",
        "throw",
    }
)

# The acts that a person's state explains: adjective → (verb, whether it was done).
REASONS = {
    "tired": (
        ("sleep", True),
        ("go-home", True),
        ("work", False),
        ("dance", False),
        ("run", False),
        ("cook-food", False),
        ("go", False),
        ("get-up", False),
        ("swim", False),
        ("tidy", False),
    ),
    "hungry": (("eat", True), ("cook-food", True), ("buy-baked", True), ("order-ordered", True), ("bark", True)),
    "thirsty": (("drink", True), ("buy-drink", True)),
    "happy": (("laugh", True), ("sing", True), ("dance", True), ("hug", True)),
    "sad": (("cry", True), ("laugh", False), ("sing", False), ("dance", False), ("go-home", True)),
    "angry": (
        ("shout", True),
        ("go-home", True),
        ("criticise", True),
        ("thank", False),
        ("invite", False),
        ("laugh", False),
    ),
    "nervous": (("laugh", False), ("dance", False), ("sing", False), ("answer", False)),
    "busy": (
        ("go", False),
        ("visit", False),
        ("call", False),
        ("help", False),
        ("go-home", False),
        ("cook-food", False),
    ),
}

PRONOUNS = ("I", "you", "he", "she", "we", "they", "it")
FUNCTION_WORDS = (
    *("the", "a", "this", "my", "your", "his", "her", "our", "their", "its", "many", "some", "no", "and"),
    *("who", "what", "which", "how", "where", "when", "why", "that", "whom", "because", "but", "while", "if"),
    *("not", "do", "be", "will", "can", "must", "should", "may", "want", "please", "very", "too", "more", "than"),
    *("by", "to", "for", "of", "there"),
)

VERB_BY_KEY = {verb.key: verb for verb in ALL_VERBS}
NOUN_BY_KEY = {noun.key: noun for noun in ALL_NOUNS}
ADJECTIVE_BY_KEY = {adjective.key: adjective for adjective in ALL_ADJECTIVES}
MANNER_BY_KEY = {manner.key: manner for manner in MANNERS}


@cache
def nouns_with(tags: tuple[str, ...]) -> tuple[Noun, ...]:
    """Return the nouns with any of the tags, in the order of the tables."""
    tag_set = frozenset(tags)
    return tuple(noun for noun in ALL_NOUNS if noun.tags & tag_set)


@cache
def places_with(tags: tuple[str, ...]) -> tuple[Adverbial, ...]:
    """Return the adverbials of place with any of the tags."""
    tag_set = frozenset(tags)
    return tuple(place for place in PLACES if place.tags & tag_set)


@cache
def spots_for(noun: Noun) -> tuple[Adverbial, ...]:
    """Return where a thing, an animal or a person can be; nothing is on or under itself."""
    return tuple(spot for spot in SPOTS if spot.tags & noun.tags and not spot.key.endswith("-" + noun.key))


@cache
def goals_with(tag: str) -> tuple[Adverbial, ...]:
    """Return the destinations with a tag."""
    return tuple(goal for goal in GOALS if tag in goal.tags)


@cache
def times_for(tense: str, *, long: bool, short: bool = True) -> tuple[Adverbial, ...]:
    """Return the adverbials of time for a tense; `long` ones fit events that take weeks or years."""
    times = (time for time in TIMES if tense in time.tags and (short or "week" not in time.tags))
    return tuple(time for time in times if (long if "long" in time.tags else short))


@cache
def adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    """Return the adjectives that fit a noun."""
    return tuple(adjective for adjective in ALL_ADJECTIVES if adjective.tags & noun.tags)


@cache
def attributes_for(noun: Noun) -> tuple[Adjective, ...]:
    """Return the attributive adjectives that fit a noun, excluding 老老虎, 小大象 and 老男人 (rude)."""

    def is_awkward(adjective: Adjective) -> bool:
        if adjective.zh == "老" and noun.key in ("man", "woman"):
            return True
        return adjective.zh == noun.zh[0] or (adjective.zh in "大小" and noun.zh[0] == "大")

    return tuple(adjective for adjective in adjectives_for(noun) if not is_awkward(adjective))


@cache
def verbs_with_subject(noun: Noun, letters: str) -> tuple[Verb, ...]:
    """Return the verbs whose subject a noun can be, in any of the tenses."""
    verbs = TRANSITIVE + INTRANSITIVE
    return tuple(verb for verb in verbs if fits(noun, verb.subjects) and any(t in verb.tenses for t in letters))


@cache
def verbs_with_object(noun: Noun, letter: str) -> tuple[Verb, ...]:
    """Return the verbs whose object a noun can be, in the tense."""
    return tuple(verb for verb in TRANSITIVE if fits(noun, verb.objects) and letter in verb.tenses)


# The object of these verbs is new and therefore gets no relative clause.
_MAKING = frozenset({"buy", "pick", "plant", "build", "bake", "cook", "write", "order", "bring"})


@cache
def verbs_in_relative(noun: Noun, main: Verb | None) -> tuple[Verb, ...]:
    """Return verbs for a relative clause about an object of the main clause, which must still exist (not eaten)."""
    gone = {"eat", "drink", "devour", "munch", "break", "lose", "bite", "catch"}
    key = main.key if main else ""
    if key in _MAKING:
        return ()
    if key in ("find", "look-for"):
        gone = gone - {"lose"} | {"find"}
    if "animal" in noun.tags:
        gone = gone | {"paint"}
    verbs = verbs_with_object(noun, "P")
    return tuple(verb for verb in verbs if verb.key not in gone and not verb.zh.preposition and verb is not main)


def fits(noun: Noun, tags: tuple[str, ...]) -> bool:
    """Return whether a noun matches the selectional restriction of a verb."""
    return not noun.tags.isdisjoint(tags) or ("lady" in tags and noun.sex == "she")


@cache
def with_letter(verbs: tuple[Verb, ...], letter: str) -> tuple[Verb, ...]:
    """Return the verbs that allow a tense."""
    return tuple(verb for verb in verbs if letter in verb.tenses)


def lemmas() -> frozenset[str]:
    """Return every English headword of the corpus; homonyms and the frames of one verb count once."""
    words = {noun.key for noun in ALL_NOUNS} | {name.key for name in ALL_NAMES}
    words |= {verb.en.base + " " + verb.en.particle for verb in ALL_VERBS}
    words |= {adjective.en for adjective in ALL_ADJECTIVES} | set(PRONOUNS) | set(FUNCTION_WORDS)
    words |= {numeral[0] for numeral in NUMERALS.values()}
    for table in (TIMES, FREQUENCIES, DURATIONS, MANNERS, PLACES, GOALS, SPOTS):
        words |= {word for adverbial in table for word, _ in adverbial.phrases["en"]}
    return frozenset(words)
