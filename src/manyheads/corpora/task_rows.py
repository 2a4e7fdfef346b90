"""The built-in corpora of the other tasks: rows of text with labels, tags or summaries."""

import zlib
from collections.abc import Callable, Iterator
from functools import cache

from manyheads.corpora.builtin import Sentence, check_language, check_split, sentences, split_by, split_of
from manyheads.corpora.entities import INTENTS, IntentSampler, tagged
from manyheads.corpora.opinions import STANCES, OpinionSampler, negations
from manyheads.corpora.stories import Story, StorySampler
from manyheads.corpora.story_sentences import line_text
from manyheads.errors import DataError

Row = tuple[str, ...]

_HELD_OUT_PERCENT = 20  # of the negated and doubted qualities, which occur in the split `compositional` only
# (event, thing) pairs that occur in the split `compositional` only; each thing occurs in training with other events.
_HELD_OUT_EVENTS = frozenset(
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
    """Yield `count` distinct rows of a task's split; equal seeds give equal rows.

    classify: (text, stance) · tag: (words, tags) · intents: (words, tags, intent) · generate: (story,) ·
    summary: (story, summary).
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
        is_new = any(map(_is_held_out, negations(tree)))
        if split != ("compositional" if is_new else split_by(tree.content_keys())):
            continue
        text = Sentence(tree).text(language)
        if text not in seen:
            seen.add(text)
            yield text, stance


@cache
def _is_held_out(negation: tuple[str, str]) -> bool:
    return zlib.crc32(f"withheld {negation[0]} {negation[1]}".encode()) % 100 < _HELD_OUT_PERCENT


def _tag(language: str, split: str, count: int, seed: int) -> Iterator[Row]:
    for sentence in sentences(split, count, seed):
        yield _joined(sentence, language)


def _intents(language: str, split: str, count: int, seed: int) -> Iterator[Row]:
    sampler = IntentSampler(seed)
    seen: set[str] = set()
    while len(seen) < count:
        target = INTENTS[len(seen) % len(INTENTS)]
        tree = sampler.sentence(target)
        if split_of(tree) != split:
            continue
        text, tags = _joined(Sentence(tree), language)
        if text not in seen:
            seen.add(text)
            yield text, tags, target


def _stories(language: str, split: str, count: int, seed: int) -> Iterator[tuple[str, Story]]:
    sampler = StorySampler(seed)
    seen: set[str] = set()
    while len(seen) < count:
        story = sampler.story()
        is_new = not _HELD_OUT_EVENTS.isdisjoint(story.events())
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
        yield text, line_text(story.summary, language)


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
