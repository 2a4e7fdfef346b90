"""Draw short stories: a person or two, one thing that matters, a place and a time, and what comes of it.

Whoever is named stays who they are, pronouns refer back to them, a lost key is found where it was lost, and only who
was given something says thank you: `story_reading.consistent` checks all of that in any text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from manyheads.corpora import story_sentences as told
from manyheads.corpora.sentence_sampler import Sampler
from manyheads.corpora.story_sentences import FRAMES, NAMES, Line, qualities, say

_SHORTEST, _LONGEST = 3, 8
_ALL_NAMES = tuple(NAMES)
_BY_SEX = {sex: tuple(key for key in NAMES if NAMES[key].sex == sex) for sex in ("he", "she")}
_OPPOSITE = {"he": "she", "she": "he"}
_TIMES = tuple(told.WHEN)
_LOSING_PLACES = (*told.OUTDOORS, *told.SHOPS, "museum", "library", "cinema", "station")
_DRY_PLACES = ("library", "museum", "cinema", "theatre")


@dataclass(frozen=True)
class Story:
    """What happens line by line, and all of it in one line."""

    lines: tuple[Line, ...]
    summary: Line

    def text(self, language: str) -> str:
        """The story as a reader sees it."""
        return ("" if language == "zh" else " ").join(say(line, language) for line in self.lines)

    def keys(self) -> Iterator[str]:
        """Everybody and everything in it: what equal texts share."""
        for line in self.lines:
            yield from (key for key in (line.who, line.whom, line.thing, line.place, line.time) if key)

    def turns(self) -> Iterator[tuple[str, str]]:
        """What happens to which thing: what may be held out of training."""
        return ((line.kind, line.thing) for line in self.lines if line.form in ("a", "own", "theirs"))


class StoryTeller(Sampler):
    """One story after another, all from one seed."""

    def story(self) -> Story:
        """The next story."""
        plot: Callable[[StoryTeller], Line] = self.pick(_PLOTS)
        self.lines: list[Line] = []
        self.hero = self.pick(_ALL_NAMES)
        self.other = self.pick(_BY_SEX[_OPPOSITE[NAMES[self.hero].sex]])
        self.time = self.pick(_TIMES)
        self.met: set[str] = set()
        summary = plot(self)
        return Story(tuple(self.lines), summary._replace(time=self.time))

    def _tell(
        self,
        kind: str,
        who: str = "",
        whom: str = "",
        thing: str = "",
        form: str = "",
        quality: str = "",
        place: str = "",
        link: str = "",
    ) -> None:
        """Add a line; the first names the time, and whoever is known may become a pronoun."""
        time = "" if self.lines else self.time
        if form == "the" and self.lines[-1].thing == thing and "it" in FRAMES[kind].forms and self.chance(0.3):
            form, quality = "it", ""
        is_act = bool(FRAMES[kind].verb) and len(self.lines) > 1 and FRAMES[kind].tense == "past"
        if is_act and not link and not FRAMES[kind].lasts and self.chance(0.15):
            link = "then" if self.chance(0.6) else "later"
        very = kind.startswith("was-") and self.chance(0.3)
        owner = self.other if form == "theirs" else ""
        said = Line(kind, self._call(who), self._call(whom or owner), thing, form, quality, place, time, link, very)
        self.lines.append(said)

    def _call(self, person: str) -> str:
        if not person:
            return ""
        if person == "both":
            is_new = not self.met
            self.met |= {self.hero, self.other}
            return f"{self.hero}+{self.other}" if is_new else "they"
        if person not in self.met or self.chance(0.2):
            self.met.add(person)
            return person
        return NAMES[person].sex

    def _perhaps(self, probability: float) -> bool:
        return len(self.lines) < _LONGEST and self.chance(probability)

    def _place_or_not(self, place: str, probability: float) -> str:
        """The place is always said in the first line, later only now and then."""
        return place if not self.lines or self.chance(probability) else ""

    def _colour(self, thing: str) -> str:
        choices = qualities(thing)
        return self.pick(choices) if choices and self.chance(0.4) else ""

    # The plots; each returns its summary.

    def _lost(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(told.LOSABLE)
        place = self.pick(_LOSING_PLACES)
        if self.chance(0.5):
            self._tell("went", hero, place=place)
        self._tell("lost", hero, thing=thing, form="own", place=self._place_or_not(place, 0.4))
        if self.chance(0.7):
            self._tell("was-sad" if self.chance(0.7) else "cried", hero)
        if self.chance(0.6):
            self._tell("sought", hero, thing=thing, form="the")
        if self.chance(0.4):
            self._tell("found", hero, thing=thing, form="the", link="in-the-end", place=self._place_or_not(place, 0.3))
            self._tell("was-happy", hero)
            if self._perhaps(0.5):
                self._tell("went-home", hero)
            return Line("found-own", hero, thing=thing, form="own", place=place)
        if self.chance(0.6):
            self._tell("helped", other, hero)
        self._tell("found", other, thing=thing, form="the", place=self._place_or_not(place, 0.4))
        self._tell("gave", other, hero, thing, "the")
        if self._perhaps(0.7):
            self._tell("thanked" if self.chance(0.7) else "hugged", hero, other)
        if self._perhaps(0.5):
            self._tell("was-happy", hero)
        return Line("found-for", other, hero, thing, "theirs", place=place)

    def _gift(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(told.GIFTS)
        place, quality = self.pick(told.SHOPS), self._colour(thing)
        if self.chance(0.5):
            self._tell("went", hero, place=place)
        self._tell("bought", hero, thing=thing, form="a", quality=quality, place=self._place_or_not(place, 0.5))
        if thing in FRAMES["it-was-beautiful"].things and self.chance(0.4):
            self._tell("it-was-beautiful", thing=thing, form="the")
        if self.chance(0.4):
            self._tell("visited", hero, other)
        self._tell("gave", hero, other, thing, "the", quality if self.chance(0.3) else "")
        if len(self.lines) < _SHORTEST or self.chance(0.7):
            self._tell("was-happy", other)
        if self._perhaps(0.5):
            self._tell("liked", other, thing=thing, form="the")
        if self._perhaps(0.7):
            self._tell("thanked" if self.chance(0.7) else "hugged", other, hero)
        return Line("presented", hero, other, thing, "a", quality)

    def _hunger(self) -> Line:
        hero, other = self.hero, self.other
        self._tell("was-hungry", hero)
        if self.chance(0.3):
            thing = self.pick(FRAMES["offered"].things)
            if self.chance(0.6):
                self._tell("met", hero, other, place=self.pick(FRAMES["met"].places) if self.chance(0.5) else "")
            self._tell("offered", other, hero, thing, "a")
            summary = Line("offered", other, hero, thing, "a")
        elif self.chance(0.5):
            place, thing = self.pick(told.SHOPS), self.pick((*told.SNACKS, "sandwich"))
            self._tell("went", hero, place=place)
            self._tell("bought", hero, thing=thing, form="a")
            summary = Line("bought", hero, thing=thing, form="a", place=place)
        else:
            thing = self.pick((*told.MEALS, "cake"))
            self._tell("went", hero, place="restaurant")
            self._tell("ordered", hero, thing=thing, form="a")
            summary = Line("ordered", hero, thing=thing, form="a", place="restaurant")
        self._tell("ate", hero, thing=thing, form="the")
        if thing in FRAMES["it-was-delicious"].things and self.chance(0.6):
            self._tell("it-was-delicious", thing=thing, form="the")
        if summary.kind == "offered" and self.chance(0.7):
            self._tell("thanked", hero, other)
        if self.chance(0.5):
            self._tell("was-happy", hero)
        if self.chance(0.5):
            self._tell("went-home", hero)
        return summary

    def _thirst(self) -> Line:
        hero, thing = self.hero, self.pick(told.DRINKS)
        self._tell("was-thirsty", hero)
        self._tell("went", hero, place="restaurant")
        self._tell("ordered", hero, thing=thing, form="a")
        self._tell("drank", hero, thing=thing, form="the")
        if self.chance(0.5):
            self._tell("was-happy", hero)
        if self.chance(0.6):
            self._tell("went-home", hero)
        return Line("ordered", hero, thing=thing, form="a", place="restaurant")

    def _loan(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(told.BOOKS)
        self._tell("lent", hero, other, thing, "a")
        self._tell("read", other, thing=thing, form="the")
        verdict = self._verdict(other, thing)
        if self.chance(0.7):
            self._tell("gave", other, hero, thing, "the", link="in-the-end" if self.chance(0.3) else "")
        if verdict == "interesting":
            self._tell("thanked", other, hero)
        return Line("lent", hero, other, thing, "a", verdict)

    def _verdict(self, reader: str, thing: str) -> str:
        verdict = "interesting" if self.chance(0.6) else "boring"
        if self.chance(0.75):
            self._tell(f"it-was-{verdict}", thing=thing, form="the")
            if self.chance(0.4):
                return verdict
        self._tell("liked" if verdict == "interesting" else "disliked", reader, thing=thing, form="the")
        return verdict

    def _letter(self) -> Line:
        hero, other = self.hero, self.other
        self._tell("wrote", hero, other, "letter", "a")
        self._tell("read", other, thing="letter", form="the")
        if self.chance(0.6):
            self._tell("was-happy" if self.chance(0.7) else "laughed", other)
            self._tell("called" if self.chance(0.5) else "visited", other, hero)
            if self.chance(0.5):
                self._tell("thanked", other, hero)
            if self.chance(0.6):
                self._tell("both-laughed" if self.chance(0.5) else "both-were-happy", "both")
        else:
            self._tell("was-sad" if self.chance(0.6) else "cried", other)
            self._tell("visited", hero, other)
            self._tell("hugged", hero, other)
            if self.chance(0.6):
                self._tell("was-happy", other, link="in-the-end")
        return Line("wrote", hero, other, "letter", "a")

    def _broken(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(told.DISHES)
        self._tell("broke", hero, thing=thing, form="theirs")
        self._tell("was-angry" if self.chance(0.5) else "was-sad", other)
        if self.chance(0.7):
            self._tell("went", hero, place=self.pick(told.SHOPS))
        self._tell("bought", hero, thing=thing, form="a", quality="new")
        self._tell("gave", hero, other, thing, "the", "new")
        if self.chance(0.7):
            self._tell("was-happy", other)
        if self.chance(0.6):
            self._tell("thanked" if self.chance(0.7) else "hugged", other, hero)
        return Line("bought-for", hero, other, thing, "a", "new")

    def _stray(self) -> Line:
        hero, thing, place = self.hero, self.pick(told.PETS), self.pick(FRAMES["saw"].places)
        if self.chance(0.6):
            self._tell("went", hero, place=place)
        self._tell("saw", hero, thing=thing, form="a", place=self._place_or_not(place, 0.3))
        self._tell("it-was-hungry", thing=thing, form="the")
        self._tell("fed", hero, thing=thing, form="the")
        if self.chance(0.6):
            self._tell("liked", hero, thing=thing, form="the")
        if self.chance(0.5):
            self._tell("was-happy", hero)
        if self.chance(0.5):
            self._tell("went-home", hero)
        return Line("fed-there", hero, thing=thing, form="a", place=place)

    def _outing(self) -> Line:
        thing = self.pick(told.BEASTS)
        place = "zoo"
        self._tell("both-went", "both", place=place)
        self._tell("both-saw", "both", thing=thing, form="a")
        if self.chance(0.6):
            self._tell("both-laughed", "both")
        if self.chance(0.6):
            self._tell("both-were-happy", "both")
        self._tell("both-went-home", "both", link="in-the-end" if self.chance(0.3) else "")
        return Line("saw-there", f"{self.hero}+{self.other}", thing=thing, form="a", place=place)

    def _visit(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(FRAMES["baked"].things)
        self._tell("visited", hero, other)
        self._tell("baked", other, thing=thing, form="a")
        self._tell("both-ate", "both", thing=thing, form="the")
        if self.chance(0.6):
            self._tell("it-was-delicious", thing=thing, form="the")
        if self.chance(0.6):
            self._tell("both-sang" if self.chance(0.5) else "both-danced", "both")
        if self.chance(0.5):
            self._tell("both-were-happy", "both")
        if self.chance(0.6):
            self._tell("went-home", hero, link="in-the-end" if self.chance(0.3) else "")
        return Line("shared", f"{hero}+{other}", thing=thing, form="a")

    def _rain(self) -> Line:
        hero, thing = self.hero, self.pick(told.BOOKS)
        self._tell("rained")
        self._tell("went", hero, place="library")
        self._tell("read-there", hero, thing=thing, form="a")
        verdict = self._verdict(hero, thing)
        if self.chance(0.5) and verdict == "interesting":
            self._tell("was-happy", hero)
        if self.chance(0.6):
            self._tell("went-home", hero)
        return Line("read-there", hero, thing=thing, form="a", quality=verdict, place="library")


_PLOTS = (
    StoryTeller._lost,
    StoryTeller._lost,
    StoryTeller._gift,
    StoryTeller._gift,
    StoryTeller._hunger,
    StoryTeller._thirst,
    StoryTeller._loan,
    StoryTeller._letter,
    StoryTeller._broken,
    StoryTeller._stray,
    StoryTeller._outing,
    StoryTeller._visit,
    StoryTeller._rain,
)
