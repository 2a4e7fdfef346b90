"""Read a story back into its lines, and check that it makes sense: English or Chinese, whoever wrote it.

A sentence is read by its pattern: what is left of it when names, things, places and times are replaced by their kind.
The patterns are made from the grammar itself, by saying every kind of line once with each way to refer to people and
things; so whatever the grammar says can be read, and nothing else.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from manyheads.corpora import lexicon
from manyheads.corpora import story_sentences as told
from manyheads.corpora.builtin import Sentence
from manyheads.corpora.sentence_sampler import Sampler
from manyheads.corpora.story_sentences import FRAMES, NAMES, Frame, Line, say
from manyheads.corpora.story_world import World
from manyheads.corpora.syntax_tree import Tree

SHORTEST, LONGEST = 3, 10
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"[^.?!。？！]+[.?!。？！]?")
_QUALITIES = ("", *told.COLOURS, "new")


@dataclass(frozen=True)
class _Word:
    """What a phrase of a text stands for: a kind of slot, and what fills it."""

    slot: str
    value: str
    quality: str = ""


def consistent(story: str) -> list[str]:
    """What is wrong with a story, sentence by sentence, in words; nothing for one that makes sense."""
    language = "zh" if _CHINESE.search(story) else "en"
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(story) if sentence.strip()]
    world = World()
    faults = []
    for number, sentence in enumerate(sentences, start=1):
        line = read(sentence, language)
        found = [f"cannot be read: {sentence}"] if line is None else world.take(line)
        faults += [f"sentence {number}: {fault}" for fault in found]
    if not SHORTEST <= len(sentences) <= LONGEST:
        faults.append(f"{len(sentences)} sentences are no story: it has {SHORTEST} to {LONGEST}")
    return faults


def first_sentence(story: str) -> str:
    """How a story begins."""
    found = _SENTENCE.match(story)
    return found[0] if found else ""


def read(sentence: str, language: str) -> Line | None:
    """The line that a sentence says, if it is one."""
    pattern, words = _delexicalise(sentence, language)
    for kind, sample, slots in _patterns(language).get(pattern, ()):
        line = _filled(kind, sample, dict(zip(slots, words, strict=True)))
        if say(line, language) == sentence:
            return line
    return None


def _filled(kind: str, sample: Line, words: dict[str, _Word]) -> Line:
    """The sample with other people, things, places and times."""
    line = sample
    for slot, word in words.items():
        if slot == "thing":
            line = line._replace(thing=word.value, quality=word.quality)
        elif slot == "second":
            line = line._replace(who=line.who.partition("+")[0] + "+" + word.value)
        elif slot == "who":
            line = line._replace(who=word.value + line.who[len(line.who.partition("+")[0]) :])
        elif slot == "whom":
            line = line._replace(whom=word.value)
        elif slot == "place":
            line = line._replace(place=word.value)
        else:
            line = line._replace(time=word.value)
    return line if line.form != "it" else line._replace(thing=FRAMES[kind].things[0])


def _delexicalise(sentence: str, language: str) -> tuple[str, list[_Word]]:
    if language == "en" and not sentence.startswith(tuple(NAMES)):
        sentence = sentence[:1].lower() + sentence[1:]
    phrases, expression = _phrases(language)
    words: list[_Word] = []

    def replace(match: re.Match[str]) -> str:
        word = phrases[match[0]]
        words.append(word)
        return f"<{word.slot}>"

    return expression.sub(replace, sentence), words


@cache
def _phrases(language: str) -> tuple[dict[str, _Word], re.Pattern[str]]:
    """Every phrase that names somebody or something, and an expression that finds the longest of them."""
    phrases: dict[str, _Word] = {}
    for name in NAMES.values():
        phrases[name.zh if language == "zh" else name.key] = _Word("name", name.key)
    for slot, table in (("at", told.AT), ("to", told.TO), ("time", told.WHEN)):
        for key, adverbial in table.items():
            words = [word for word, _ in adverbial.phrases[language]]
            phrases[("" if language == "zh" else " ").join(words)] = _Word(slot, key)
    things = sorted({thing for frame in FRAMES.values() for thing in frame.things})
    for thing, quality, form in product(things, _QUALITIES, ("bare", "a", "the")):
        if quality in ("", *told.qualities(thing)):
            phrases[_phrase(thing, quality, form, language)] = _Word(form, thing, quality)
    longest_first = sorted(map(re.escape, phrases), key=len, reverse=True)
    edge = "" if language == "zh" else r"\b"
    return phrases, re.compile(edge + "(?:" + "|".join(longest_first) + ")" + edge)


def _phrase(thing: str, quality: str, form: str, language: str) -> str:
    """A noun phrase by itself, cut out of the sentence that something is there."""
    sampler = Sampler(0)
    clause = sampler.new_clause("quality")
    clause.subject = sampler.noun(told.noun_of(thing), form)
    clause.subject.measured = clause.subject.noun is not None and clause.subject.noun.measure is not None
    clause.subject.adjective = lexicon.ADJECTIVE_BY_KEY.get(quality)
    clause.adjective, clause.tense = lexicon.ADJECTIVE_BY_KEY["good"], "past"
    text = Sentence(Tree(clause)).text(language)
    text = text.removesuffix("很好。" if language == "zh" else " was good.")
    return text if language == "zh" else text[0].lower() + text[1:]


@cache
def _patterns(language: str) -> dict[str, list[tuple[str, Line, tuple[str, ...]]]]:
    """All patterns; of each, the kinds of line that have it, a sample, and what its slots are in order."""
    patterns: dict[str, list[tuple[str, Line, tuple[str, ...]]]] = {}
    for kind, frame in FRAMES.items():
        for line in _samples(kind, frame):
            pattern, words = _delexicalise(say(line, language), language)
            slots = tuple(_slot_of(word, line) for word in words)
            patterns.setdefault(pattern, []).append((kind, line, slots))
    return patterns


def _slot_of(word: _Word, line: Line) -> str:
    if word.slot == "name":
        if word.value == line.whom:
            return "whom"
        return "who" if word.value == line.who.partition("+")[0] else "second"
    return {"at": "place", "to": "place", "time": "time"}.get(word.slot, "thing")


def _samples(kind: str, frame: Frame) -> Iterator[Line]:
    """Lines of a kind, one for each way to say it."""
    is_about_thing = bool(frame.adjective and frame.things)
    doers: tuple[str, ...] = ("Anna+Peter", "they") if frame.by_both else ("Anna", "Leo", "he", "she")
    doers = ("",) if is_about_thing or kind == "rained" else doers
    others = ("Martin", "he", "she") if frame.whom else ("",)
    places = frame.places[:1] if frame.is_motion else ("", *frame.places[:1])
    whens = [("", ""), ("yesterday", ""), *(("", link) for link in told.LINKS)]
    for who, whom, place, (time, link) in product(doers, others, places, whens):
        if who == whom and who:
            continue
        for form in frame.forms or ("",):
            very = (False, True) if frame.adjective and not frame.things else (False,)
            for degree in very:
                thing = frame.things[0] if form else ""
                yield Line(kind, who, whom, thing, form, "", place, time, link, degree)
