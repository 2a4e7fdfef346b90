"""The built-in corpora of the tasks that understand and generate: rows of text with their labels or tags."""

import zlib
from collections.abc import Callable, Iterator
from functools import cache

from manyheads.corpora.builtin import Sentence, check_language, check_split, sentences, split_by, split_of
from manyheads.corpora.entities import INTENTS, IntentSampler, tagged
from manyheads.corpora.opinions import STANCES, OpinionSampler, turns
from manyheads.corpora.stories import Story, StoryTeller
from manyheads.corpora.story_sentences import say
from manyheads.errors import DataError

Row = tuple[str, ...]

_WITHHELD_PERCENT = 20  # of the turns: qualities that training never sees denied, or never sees doubted
# What never happens to which thing in training; each of these things is known from what else happens to it.
_UNTOLD = frozenset(
    {
        ("lost", "scarf"),
        ("lost", "ring"),
        ("bought", "umbrella"),
        ("bought", "hat"),
        ("bought", "banana"),
        ("bought", "chocolate"),
        ("offered", "orange"),
        ("offered", "bread"),
        ("ordered", "pizza"),
        ("baked", "cake"),
        ("broke", "vase"),
    }
)


def rows(task: str, language: str, split: str, count: int, seed: int = 1) -> Iterator[Row]:
    """`count` distinct rows of a task's split, the same for the same seed.

    classify: (text, stance) · tag: (words, tags) · intents: (words, tags, intent) · generate: (story,) ·
    summary: (story, its summary).
    """
    if task not in _ROWS:
        raise DataError(f"built-in corpus {task!r} is unknown. Use one of: {', '.join(_ROWS)}.")
    check_language(language)
    check_split(split)
    return _ROWS[task](language, split, count, seed)


def _classify(language: str, split: str, count: int, seed: int) -> Iterator[Row]:
    sampler = OpinionSampler(seed)
    seen: set[str] = set()
    while len(seen) < count:
        stance = STANCES[len(seen) % len(STANCES)]
        tree = sampler.opinion(stance)
        is_new = any(map(_is_withheld, turns(tree)))
        if split != ("compositional" if is_new else split_by(tree.content_keys())):
            continue
        text = Sentence(tree).text(language)
        if text not in seen:
            seen.add(text)
            yield text, stance


@cache
def _is_withheld(turn: tuple[str, str]) -> bool:
    return zlib.crc32(f"withheld {turn[0]} {turn[1]}".encode()) % 100 < _WITHHELD_PERCENT


def _tag(language: str, split: str, count: int, seed: int) -> Iterator[Row]:
    for sentence in sentences(split, count, seed):
        yield _joined(sentence, language)


def _intents(language: str, split: str, count: int, seed: int) -> Iterator[Row]:
    sampler = IntentSampler(seed)
    seen: set[str] = set()
    while len(seen) < count:
        wanted = INTENTS[len(seen) % len(INTENTS)]
        tree = sampler.sentence(wanted)
        if split_of(tree) != split:
            continue
        text, tags = _joined(Sentence(tree), language)
        if text not in seen:
            seen.add(text)
            yield text, tags, wanted


def _stories(language: str, split: str, count: int, seed: int) -> Iterator[tuple[str, Story]]:
    teller = StoryTeller(seed)
    seen: set[str] = set()
    while len(seen) < count:
        story = teller.story()
        is_new = not _UNTOLD.isdisjoint(story.turns())
        if split != ("compositional" if is_new else split_by(story.keys())):
            continue
        text = story.text(language)
        if text not in seen:
            seen.add(text)
            yield text, story


def _generate(language: str, split: str, count: int, seed: int) -> Iterator[Row]:
    for text, _ in _stories(language, split, count, seed):
        yield (text,)


def _summary(language: str, split: str, count: int, seed: int) -> Iterator[Row]:
    for text, story in _stories(language, split, count, seed):
        yield text, say(story.summary, language)


def _joined(sentence: Sentence, language: str) -> tuple[str, str]:
    words, tags = zip(*tagged(sentence, language), strict=True)
    return " ".join(words), " ".join(tags)


_ROWS: dict[str, Callable[[str, str, int, int], Iterator[Row]]] = {
    "classify": _classify,
    "tag": _tag,
    "intents": _intents,
    "generate": _generate,
    "summary": _summary,
}
CORPORA = tuple(_ROWS)
