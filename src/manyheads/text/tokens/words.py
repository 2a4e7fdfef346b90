"""Word splitting: raw text into words or characters with their spans, and tokens into words (`WordTable`).

A grapheme cluster (a letter with its accents, a composed emoji) is never split. Words do not overlap, and together
they contain every character that is not white space.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from manyheads.text.tokens.tokenizer import Tokenizer

SplitBy = Literal["word", "character"]

_MIN_CHARACTER_SHARE = 0.95
_ZERO_WIDTH_JOINER = "\u200d"
_EXTENDING_CATEGORIES = ("Mn", "Me", "Mc", "Cf")  # combining characters, variation selectors, invisible characters
_EXTENDING_LETTERS = "\u0e33\u0eb3\uff9e\uff9f"  # letters by category that extend the previous character
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_REGIONAL_INDICATORS = ("\U0001f1e6", "\U0001f1ff")  # two of them are a flag
_HANGUL_SYLLABLES = ("\uac00", "\ud7a3")
_JAMO = (("\u1100", "\u11ff"), ("\ua960", "\ua97c"), ("\ud7b0", "\ud7fb"))
_LEADING_JAMO = (("\u1100", "\u115f"), ("\ua960", "\ua97c"))
# Scripts without spaces between words, in which each character is a word. Thai, Lao and Khmer text is not split.
_CHINESE_AND_KANA = (
    ("\u3005", "\u3007"),
    ("\u3040", "\u30ff"),
    ("\u31f0", "\u31ff"),
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\uff66", "\uff9f"),
    ("\U0001b000", "\U0001b16f"),
    ("\U00020000", "\U0003ffff"),
)

CHINESE_AND_KANA = "".join(f"{first}-{last}" for first, last in _CHINESE_AND_KANA)  # a character class

# The regular expression is applied to the shape of a text, which has one character per grapheme cluster: an ASCII
# letter or punctuation mark is itself, another letter is x or X, a digit is 0, a Chinese character or kana is 字.
_WORD = r"[A-Za-z0_]"
_END = rf"(?!{_WORD})"
_CLITIC = rf"['’](?i:s|m|d|re|ve|ll){_END}"
_ABBREVIATIONS = (
    "Mr|Mrs|Ms|Dr|Prof|St|Sen|Rep|Gov|Gen|Col|Lt|Sgt|Capt|Jr|Sr|Inc|Corp|Co|Ltd|Bros|No|vs|etc|Mt|Ft|"
    "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec"
)
_WORDS = re.compile(
    rf"""
      [A-Za-z]+://[^\s<>"]*[^\s<>".,;:!?)'\]]                      # a URL
    | (?:[A-Za-z]\.){{2,}} (?:[A-Za-z]{_END})? {_END} (?:-{_WORD}+)*  # U.S. and U.S.-led with their periods
    | (?<!{_WORD})(?:(?i:{_ABBREVIATIONS})|[A-Z])\.(?=\s+\S)       # Mr. and J., unless they end the text
    | {_CLITIC}                                                    # 's of Germany's
    | [Nn]['’][Tt]{_END}                                           # n't of don't
    | [@\#]?{_WORD}+?(?=[Nn]['’][Tt]{_END})                        # do of don't
    | (?:[@\#]|(?<!\S)[-+.](?=0))? {_WORD}+ (?:(?!{_CLITIC})[-.'’&/@+]{_WORD}+ | (?<=0)[,:]0+)*
    | \.{{2,}} | -{{2,}} | …+
    | \S
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Word:
    """A word and its span: the characters from `start` up to, but not including, `end`."""

    text: str
    start: int
    end: int


def choose_split_by(lengths: Mapping[int, int]) -> SplitBy:
    """Return how tagged text is split, from the number of words of each length: by character if most have length 1."""
    return "character" if lengths.get(1, 0) > _MIN_CHARACTER_SHARE * sum(lengths.values()) else "word"


def split_text(text: str, split_by: SplitBy) -> list[Word]:
    """Split a text into words, with punctuation separate as in CoNLL data, or into characters without white space."""
    spans = _clusters(text) if split_by == "character" else _words(text)
    return [Word(text[start:end], start, end) for start, end in spans]


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it has only white space, control characters and invisible ones."""
    if text[:1].isalnum():  # most texts
        return False
    return all(
        character.isspace() or unicodedata.category(character) in ("Cc", *_EXTENDING_CATEGORIES) for character in text
    )


def _words(text: str) -> Iterator[tuple[int, int]]:
    shape = []
    spans: list[tuple[int, int]] = []  # of each character of the shape
    previous_end = 0
    for start, end in _clusters(text):
        if start > previous_end:
            shape.append(" ")
            spans.append((previous_end, start))
        shape.append(_shape_character(text[start]))
        spans.append((start, end))
        previous_end = end
    for match in _WORDS.finditer("".join(shape)):
        yield spans[match.start()][0], spans[match.end() - 1][1]


def is_chinese_or_kana(character: str) -> bool:
    """Return whether a character belongs to a script in which each character is a word."""
    return _within(character, _CHINESE_AND_KANA)


def _shape_character(character: str) -> str:
    if character.isascii():
        return "0" if character.isdecimal() else character
    if is_chinese_or_kana(character):
        return "字"
    category = unicodedata.category(character)
    if category[0] == "L":
        return "X" if character.isupper() else "x"
    if category[0] in "NM":
        return "0" if category == "Nd" else "x"
    return character


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each grapheme cluster that is not white space."""
    start = None
    n_indicators = 0  # regional indicators at the end of the cluster
    for position, character in enumerate(text):
        if start is not None and not _extends(text[position - 1], character, n_indicators):
            yield start, position
            start = None
        if character.isspace():
            continue
        if _within(character, (_REGIONAL_INDICATORS,)):
            n_indicators = (n_indicators if start is not None else 0) + 1
        else:
            n_indicators = 0
        start = position if start is None else start
    if start is not None:
        yield start, len(text)


def _extends(previous: str, character: str, n_indicators: int) -> bool:
    """Return whether a character extends the grapheme cluster of the previous one (a simplified UAX 29)."""
    if character.isascii():
        return False
    category = unicodedata.category(character)
    if category in _EXTENDING_CATEGORIES or character in _EXTENDING_LETTERS or _within(character, (_SKIN_TONES,)):
        return True
    if previous == _ZERO_WIDTH_JOINER:
        return category[0] == "S"
    if _within(character, (_REGIONAL_INDICATORS,)):
        return n_indicators == 1
    if not _within(character, _JAMO):
        return False
    if _within(previous, _LEADING_JAMO):
        return True
    return _within(previous, (*_JAMO, _HANGUL_SYLLABLES)) and not _within(character, _LEADING_JAMO)


def _within(character: str, ranges: tuple[tuple[str, str], ...]) -> bool:
    return any(first <= character <= last for first, last in ranges)


@dataclass(frozen=True)
class WordTable:
    """For every token id, whether the token can continue a word and whether a word can continue after it."""

    continues_word: NDArray[np.bool_]
    may_continue: NDArray[np.bool_]
    is_continuation_byte: NDArray[np.bool_]  # a byte that is not the first of its character

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "WordTable":
        """Build the table of a tokenizer's vocabulary; each Chinese character or kana is a word of its own."""
        n_tokens = tokenizer.vocab_size
        continues_word, may_continue, is_continuation_byte = (np.zeros(n_tokens, dtype=np.bool_) for _ in range(3))
        for token_id in range(n_tokens):
            byte = tokenizer.byte_of(token_id)
            if byte is not None:
                is_continuation_byte[token_id] = 0x80 <= byte < 0xC0
            else:
                token = tokenizer.id_to_token(token_id)
                continues_word[token_id] = _is_word_character(token[0])
                may_continue[token_id] = _is_word_character(token[-1])
        return cls(continues_word, may_continue, is_continuation_byte)

    def word_ids(self, ids: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the index of the word that each token belongs to: 0, 0, 1, 2, 2, …"""
        continues_word = self.is_continuation_byte[ids[1:]] | (
            self.continues_word[ids[1:]] & self.may_continue[ids[:-1]]
        )
        return np.concatenate([np.zeros(min(1, len(ids)), dtype=np.int64), np.cumsum(~continues_word)])


def _is_word_character(character: str) -> bool:
    return character.isalnum() and not is_chinese_or_kana(character)
