"""Sparse features of words for a linear tagger: words, their parts and shapes, and their neighbors.

A feature is a hash of its template and its value; equal hashes count as equal features.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

NO_FEATURE = 0  # where a template has no value, such as the suffix of a word that is too short
_N_BITS = 63  # of a feature: files store signed integers

_EDGE = 4  # positions before and after each text, so that every word has neighbors
_MAX_NGRAMS = 14  # of characters, in a word
_LONGEST_SHAPE = 12
_OUTSIDE = "\0"  # the word at positions before and after a text
_DIGIT = re.compile(r"\d")
_REPETITION = re.compile(r"(.)\1+")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_UPPER, _LOWER, _MIXED = 1, 2, 3  # the case of a text

# The attributes of a word by column: the word in lower case, its shape, its shape without repetitions, the word itself,
# its last and first three letters, its affixes, its character n-grams.
_WORD, _SHAPE, _SHORT_SHAPE, _EXACT, _ENDING, _BEGINNING, _AFFIXES = range(7)
_NGRAMS = _AFFIXES + 8


class _Features:
    """The features of all words of some texts, template by template."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        numbers: dict[str, int] = {_OUTSIDE: 0}  # of each distinct word
        words = [0] * _EDGE
        for text in texts:
            words += [numbers.setdefault(word, len(numbers)) for word in text]
            words += [0] * _EDGE
        self._attributes: Hashes = np.array([_attributes(word) for word in numbers], dtype=np.uint64)
        self._words = np.array(words)
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        self._positions = np.arange(lengths.sum()) + np.repeat(_EDGE * np.arange(1, len(texts) + 1), lengths)
        self._templates: list[Hashes] = []

    def at(self, offset: int, attribute: int) -> Hashes:
        """An attribute of the word at this distance from each word."""
        return self._attributes[self._words[self._positions + offset], attribute]

    def add(self, *parts: tuple[int, int], template: int | None = None) -> None:
        """Add a feature that combines attributes, given as (offset, attribute)."""
        self.add_values(*(self.at(*part) for part in parts), template=template)

    def add_values(self, *values: Hashes, template: int | None = None) -> None:
        """Add a feature that combines values; its template is a new one unless given."""
        number = len(self._templates) if template is None else template
        mixed = np.full(values[0].shape, number + 1, dtype=np.uint64)
        for value in values:
            mixed = (mixed ^ value) * _MULTIPLIER
            mixed ^= mixed >> np.uint64(29)
        mixed >>= np.uint64(64 - _N_BITS)
        if len(values) == 1:
            mixed[values[0] == NO_FEATURE] = NO_FEATURE
        self._templates.append(mixed)

    def stack(self) -> Hashes:
        """The features of each word, as rows."""
        return np.stack(self._templates, axis=1)


def word_features(texts: Sequence[Sequence[str]], *, are_characters: bool) -> Hashes:
    """The features of each word of all texts, as rows; those of `text_columns` come first."""
    features = _Features(texts)
    features.add((0, _WORD))
    features.add((0, _WORD), (1, _WORD))
    features.add((-1, _WORD), (0, _WORD), (1, _WORD))
    if are_characters:
        _add_character_features(features)
        return features.stack()
    for column in range(_NGRAMS, _NGRAMS + _MAX_NGRAMS):
        features.add((0, column), template=_NGRAMS)
    _add_word_features(features)
    cases = np.repeat(np.array(list(map(_case_of, texts)), dtype=np.uint64), [len(text) for text in texts])
    features.add_values(cases, features.at(0, _SHORT_SHAPE))
    features.add_values(cases, features.at(0, _WORD))
    features.add_values(cases, *(features.at(offset, _SHORT_SHAPE) for offset in (-1, 0, 1)))
    return features.stack()


def text_columns(*, are_characters: bool) -> slice:
    """The columns of `word_features` that describe a text as a whole, whatever the position of the word."""
    return slice(0, 3 if are_characters else 3 + _MAX_NGRAMS)


