"""What is so after each line of a story: who is where and has what, and how they feel; and what cannot be."""

from collections.abc import Callable
from dataclasses import dataclass, field

from manyheads.corpora import story_sentences as told
from manyheads.corpora.story_sentences import FRAMES, NAMES, Line

_VERDICTS = {"it-was-delicious": 1, "it-was-interesting": 1, "it-was-beautiful": 1, "it-was-boring": -1}
_HOME = "home"
# Whoever does one of these may be new in the story; so may whoever it is done to.
_BRINGS_DOER = frozenset({"helped", "found", "offered"})
_BRINGS_OTHER = frozenset({"met", "visited", "gave", "wrote", "lent", "broke"})
_MOST_PEOPLE = 2


@dataclass(eq=False)
class Person:
    """Somebody in the story."""

    name: str
    place: str = ""
    mood: int = 0  # what has happened to them lately: 1 good, -1 bad
    needs: set[str] = field(default_factory=set)
    owes: set[str] = field(default_factory=set)  # whom there is reason to thank


@dataclass(eq=False)
class Thing:
    """Something in the story."""

    noun: str
    quality: str = ""
    holder: str = ""
    owner: str = ""
    state: str = "there"  # there, lost, gone
    place: str = ""
    verdict: int = 0
    tried: set[str] = field(default_factory=set)  # who knows it from having it, reading it, eating it


