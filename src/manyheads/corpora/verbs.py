"""The verbs by group, and what their meanings allow."""

from manyheads.corpora.lexemes import Verb
from manyheads.corpora.word_tables import verb_table

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