def _add_character_features(features: _Features) -> None:
    for offset in (-2, -1, 1, 2):
        features.add((offset, _WORD))
    for offset in (-2, -1, 1):
        features.add((offset, _WORD), (offset + 1, _WORD))
    for offset in (-2, 0):
        features.add(*((offset + step, _WORD) for step in range(3)))
    features.add((-1, _WORD), (1, _WORD))
    for offset in (-1, 0, 1):
        features.add((offset, _SHORT_SHAPE))
    features.add(*((offset, _SHORT_SHAPE) for offset in (-1, 0, 1)))


def _add_word_features(features: _Features) -> None:
    for offset in (-2, -1, 1, 2):
        features.add((offset, _WORD))
    for offset in (-1, 0, 1):
        features.add((offset, _EXACT))
        features.add((offset, _SHAPE))
    for offset in (-2, -1, 0, 1, 2):
        features.add((offset, _SHORT_SHAPE))
    for offset in (-1, 1):
        features.add((offset, _ENDING))
        features.add((offset, _BEGINNING))
    for column in range(_AFFIXES, _NGRAMS):
        features.add((0, column))
    for offset in (-2, -1, 1):
        features.add((offset, _WORD), (offset + 1, _WORD))
    features.add((-1, _WORD), (1, _WORD))
    features.add((-1, _SHORT_SHAPE), (0, _SHORT_SHAPE))
    features.add((0, _SHORT_SHAPE), (1, _SHORT_SHAPE))
    features.add(*((offset, _SHORT_SHAPE) for offset in (-1, 0, 1)))
    features.add(*((offset, _SHORT_SHAPE) for offset in (-2, -1, 0, 1, 2)))
    features.add((-1, _WORD), (0, _SHORT_SHAPE))
    features.add((0, _SHORT_SHAPE), (1, _WORD))
    features.add((-2, _WORD), (-1, _WORD), (0, _SHORT_SHAPE))
    features.add((0, _SHORT_SHAPE), (1, _WORD), (2, _WORD))
    features.add((0, _ENDING), (1, _WORD))
    features.add((-1, _WORD), (0, _ENDING))
    for direction, template in ((-1, 1000), (1, 1001)):  # words within four positions, at any distance
        for distance in range(1, _EDGE + 1):
            features.add((direction * distance, _WORD), template=template)


@lru_cache(1 << 17)
def _attributes(word: str) -> tuple[int, ...]:
    lower = _DIGIT.sub("0", word.lower())
    shape = shape_of(word)
    values = [lower, shape[:_LONGEST_SHAPE], _REPETITION.sub(r"\1", shape), word, lower[-3:], lower[:3]]
    values += [word[:length] if len(word) > length else "" for length in (1, 2, 3, 4)]
    values += [word[-length:] if len(word) > length else "" for length in (1, 2, 3, 4)]
    framed = f"<{lower}>"
    ngrams = (framed[start : start + length] for length in (3, 4, 5) for start in range(len(framed) - length + 1))
    values += list(dict.fromkeys(ngrams))[:_MAX_NGRAMS]
    hashes = [_hash(value) if value else NO_FEATURE for value in values]
    return (*hashes, *[NO_FEATURE] * (_NGRAMS + _MAX_NGRAMS - len(hashes)))


def shape_of(word: str) -> str:
    """The word with every letter and digit replaced by one of its kind: "Xx-00" for "Ab-12"."""
    return "".join(
        "0" if one.isdigit() else "X" if one.isupper() else "x" if one.islower() else "字" if one.isalpha() else one
        for one in word
    )


def _case_of(text: Sequence[str]) -> int:
    """Whether the words of a text are in upper case, in lower case or mixed: a capital means little in a headline."""
    has_upper, has_lower = any(map(str.isupper, text)), any(map(str.islower, text))
    return _UPPER if has_upper and not has_lower else _LOWER if has_lower and not has_upper else _MIXED


@lru_cache(1 << 17)
def _hash(text: str) -> int:
    """A hash that is not NO_FEATURE."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") | 1
