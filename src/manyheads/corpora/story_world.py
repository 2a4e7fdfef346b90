"""A model of the world of a story: where people are, what they have and how they feel; detects contradictions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from manyheads.corpora import story_sentences
from manyheads.corpora.story_sentences import FRAMES, NAMES, Line

_VERDICTS = {"it-was-delicious": 1, "it-was-interesting": 1, "it-was-beautiful": 1, "it-was-boring": -1}
_HOME = "home"
# Events whose subject may be a new person, and events whose object or recipient may be.
_BRINGS_DOER = frozenset({"helped", "found", "offered"})
_BRINGS_OTHER = frozenset({"met", "visited", "gave", "wrote", "lent", "broke"})
_MAX_PEOPLE = 2


@dataclass(eq=False)
class Person:
    """A person in the story."""

    name: str
    place: str = ""
    mood: int = 0  # 1 after a good event, -1 after a bad one
    needs: set[str] = field(default_factory=set)
    owes: set[str] = field(default_factory=set)  # people to thank


@dataclass(eq=False)
class Thing:
    """A thing in the story."""

    noun: str
    quality: str = ""
    holder: str = ""
    owner: str = ""
    state: str = "there"  # there, lost, gone
    place: str = ""
    verdict: int = 0
    tried: set[str] = field(default_factory=set)  # people who have had, read or eaten it


class World:
    """The state of a story; `add` updates it by one line and returns the contradictions of that line."""

    def __init__(self) -> None:
        self.people: dict[str, Person] = {}
        self.things: list[Thing] = []
        self.last: Thing | None = None  # the referent of "it"
        self.time = ""
        self.is_wet = False
        self.lines: list[Line] = []
        self.faults: list[str] = []

    def add(self, line: Line) -> list[str]:
        """Add a line and return descriptions of its contradictions."""
        self.faults = []
        frame = FRAMES[line.kind]
        if line in self.lines:
            self._report("this sentence occurs twice")
        self._check_time(line)
        doers = self._people(line.who, may_be_new=line.kind in _BRINGS_DOER, both=frame.by_both)
        others = self._people(line.whom, may_be_new=line.kind in _BRINGS_OTHER)
        if {person.name for person in doers} & {person.name for person in others}:
            self._report(f"{doers[0].name} does it to {doers[0].name}")
        thing = self._thing(line, doers, others) if line.thing else None
        if thing and thing.noun not in frame.things:
            self._report(f"this does not apply to: {thing.noun}")
        if line.place and line.place not in frame.places:
            self._report(f"this does not happen there: {line.place}")
        complete = bool(doers or not line.who) and bool(others or not line.whom) and bool(thing or not line.thing)
        if complete:
            self._update_places(line, doers)
            self._apply(line, doers, others, thing)
        self.lines.append(line)
        self.last = thing or self.last
        return self.faults

    def _report(self, fault: str) -> None:
        self.faults.append(fault)

    def _check_time(self, line: Line) -> None:
        if line.time and self.time and line.time != self.time:
            self._report(f"it was {self.time}, now it is {line.time}")
        elif line.time and self.lines and not self.time:
            self._report("the time is given too late")
        self.time = self.time or line.time

    # Referents of names, pronouns and noun phrases.

    def _people(self, word: str, *, may_be_new: bool, both: bool = False) -> list[Person]:
        if not word:
            return []
        if word == "they":
            if len(self.people) < _MAX_PEOPLE:
                self._report("there is no referent for “they”")
                return []
            people = list(self.people.values())
        elif word in ("he", "she"):
            people = [person for person in self.people.values() if NAMES[person.name].sex == word]
            if len(people) != 1:
                self._report(f"“{word}” {'is ambiguous' if people else 'has no referent'}")
                return []
        else:
            people = [self._named(name, may_be_new=may_be_new) for name in word.split("+")]
        if both != (len(people) == _MAX_PEOPLE):
            self._report("one person does what two people do" if both else "two people do what one person does")
        return people

    def _named(self, name: str, *, may_be_new: bool) -> Person:
        if name not in self.people:
            if any(line.who for line in self.lines) and not may_be_new:
                self._report(f"{name} appears without introduction")
            if len(self.people) >= _MAX_PEOPLE:
                self._report(f"{name} is one person too many")
            self.people[name] = Person(name)
        return self.people[name]

    def _thing(self, line: Line, doers: list[Person], others: list[Person]) -> Thing | None:
        if line.form in ("a", "own", "theirs"):
            owner = (others if line.form == "theirs" else doers)[:1]
            if any(thing.noun == line.thing and thing.state != "gone" for thing in self.things):
                self._report(f"there is already one: {line.thing}")
            name = owner[0].name if owner and line.form != "a" else ""
            thing = Thing(line.thing, line.quality, holder=name, owner=name)
            self.things.append(thing)
            return thing
        if line.form == "it":
            if self.last is None:
                self._report("there is no referent for “it”")
            return self.last
        known = [thing for thing in self.things if thing.noun == line.thing]
        if not known:
            self._report(f"not mentioned before: {line.thing}")
            return None
        if line.quality and line.quality != known[-1].quality:
            self._report(f"the {line.thing} was not {line.quality}")
        return known[-1]

    # Effects of events.

    def _update_places(self, line: Line, doers: list[Person]) -> None:
        """Check that the subjects are at the location of the line, and move them there."""
        if line.kind in ("went", "both-went"):
            if self.is_wet and line.place in story_sentences.OUTDOORS:
                self._report(f"it is raining, and yet: {line.place}")
            if any(person.place == line.place for person in doers):
                self._report(f"already there: {line.place}")
        elif any(person.place == _HOME for person in doers) and line.kind not in ("slept", "was-happy", "was-tired"):
            self._report(f"{doers[0].name} has gone home")
        elif line.place and any(person.place not in ("", line.place) for person in doers):
            self._report(f"{doers[0].name} is not there: {line.place}")
        for person in doers:
            person.place = line.place or person.place

    def _apply(self, line: Line, doers: list[Person], others: list[Person], thing: Thing | None) -> None:
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
            self._report("there is no reason to be happy")
        for person in doers:
            person.mood = 1 if kind in ("both-ate", "both-saw", "both-sang", "both-danced") else person.mood
            person.place = _HOME if kind == "both-went-home" else person.place

    def _need_held(self, doer: Person, thing: Thing) -> None:
        if thing.holder != doer.name or thing.state != "there":
            self._report(f"{doer.name} does not have it: {thing.noun}")

    def _rain(self, doer: Person, other: Person, thing: Thing) -> None:
        if self.lines:
            self._report("the rain comes too late")
        self.is_wet = True

    def _go_home(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.needs:
            self._report(f"{doer.name} is still {min(doer.needs)}")
        if doer.place == "with " + doer.name:
            self._report(f"{doer.name} is at home")
        doer.place = _HOME

    def _meet(self, doer: Person, other: Person, thing: Thing) -> None:
        if any(line.kind in ("met", "visited") for line in self.lines):
            self._report("they have met before")
        other.place = doer.place = doer.place or other.place

    def _visit(self, doer: Person, other: Person, thing: Thing) -> None:
        if any(line.kind in ("met", "visited") for line in self.lines):
            self._report("they have met before")
        doer.place = other.place = "with " + other.name
        if other.mood >= 0:
            doer.mood = other.mood = 1

    def _help(self, doer: Person, other: Person, thing: Thing) -> None:
        if not any(thing.state == "lost" and thing.owner == other.name for thing in self.things):
            self._report(f"{other.name} needs no help")
        other.owes.add(doer.name)

    def _thank(self, doer: Person, other: Person, thing: Thing) -> None:
        if other.name not in doer.owes:
            self._report(f"{doer.name} has nothing to thank {other.name} for")
        doer.owes.discard(other.name)

    def _hug(self, doer: Person, other: Person, thing: Thing) -> None:
        if other.name not in doer.owes and other.mood >= 0:
            self._report(f"{doer.name} has no reason to hug {other.name}")
        doer.owes.discard(other.name)
        if other.mood < 0:
            other.mood = 1

    def _call(self, doer: Person, other: Person, thing: Thing) -> None:
        other.mood = doer.mood = 1

    def _lose(self, doer: Person, other: Person, thing: Thing) -> None:
        if any(other_thing.state == "lost" for other_thing in self.things):
            self._report("something is lost already")
        thing.state, thing.holder, thing.place, doer.mood = "lost", "", doer.place, -1

    def _seek(self, doer: Person, other: Person, thing: Thing) -> None:
        if thing.state != "lost" or thing.owner != doer.name:
            self._report(f"{doer.name} has not lost it: {thing.noun}")

    def _find(self, doer: Person, other: Person, thing: Thing) -> None:
        if thing.state != "lost":
            self._report(f"it is not lost: {thing.noun}")
        if doer.place and thing.place and doer.place != thing.place:
            self._report(f"it was lost somewhere else: {thing.place}")
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
        """Give something that was not mentioned before."""
        thing.holder = doer.name
        self._give(doer, other, thing)
        other.mood = other.mood if thing.noun != "letter" else 0

    def _lend(self, doer: Person, other: Person, thing: Thing) -> None:
        self._hand(doer, other, thing)
        thing.tried.discard(other.name)  # the borrower has not read it yet
        other.mood = 0

    def _buy(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.place and doer.place not in story_sentences.SHOPS:
            self._report(f"nothing is sold there: {doer.place}")
        thing.holder = doer.name

    def _order(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.place and doer.place != "restaurant":
            self._report(f"nothing is served there: {doer.place}")
        thing.holder = doer.name

    def _bake(self, doer: Person, other: Person, thing: Thing) -> None:
        thing.holder = doer.name

    def _eat(self, doer: Person, other: Person, thing: Thing, *, of_both: bool = False) -> None:
        if thing.state == "gone":
            self._report(f"it is gone: {thing.noun}")
        elif not of_both:
            self._need_held(doer, thing)
        thing.state = "gone"
        for person in (doer, other) if of_both else (doer,):
            thing.tried.add(person.name)
            person.mood = 1
            person.needs.discard("thirsty" if thing.noun in story_sentences.DRINKS else "hungry")

    def _break(self, doer: Person, other: Person, thing: Thing) -> None:
        thing.state, other.mood = "gone", -1

    def _read(self, doer: Person, other: Person, thing: Thing) -> None:
        if not thing.holder:
            thing.holder = doer.name
        self._need_held(doer, thing)
        if doer.name in thing.tried and thing.noun in story_sentences.BOOKS:
            self._report("it has been read")
        thing.tried.add(doer.name)

    def _read_there(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.place != "library":
            self._report(f"{doer.name} is not in the library")
        self._read(doer, other, thing)

    def _see(self, doer: Person, other: Person, thing: Thing) -> None:
        thing.tried.add(doer.name)

    def _feed(self, doer: Person, other: Person, thing: Thing) -> None:
        if thing.state != "hungry":
            self._report(f"it is not hungry: {thing.noun}")
        thing.state, doer.mood = "there", 1

    def _like(self, doer: Person, other: Person, thing: Thing) -> None:
        self._evaluate(doer, thing, 1)

    def _dislike(self, doer: Person, other: Person, thing: Thing) -> None:
        self._evaluate(doer, thing, -1)

    def _evaluate(self, doer: Person, thing: Thing, verdict: int) -> None:
        if doer.name and doer.name not in thing.tried:
            self._report(f"{doer.name} does not know it yet: {thing.noun}")
        if thing.verdict == -verdict:
            self._report(f"contradictory opinions of: {thing.noun}")
        thing.verdict = verdict
        if doer.name:
            doer.mood = verdict

    def _taste(self, doer: Person, other: Person, thing: Thing) -> None:
        if not thing.tried:
            self._report(f"this is not known yet of: {thing.noun}")
        self._evaluate(Person(""), thing, 1)
        self._cheer(thing, 1)

    def _bore(self, doer: Person, other: Person, thing: Thing) -> None:
        if not thing.tried:
            self._report(f"this is not known yet of: {thing.noun}")
        self._evaluate(Person(""), thing, -1)
        self._cheer(thing, -1)

    def _cheer(self, thing: Thing, mood: int) -> None:
        for name in thing.tried:
            self.people[name].mood = mood

    def _admire(self, doer: Person, other: Person, thing: Thing) -> None:
        self._evaluate(Person(""), thing, 1)

    def _starve(self, doer: Person, other: Person, thing: Thing) -> None:
        if thing.state != "there" or any(line.kind == "fed" for line in self.lines):
            self._report(f"it is not hungry any more: {thing.noun}")
        thing.state = "hungry"

    def _hunger(self, doer: Person, other: Person, thing: Thing) -> None:
        if self.lines:
            self._report("that comes too late")
        doer.needs.add("hungry")

    def _thirst(self, doer: Person, other: Person, thing: Thing) -> None:
        if self.lines:
            self._report("that comes too late")
        doer.needs.add("thirsty")

    def _rejoice(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.mood <= 0 and not self._has_news(doer):
            self._report(f"{doer.name} has no reason to be happy")
        doer.mood = 1

    def _grieve(self, doer: Person, other: Person, thing: Thing) -> None:
        if doer.mood >= 0 and not self._has_news(doer):
            self._report(f"{doer.name} has no reason to be sad")
        doer.mood = -1

    def _has_news(self, doer: Person) -> bool:
        """Return whether a letter, which may be good or bad news, was read in the previous line."""
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
