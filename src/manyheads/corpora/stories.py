"""The corpus of short stories: one or two people, one thing, a location, a time and a plot of three to eight lines.

Stories are consistent: pronouns refer to known people, a lost key is found where it was lost, and only a person who
received something says thank you. `story_parser.story_faults` checks this for any text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from manyheads.corpora import story_sentences
from manyheads.corpora.sampler import Sampler
from manyheads.corpora.story_sentences import FRAMES, NAMES, Line, line_text, qualities

_MIN_LINES, _MAX_LINES = 3, 8
_ALL_NAMES = tuple(NAMES)
_BY_SEX = {sex: tuple(key for key in NAMES if NAMES[key].sex == sex) for sex in ("he", "she")}
_OPPOSITE = {"he": "she", "she": "he"}
_TIMES = tuple(story_sentences.WHEN)
_LOSING_PLACES = (*story_sentences.OUTDOORS, *story_sentences.SHOPS, "museum", "library", "cinema", "station")
_DRY_PLACES = ("library", "museum", "cinema", "theatre")


@dataclass(frozen=True)
class Story:
    """A story as a sequence of lines, and its summary in one line."""

    lines: tuple[Line, ...]
    summary: Line

    def text(self, language: str) -> str:
        """Return the story as text."""
        return ("" if language == "zh" else " ").join(line_text(line, language) for line in self.lines)

    def keys(self) -> Iterator[str]:
        """Yield the people, things, locations and times of the story; they determine its split."""
        for line in self.lines:
            yield from (key for key in (line.who, line.whom, line.thing, line.place, line.time) if key)

    def events(self) -> Iterator[tuple[str, str]]:
        """Yield (event, thing) pairs; some are held out of training."""
        return ((line.kind, line.thing) for line in self.lines if line.form in ("a", "own", "theirs"))


class StorySampler(Sampler):
    """Draws stories from a seed."""

    def story(self) -> Story:
        """Draw the next story."""
        plot: Callable[[StorySampler], Line] = self.pick(_PLOTS)
        self.lines: list[Line] = []
        self.hero = self.pick(_ALL_NAMES)
        self.other = self.pick(_BY_SEX[_OPPOSITE[NAMES[self.hero].sex]])
        self.time = self.pick(_TIMES)
        self.met: set[str] = set()
        summary = plot(self)
        return Story(tuple(self.lines), summary._replace(time=self.time))

    def _add(
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
        """Add a line; the first line contains the time, and known people may become pronouns."""
        time = "" if self.lines else self.time
        if form == "the" and self.lines[-1].thing == thing and "it" in FRAMES[kind].forms and self.chance(0.3):
            form, quality = "it", ""
        is_act = bool(FRAMES[kind].verb) and len(self.lines) > 1 and FRAMES[kind].tense == "past"
        if is_act and not link and not FRAMES[kind].lasts and self.chance(0.15):
            link = "then" if self.chance(0.6) else "later"
        very = kind.startswith("was-") and self.chance(0.3)
        owner = self.other if form == "theirs" else ""
        people = self._mention(who), self._mention(whom or owner)
        self.lines.append(Line(kind, *people, thing, form, quality, place, time, link, very))

    def _mention(self, person: str) -> str:
        """Return the name of a person, or the pronoun if the person was mentioned before."""
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

    def _may_add(self, probability: float) -> bool:
        return len(self.lines) < _MAX_LINES and self.chance(probability)

    def _maybe_place(self, place: str, probability: float) -> str:
        """Return the location always for the first line, else with the given probability."""
        return place if not self.lines or self.chance(probability) else ""

    def _color(self, thing: str) -> str:
        choices = qualities(thing)
        return self.pick(choices) if choices and self.chance(0.4) else ""

    # Plots; each adds its lines and returns the summary.

    def _lost(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(story_sentences.LOSABLE)
        place = self.pick(_LOSING_PLACES)
        if self.chance(0.5):
            self._add("went", hero, place=place)
        self._add("lost", hero, thing=thing, form="own", place=self._maybe_place(place, 0.4))
        if self.chance(0.7):
            self._add("was-sad" if self.chance(0.7) else "cried", hero)
        if self.chance(0.6):
            self._add("sought", hero, thing=thing, form="the")
        if self.chance(0.4):
            self._add("found", hero, thing=thing, form="the", link="in-the-end", place=self._maybe_place(place, 0.3))
            self._add("was-happy", hero)
            if self._may_add(0.5):
                self._add("went-home", hero)
            return Line("found-own", hero, thing=thing, form="own", place=place)
        if self.chance(0.6):
            self._add("helped", other, hero)
        self._add("found", other, thing=thing, form="the", place=self._maybe_place(place, 0.4))
        self._add("gave", other, hero, thing, "the")
        if self._may_add(0.7):
            self._add("thanked" if self.chance(0.7) else "hugged", hero, other)
        if self._may_add(0.5):
            self._add("was-happy", hero)
        return Line("found-for", other, hero, thing, "theirs", place=place)

    def _gift(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(story_sentences.GIFTS)
        place, quality = self.pick(story_sentences.SHOPS), self._color(thing)
        if self.chance(0.5):
            self._add("went", hero, place=place)
        self._add("bought", hero, thing=thing, form="a", quality=quality, place=self._maybe_place(place, 0.5))
        if thing in FRAMES["it-was-beautiful"].things and self.chance(0.4):
            self._add("it-was-beautiful", thing=thing, form="the")
        if self.chance(0.4):
            self._add("visited", hero, other)
        self._add("gave", hero, other, thing, "the", quality if self.chance(0.3) else "")
        if len(self.lines) < _MIN_LINES or self.chance(0.7):
            self._add("was-happy", other)
        if self._may_add(0.5):
            self._add("liked", other, thing=thing, form="the")
        if self._may_add(0.7):
            self._add("thanked" if self.chance(0.7) else "hugged", other, hero)
        return Line("presented", hero, other, thing, "a", quality)

    def _hunger(self) -> Line:
        hero, other = self.hero, self.other
        self._add("was-hungry", hero)
        if self.chance(0.3):
            thing = self.pick(FRAMES["offered"].things)
            if self.chance(0.6):
                self._add("met", hero, other, place=self.pick(FRAMES["met"].places) if self.chance(0.5) else "")
            self._add("offered", other, hero, thing, "a")
            summary = Line("offered", other, hero, thing, "a")
        elif self.chance(0.5):
            place, thing = self.pick(story_sentences.SHOPS), self.pick((*story_sentences.SNACKS, "sandwich"))
            self._add("went", hero, place=place)
            self._add("bought", hero, thing=thing, form="a")
            summary = Line("bought", hero, thing=thing, form="a", place=place)
        else:
            thing = self.pick((*story_sentences.MEALS, "cake"))
            self._add("went", hero, place="restaurant")
            self._add("ordered", hero, thing=thing, form="a")
            summary = Line("ordered", hero, thing=thing, form="a", place="restaurant")
        self._add("ate", hero, thing=thing, form="the")
        if thing in FRAMES["it-was-delicious"].things and self.chance(0.6):
            self._add("it-was-delicious", thing=thing, form="the")
        if summary.kind == "offered" and self.chance(0.7):
            self._add("thanked", hero, other)
        if self.chance(0.5):
            self._add("was-happy", hero)
        if self.chance(0.5):
            self._add("went-home", hero)
        return summary

    def _thirst(self) -> Line:
        hero, thing = self.hero, self.pick(story_sentences.DRINKS)
        self._add("was-thirsty", hero)
        self._add("went", hero, place="restaurant")
        self._add("ordered", hero, thing=thing, form="a")
        self._add("drank", hero, thing=thing, form="the")
        if self.chance(0.5):
            self._add("was-happy", hero)
        if self.chance(0.6):
            self._add("went-home", hero)
        return Line("ordered", hero, thing=thing, form="a", place="restaurant")

    def _loan(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(story_sentences.BOOKS)
        self._add("lent", hero, other, thing, "a")
        self._add("read", other, thing=thing, form="the")
        verdict = self._verdict(other, thing)
        if self.chance(0.7):
            self._add("gave", other, hero, thing, "the", link="in-the-end" if self.chance(0.3) else "")
        if verdict == "interesting":
            self._add("thanked", other, hero)
        return Line("lent", hero, other, thing, "a", verdict)

    def _verdict(self, reader: str, thing: str) -> str:
        verdict = "interesting" if self.chance(0.6) else "boring"
        if self.chance(0.75):
            self._add(f"it-was-{verdict}", thing=thing, form="the")
            if self.chance(0.4):
                return verdict
        self._add("liked" if verdict == "interesting" else "disliked", reader, thing=thing, form="the")
        return verdict

    def _letter(self) -> Line:
        hero, other = self.hero, self.other
        self._add("wrote", hero, other, "letter", "a")
        self._add("read", other, thing="letter", form="the")
        if self.chance(0.6):
            self._add("was-happy" if self.chance(0.7) else "laughed", other)
            self._add("called" if self.chance(0.5) else "visited", other, hero)
            if self.chance(0.5):
                self._add("thanked", other, hero)
            if self.chance(0.6):
                self._add("both-laughed" if self.chance(0.5) else "both-were-happy", "both")
        else:
            self._add("was-sad" if self.chance(0.6) else "cried", other)
            self._add("visited", hero, other)
            self._add("hugged", hero, other)
            if self.chance(0.6):
                self._add("was-happy", other, link="in-the-end")
        return Line("wrote", hero, other, "letter", "a")

    def _broken(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(story_sentences.DISHES)
        self._add("broke", hero, thing=thing, form="theirs")
        self._add("was-angry" if self.chance(0.5) else "was-sad", other)
        if self.chance(0.7):
            self._add("went", hero, place=self.pick(story_sentences.SHOPS))
        self._add("bought", hero, thing=thing, form="a", quality="new")
        self._add("gave", hero, other, thing, "the", "new")
        if self.chance(0.7):
            self._add("was-happy", other)
        if self.chance(0.6):
            self._add("thanked" if self.chance(0.7) else "hugged", other, hero)
        return Line("bought-for", hero, other, thing, "a", "new")

    def _stray(self) -> Line:
        hero, thing, place = self.hero, self.pick(story_sentences.PETS), self.pick(FRAMES["saw"].places)
        if self.chance(0.6):
            self._add("went", hero, place=place)
        self._add("saw", hero, thing=thing, form="a", place=self._maybe_place(place, 0.3))
        self._add("it-was-hungry", thing=thing, form="the")
        self._add("fed", hero, thing=thing, form="the")
        if self.chance(0.6):
            self._add("liked", hero, thing=thing, form="the")
        if self.chance(0.5):
            self._add("was-happy", hero)
        if self.chance(0.5):
            self._add("went-home", hero)
        return Line("fed-there", hero, thing=thing, form="a", place=place)

    def _outing(self) -> Line:
        thing = self.pick(story_sentences.BEASTS)
        place = "zoo"
        self._add("both-went", "both", place=place)
        self._add("both-saw", "both", thing=thing, form="a")
        if self.chance(0.6):
            self._add("both-laughed", "both")
        if self.chance(0.6):
            self._add("both-were-happy", "both")
        self._add("both-went-home", "both", link="in-the-end" if self.chance(0.3) else "")
        return Line("saw-there", f"{self.hero}+{self.other}", thing=thing, form="a", place=place)

    def _visit(self) -> Line:
        hero, other, thing = self.hero, self.other, self.pick(FRAMES["baked"].things)
        self._add("visited", hero, other)
        self._add("baked", other, thing=thing, form="a")
        self._add("both-ate", "both", thing=thing, form="the")
        if self.chance(0.6):
            self._add("it-was-delicious", thing=thing, form="the")
        if self.chance(0.6):
            self._add("both-sang" if self.chance(0.5) else "both-danced", "both")
        if self.chance(0.5):
            self._add("both-were-happy", "both")
        if self.chance(0.6):
            self._add("went-home", hero, link="in-the-end" if self.chance(0.3) else "")
        return Line("shared", f"{hero}+{other}", thing=thing, form="a")

    def _rain(self) -> Line:
        hero, thing = self.hero, self.pick(story_sentences.BOOKS)
        self._add("rained")
        self._add("went", hero, place="library")
        self._add("read-there", hero, thing=thing, form="a")
        verdict = self._verdict(hero, thing)
        if self.chance(0.5) and verdict == "interesting":
            self._add("was-happy", hero)
        if self.chance(0.6):
            self._add("went-home", hero)
        return Line("read-there", hero, thing=thing, form="a", quality=verdict, place="library")


_PLOTS = (
    StorySampler._lost,
    StorySampler._lost,
    StorySampler._gift,
    StorySampler._gift,
    StorySampler._hunger,
    StorySampler._thirst,
    StorySampler._loan,
    StorySampler._letter,
    StorySampler._broken,
    StorySampler._stray,
    StorySampler._outing,
    StorySampler._visit,
    StorySampler._rain,
)
