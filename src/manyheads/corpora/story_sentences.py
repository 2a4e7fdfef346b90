"""The lines of stories: each line is one event or state, rendered as one sentence in every language.

A `Line` also fixes how people and things are referred to ("she", "the key"), so a line has exactly one text. In English
and Chinese the reverse holds too: a text has exactly one line, on which `story_parser` relies.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from manyheads.corpora import lexicon
from manyheads.corpora.builtin import Sentence
from manyheads.corpora.lexemes import Adverbial, Noun
from manyheads.corpora.sampler import Sampler
from manyheads.corpora.syntax_tree import Clause, Nominal, Tree
from manyheads.corpora.word_tables import ALL_NAMES, DURATIONS, GOALS, PLACES, TIMES, adverbial_table

LINKS = {link.key: link for link in adverbial_table("link")}
_TIMES = ("yesterday", "this-morning", "last-night", "last-sunday", "last-friday", "two-days-ago")
WHEN = {time.key: time for time in TIMES if time.key in _TIMES}
NAMES = {name.key: name for name in ALL_NAMES}
OUTDOORS = ("park", "forest", "beach", "zoo")
SHOPS = ("market", "supermarket")
INDOORS = ("library", "museum", "cinema", "theatre", "restaurant", "station")
AT = {place.key: place for place in PLACES if place.key in (*OUTDOORS, *SHOPS, *INDOORS)}
TO = {goal.key: goal for goal in GOALS if goal.key in AT}

LOSABLE = ("key", "hat", "umbrella", "watch", "ring", "phone", "camera", "scarf", "map", "ticket", "bag", "ball")
GIFTS = ("scarf", "hat", "watch", "ring", "vase", "doll", "sweater", "picture", "guitar", "umbrella")
BOOKS = ("book", "novel", "magazine")
MEALS = ("pizza", "sausage", "sandwich")
SNACKS = ("apple", "pear", "banana", "orange", "biscuit", "cake", "bread", "chocolate")
DRINKS = ("tea", "coffee", "milk", "juice", "lemonade", "water")
DISHES = ("cup", "plate", "bowl", "vase", "mirror")
PETS = ("dog", "cat", "rabbit")
BEASTS = ("elephant", "lion", "tiger", "monkey", "bear", "snake")
COLORS = ("red", "blue", "green", "black", "white")

_FOOD = (*MEALS, *SNACKS)
_PRETTY = ("hat", "watch", "ring", "vase", "doll", "picture")
_THE = ("the", "it")


class Line(NamedTuple):
    """The content of one sentence: people by name or pronoun ("Anna+Peter" for two), a thing by the key of its noun."""

    kind: str
    who: str = ""
    whom: str = ""
    thing: str = ""
    form: str = ""  # a, the, it, own (who is the owner), theirs (whom is the owner)
    quality: str = ""
    place: str = ""
    time: str = ""
    link: str = ""
    very: bool = False


@dataclass(frozen=True)
class Frame:
    """The verb or adjective of a kind of line, and the things, locations and forms that it allows."""

    verb: str = ""
    adjective: str = ""
    whom: str = ""  # object, recipient or owner
    things: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    places: tuple[str, ...] = ()  # possible locations; for a motion, destinations
    is_motion: bool = False
    tense: str = "past"
    negated: bool = False
    manner: str = ""
    lasts: str = ""
    by_both: bool = False  # whether the subject is two people


_EVERYWHERE = (*OUTDOORS, *SHOPS, *INDOORS)
FRAMES = {
    "rained": Frame("rain", tense="was-progressive"),
    "went": Frame("go", places=_EVERYWHERE, is_motion=True),
    "both-went": Frame("go", places=_EVERYWHERE, is_motion=True, by_both=True),
    "went-home": Frame("go-home"),
    "both-went-home": Frame("go-home", by_both=True),
    "met": Frame("meet", whom="object", places=(*OUTDOORS, *SHOPS, "station")),
    "visited": Frame("visit", whom="object"),
    "helped": Frame("help", whom="object"),
    "thanked": Frame("thank", whom="object"),
    "hugged": Frame("hug", whom="object"),
    "called": Frame("call", whom="object"),
    "lost": Frame("lose", things=LOSABLE, forms=("own",), places=_EVERYWHERE),
    "sought": Frame("look-for", things=LOSABLE, forms=("the",), lasts="long"),
    "found": Frame("find", things=LOSABLE, forms=_THE, places=_EVERYWHERE),
    "gave": Frame("give", whom="recipient", things=(*LOSABLE, *GIFTS, *BOOKS, *DISHES), forms=_THE),
    "offered": Frame("give", whom="recipient", things=(*SNACKS, "sandwich"), forms=("a",)),
    "bought": Frame("buy", things=(*GIFTS, *DISHES, *SNACKS, "sandwich"), forms=("a",), places=SHOPS),
    "ordered": Frame("order", things=(*MEALS, "cake", *DRINKS), forms=("a",), places=("restaurant",)),
    "ate": Frame("eat", things=_FOOD, forms=_THE),
    "both-ate": Frame("eat", things=("cake", "pizza"), forms=_THE, manner="together", by_both=True),
    "drank": Frame("drink", things=DRINKS, forms=_THE),
    "baked": Frame("bake", things=("cake", "pizza"), forms=("a",)),
    "saw": Frame("see", things=PETS, forms=("a",), places=OUTDOORS[:3]),
    "both-saw": Frame("see", things=BEASTS, forms=("a",), by_both=True),
    "fed": Frame("feed", things=PETS, forms=_THE),
    "wrote": Frame("write-to", whom="recipient", things=("letter",), forms=("a",)),
    "lent": Frame("lend", whom="recipient", things=BOOKS, forms=("a",)),
    "read": Frame("read", things=(*BOOKS, "letter"), forms=_THE),
    "read-there": Frame("read", things=BOOKS, forms=("a",), places=("library",)),
    "broke": Frame("break", whom="owner", things=DISHES, forms=("theirs",)),
    "liked": Frame("like", things=(*GIFTS, *BOOKS, *PETS), forms=_THE, tense="was-state"),
    "disliked": Frame("like", things=BOOKS, forms=_THE, tense="was-state", negated=True),
    "laughed": Frame("laugh"),
    "cried": Frame("cry"),
    "both-laughed": Frame("laugh", by_both=True),
    "both-sang": Frame("sing", manner="together", by_both=True),
    "both-danced": Frame("dance", manner="together", by_both=True),
    "slept": Frame("sleep", lasts="two-hours"),
    "was-happy": Frame(adjective="happy"),
    "both-were-happy": Frame(adjective="happy", by_both=True),
    "was-sad": Frame(adjective="sad"),
    "was-angry": Frame(adjective="angry"),
    "was-tired": Frame(adjective="tired"),
    "was-hungry": Frame(adjective="hungry"),
    "was-thirsty": Frame(adjective="thirsty"),
    "it-was-hungry": Frame(adjective="hungry", things=PETS, forms=_THE),
    "it-was-delicious": Frame(adjective="delicious", things=(*MEALS[:2], *SNACKS[:7]), forms=_THE),
    "it-was-interesting": Frame(adjective="interesting", things=BOOKS, forms=_THE),
    "it-was-boring": Frame(adjective="boring", things=BOOKS, forms=_THE),
    "it-was-beautiful": Frame(adjective="beautiful", things=_PRETTY, forms=_THE),
}
# Kinds of lines that occur only in summaries.
_SUMMARIES = {
    "found-for": Frame("find", whom="owner", things=LOSABLE, forms=("theirs",), places=_EVERYWHERE),
    "found-own": Frame("find", things=LOSABLE, forms=("own",), places=_EVERYWHERE),
    "presented": Frame("give", whom="recipient", things=GIFTS, forms=("a",)),
    "bought-for": Frame("buy-for", whom="recipient", things=DISHES, forms=("a",)),
    "fed-there": Frame("feed", things=PETS, forms=("a",), places=OUTDOORS),
    "saw-there": Frame("see", things=BEASTS, forms=("a",), places=OUTDOORS, by_both=True),
    "shared": Frame("eat", things=("cake", "pizza"), forms=("a",), manner="together", by_both=True),
}


@lru_cache(maxsize=1 << 16)
def line_text(line: Line, language: str) -> str:
    """Return the text of a line."""
    return Sentence(Tree(_LineBuilder().clause(line))).text(language)


@cache
def qualities(thing: str) -> tuple[str, ...]:
    """Return the colors that a thing may have, and "new" if it fits."""
    noun = lexicon.NOUN_BY_KEY[thing]
    return tuple(key for key in (*COLORS, "new") if lexicon.ADJECTIVE_BY_KEY[key].tags & noun.tags)


class _LineBuilder(Sampler):
    """Builds the clause of a line, without random choices."""

    def __init__(self) -> None:
        super().__init__(0)

    def clause(self, line: Line) -> Clause:
        """Return the line as a clause."""
        frame = FRAMES.get(line.kind) or _SUMMARIES[line.kind]
        clause = self.new_clause("quality" if frame.adjective else "verb", lexicon.VERB_BY_KEY.get(frame.verb))
        clause.tense, clause.negated = frame.tense, frame.negated
        clause.adjective = lexicon.ADJECTIVE_BY_KEY.get(frame.adjective)
        clause.subject = self._person(line.who) if line.who else None
        if line.whom and frame.whom != "owner":
            whom = self._person(line.whom)
            clause.object, clause.recipient = (whom, None) if frame.whom == "object" else (None, whom)
        if line.thing:
            thing = self._thing(line)
            clause.subject, clause.object = (thing, None) if frame.adjective else (clause.subject, thing)
        clause.degree = "very" if line.very else ""
        clause.manner = lexicon.MANNER_BY_KEY.get(frame.manner)
        clause.duration = next((duration for duration in DURATIONS if duration.key == frame.lasts), None)
        clause.place = None if frame.is_motion else AT.get(line.place)
        clause.goal = TO.get(line.place) if frame.is_motion else None
        clause.time = _time(line)
        clause.fronted = bool(line.time or line.link) and not frame.adjective
        return clause

    def _person(self, word: str) -> Nominal:
        first, _, second = word.partition("+")
        if first not in NAMES:
            return self.a_pronoun((first,))
        nominal = self.new_nominal("name")
        nominal.name = NAMES[first]
        if second:
            nominal.second = self._person(second)
        return nominal

    def _thing(self, line: Line) -> Nominal:
        noun = lexicon.NOUN_BY_KEY[line.thing]
        if line.form == "it":
            return self.anaphor(self.noun(noun, "the"))
        is_owned = line.form in ("own", "theirs")
        nominal = self.noun(noun, "own" if is_owned else line.form)
        nominal.measured = noun.measure is not None
        if is_owned:
            nominal.owner = self._owner(line)
        nominal.adjective = lexicon.ADJECTIVE_BY_KEY.get(line.quality)
        return nominal

    def _owner(self, line: Line) -> Nominal:
        if line.form == "theirs":
            return self._person(line.whom)
        return self.a_pronoun((NAMES[line.who].sex if line.who in NAMES else line.who,))


def _time(line: Line) -> Adverbial | None:
    return WHEN[line.time] if line.time else LINKS[line.link] if line.link else None


def noun_of(thing: str) -> Noun:
    """Return the noun of a thing."""
    return lexicon.NOUN_BY_KEY[thing]