class World:
    """A story so far; `take` adds a line and says what is wrong with it."""

    def __init__(self) -> None:
        self.people: dict[str, Person] = {}
        self.things: list[Thing] = []
        self.last: Thing | None = None  # what "it" is
        self.time = ""
        self.is_wet = False
        self.lines: list[Line] = []
        self.faults: list[str] = []

    def take(self, line: Line) -> list[str]:
        """Add a line; the faults it has, in words."""
        self.faults = []
        frame = FRAMES[line.kind]
        if line in self.lines:
            self._blame("the same is said twice")
        self._keep_time(line)
        doers = self._people(line.who, may_be_new=line.kind in _BRINGS_DOER, both=frame.by_both)
        others = self._people(line.whom, may_be_new=line.kind in _BRINGS_OTHER)
        if {person.name for person in doers} & {person.name for person in others}:
            self._blame(f"{doers[0].name} does it to {doers[0].name}")
        thing = self._thing(line, doers, others) if line.thing else None
        if thing and thing.noun not in frame.things:
            self._blame(f"that cannot be said of: {thing.noun}")
        if line.place and line.place not in frame.places:
            self._blame(f"that does not happen there: {line.place}")
        complete = bool(doers or not line.who) and bool(others or not line.whom) and bool(thing or not line.thing)
        if complete:
            self._stay(line, doers)
            self._happen(line, doers, others, thing)
        self.lines.append(line)
        self.last = thing or self.last
        return self.faults

    def _blame(self, fault: str) -> None:
        self.faults.append(fault)

    def _keep_time(self, line: Line) -> None:
        if line.time and self.time and line.time != self.time:
            self._blame(f"it was {self.time}, now it is {line.time}")
        elif line.time and self.lines and not self.time:
            self._blame("the time is said too late")
        self.time = self.time or line.time

    # Who and what is meant.

    def _people(self, word: str, *, may_be_new: bool, both: bool = False) -> list[Person]:
        if not word:
            return []
        if word == "they":
            if len(self.people) < _MOST_PEOPLE:
                self._blame("nobody is known whom “they” could be")
                return []
            found = list(self.people.values())
        elif word in ("he", "she"):
            found = [person for person in self.people.values() if NAMES[person.name].sex == word]
            if len(found) != 1:
                self._blame(f"“{word}” could be {'either' if found else 'nobody so far'}")
                return []
        else:
            found = [self._named(name, may_be_new=may_be_new) for name in word.split("+")]
        if both != (len(found) == _MOST_PEOPLE):
            self._blame("one person does what two do" if both else "two people do what one does")
        return found

    def _named(self, name: str, *, may_be_new: bool) -> Person:
        if name not in self.people:
            if any(line.who for line in self.lines) and not may_be_new:
                self._blame(f"{name} comes out of nowhere")
            if len(self.people) >= _MOST_PEOPLE:
                self._blame(f"{name} is one person too many")
            self.people[name] = Person(name)
        return self.people[name]

    def _thing(self, line: Line, doers: list[Person], others: list[Person]) -> Thing | None:
        if line.form in ("a", "own", "theirs"):
            owner = (others if line.form == "theirs" else doers)[:1]
            if any(thing.noun == line.thing and thing.state != "gone" for thing in self.things):
                self._blame(f"there is already one: {line.thing}")
            name = owner[0].name if owner and line.form != "a" else ""
            thing = Thing(line.thing, line.quality, holder=name, owner=name)
            self.things.append(thing)
            return thing
        if line.form == "it":
            if self.last is None:
                self._blame("nothing is known that “it” could be")
            return self.last
        known = [thing for thing in self.things if thing.noun == line.thing]
        if not known:
            self._blame(f"nothing was said yet of: {line.thing}")
            return None
        if line.quality and line.quality != known[-1].quality:
            self._blame(f"the {line.thing} was not {line.quality}")
        return known[-1]

    # What follows.

    def _stay(self, line: Line, doers: list[Person]) -> None:
        """Whoever does something somewhere is there; a motion changes that."""
        if line.kind in ("went", "both-went"):
            if self.is_wet and line.place in told.OUTDOORS:
                self._blame(f"it is raining, and yet: {line.place}")
            if any(person.place == line.place for person in doers):
                self._blame(f"already there: {line.place}")
        elif any(person.place == _HOME for person in doers) and line.kind not in ("slept", "was-happy", "was-tired"):
            self._blame(f"{doers[0].name} has gone home")
        elif line.place and any(person.place not in ("", line.place) for person in doers):
            self._blame(f"{doers[0].name} is not there: {line.place}")
        for person in doers:
            person.place = line.place or person.place

    def _happen(self, line: Line, doers: list[Person], others: list[Person], thing: Thing | None) -> None:
        rule = _RULES.get(line.kind)
        doer, other = (doers or [Person("")])[0], (others or [Person("")])[0]
        if rule:
            rule(self, doer, other, thing or Thing(""))
        if line.kind.startswith("both-"):
            self._together(line.kind, doers, thing)

    def _together(self, kind: str, doers: list[Person], thing: Thing | None) -> None:
        if kind == "both-ate" and thing:
            self._eat(doers[0], doers[1], thing, of_both=True)
        if kind in ("both-were-happy", "both-laughed") and not any(person.mood > 0 for person in doers):
            self._blame("there is no reason to be happy")
        for person in doers:
            person.mood = 1 if kind in ("both-ate", "both-saw", "both-sang", "both-danced") else person.mood
            person.place = _HOME if kind == "both-went-home" else person.place

    def _need_held(self, doer: Person, thing: Thing) -> None:
        if thing.holder != doer.name or thing.state != "there":
            self._blame(f"{doer.name} does not have it: {thing.noun}")

    def _rain(self, doer: Person, other: Person, thing: Thing) -> None:
        if self.lines:
            self._blame("the rain comes too late")
        self.is_wet = True

    def _go_home(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.needs:
            self._blame(f"{doer.name} is still {min(doer.needs)}")
        if doer.place == "with " + doer.name:
            self._blame(f"{doer.name} is at home")
        doer.place = _HOME

    def _meet(self, doer: Person, other: Person, thing: Thing) -> None:
        if any(line.kind in ("met", "visited") for line in self.lines):
            self._blame("they have met before")
        other.place = doer.place = doer.place or other.place

    def _visit(self, doer: Person, other: Person, thing: Thing) -> None:
        if any(line.kind in ("met", "visited") for line in self.lines):
            self._blame("they have met before")
        doer.place = other.place = "with " + other.name
        if other.mood >= 0:
            doer.mood = other.mood = 1

    def _help(self, doer: Person, other: Person, thing: Thing) -> None:
        if not any(thing.state == "lost" and thing.owner == other.name for thing in self.things):
            self._blame(f"{other.name} needs no help")
        other.owes.add(doer.name)

    def _thank(self, doer: Person, other: Person, thing: Thing) -> None:
        if other.name not in doer.owes:
            self._blame(f"{doer.name} has nothing to thank {other.name} for")
        doer.owes.discard(other.name)

    def _hug(self, doer: Person, other: Person, thing: Thing) -> None:
        if other.name not in doer.owes and other.mood >= 0:
            self._blame(f"{doer.name} has no reason to hug {other.name}")
        doer.owes.discard(other.name)
        if other.mood < 0:
            other.mood = 1

    def _call(self, doer: Person, other: Person, thing: Thing) -> None:
        other.mood = doer.mood = 1

    def _lose(self, doer: Person, other: Person, thing: Thing) -> None:
        if any(other_thing.state == "lost" for other_thing in self.things):
            self._blame("something is lost already")
        thing.state, thing.holder, thing.place, doer.mood = "lost", "", doer.place, -1

    def _seek(self, doer: Person, other: Person, thing: Thing) -> None:
        if thing.state != "lost" or thing.owner != doer.name:
            self._blame(f"{doer.name} has not lost it: {thing.noun}")

    def _find(self, doer: Person, other: Person, thing: Thing) -> None:
        if thing.state != "lost":
            self._blame(f"it is not lost: {thing.noun}")
        if doer.place and thing.place and doer.place != thing.place:
            self._blame(f"it was lost somewhere else: {thing.place}")
        thing.state, thing.holder = "there", doer.name
        if thing.owner == doer.name:
            doer.mood = 1

    def _give(self, doer: Person, other: Person, thing: Thing) -> None:
        self._need_held(doer, thing)
        thing.holder = other.name
        thing.tried.add(other.name)
        other.owes.add(doer.name)
        other.mood = 1

    def _hand(self, doer: Person, other: Person, thing: Thing) -> None:
        """Give what was not spoken of before."""
        thing.holder = doer.name
        self._give(doer, other, thing)
        other.mood = other.mood if thing.noun != "letter" else 0

    def _lend(self, doer: Person, other: Person, thing: Thing) -> None:
        self._hand(doer, other, thing)
        thing.tried.discard(other.name)  # who has not read a book does not know it
        other.mood = 0

    def _buy(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.place and doer.place not in told.SHOPS:
            self._blame(f"nothing is sold there: {doer.place}")
        thing.holder = doer.name

    def _order(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.place and doer.place != "restaurant":
            self._blame(f"nothing is served there: {doer.place}")
        thing.holder = doer.name

    def _bake(self, doer: Person, other: Person, thing: Thing) -> None:
        thing.holder = doer.name

    def _eat(self, doer: Person, other: Person, thing: Thing, *, of_both: bool = False) -> None:
        if thing.state == "gone":
            self._blame(f"it is gone: {thing.noun}")
        elif not of_both:
            self._need_held(doer, thing)
        thing.state = "gone"
        for person in (doer, other) if of_both else (doer,):
            thing.tried.add(person.name)
            person.mood = 1
            person.needs.discard("thirsty" if thing.noun in told.DRINKS else "hungry")

    def _break(self, doer: Person, other: Person, thing: Thing) -> None:
        thing.state, other.mood = "gone", -1

    def _read(self, doer: Person, other: Person, thing: Thing) -> None:
        if not thing.holder:
            thing.holder = doer.name
        self._need_held(doer, thing)
        if doer.name in thing.tried and thing.noun in told.BOOKS:
            self._blame("it has been read")
        thing.tried.add(doer.name)

    def _read_there(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.place != "library":
            self._blame(f"{doer.name} is not in the library")
        self._read(doer, other, thing)

    def _see(self, doer: Person, other: Person, thing: Thing) -> None:
        thing.tried.add(doer.name)

    def _feed(self, doer: Person, other: Person, thing: Thing) -> None:
        if thing.state != "hungry":
            self._blame(f"it is not hungry: {thing.noun}")
        thing.state, doer.mood = "there", 1

    def _like(self, doer: Person, other: Person, thing: Thing) -> None:
        self._judge(doer, thing, 1)

    def _dislike(self, doer: Person, other: Person, thing: Thing) -> None:
        self._judge(doer, thing, -1)

    def _judge(self, doer: Person, thing: Thing, verdict: int) -> None:
        if doer.name and doer.name not in thing.tried:
            self._blame(f"{doer.name} does not know it yet: {thing.noun}")
        if thing.verdict == -verdict:
            self._blame(f"nobody says both of it: {thing.noun}")
        thing.verdict = verdict
        if doer.name:
            doer.mood = verdict

    def _taste(self, doer: Person, other: Person, thing: Thing) -> None:
        if not thing.tried:
            self._blame(f"nobody knows that yet of: {thing.noun}")
        self._judge(Person(""), thing, 1)
        self._cheer(thing, 1)

    def _bore(self, doer: Person, other: Person, thing: Thing) -> None:
        if not thing.tried:
            self._blame(f"nobody knows that yet of: {thing.noun}")
        self._judge(Person(""), thing, -1)
        self._cheer(thing, -1)

    def _cheer(self, thing: Thing, mood: int) -> None:
        for name in thing.tried:
            self.people[name].mood = mood

    def _admire(self, doer: Person, other: Person, thing: Thing) -> None:
        self._judge(Person(""), thing, 1)

    def _starve(self, doer: Person, other: Person, thing: Thing) -> None:
        if thing.state != "there" or any(line.kind == "fed" for line in self.lines):
            self._blame(f"it is not hungry any more: {thing.noun}")
        thing.state = "hungry"

    def _hunger(self, doer: Person, other: Person, thing: Thing) -> None:
        if self.lines:
            self._blame("that comes too late")
        doer.needs.add("hungry")

    def _thirst(self, doer: Person, other: Person, thing: Thing) -> None:
        if self.lines:
            self._blame("that comes too late")
        doer.needs.add("thirsty")

    def _rejoice(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.mood <= 0 and not self._has_news(doer):
            self._blame(f"{doer.name} has no reason to be happy")
        doer.mood = 1

    def _grieve(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.mood >= 0 and not self._has_news(doer):
            self._blame(f"{doer.name} has no reason to be sad")
        doer.mood = -1

    def _has_news(self, doer: Person) -> bool:
        """A letter may be good or bad news, the line after it was read."""
        return bool(self.lines) and self.lines[-1].kind == "read" and self.things[-1].noun == "letter"


_Rule = Callable[[World, Person, Person, Thing], None]
_RULES: dict[str, _Rule] = {
    "rained": World._rain,
    "went-home": World._go_home,
    "met": World._meet,
    "visited": World._visit,
    "helped": World._help,
    "thanked": World._thank,
    "hugged": World._hug,
    "called": World._call,
    "lost": World._lose,
    "sought": World._seek,
    "found": World._find,
    "gave": World._give,
    "offered": World._hand,
    "wrote": World._hand,
    "lent": World._lend,
    "bought": World._buy,
    "ordered": World._order,
    "baked": World._bake,
    "ate": World._eat,
    "drank": World._eat,
    "broke": World._break,
    "read": World._read,
    "read-there": World._read_there,
    "saw": World._see,
    "fed": World._feed,
    "liked": World._like,
    "disliked": World._dislike,
    "laughed": World._rejoice,
    "was-happy": World._rejoice,
    "cried": World._grieve,
    "was-sad": World._grieve,
    "was-angry": World._grieve,
    "was-hungry": World._hunger,
    "was-thirsty": World._thirst,
    "it-was-hungry": World._starve,
    "it-was-delicious": World._taste,
    "it-was-interesting": World._taste,
    "it-was-boring": World._bore,
    "it-was-beautiful": World._admire,
}
