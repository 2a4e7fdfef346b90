"""Raw text as words, words or characters, each with its position in the text: what a tagger is asked about.

A word never splits what is seen as one character (a letter and its accents, an emoji made of several), no two words
overlap, and together they hold every character that is not white space.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from manyheads.text.tokenizer import Tokenizer

SplitBy = Literal["word", "character"]

_NEARLY_ALL = 0.95
_JOINER = "\u200d"
_SPECIAL_TOKENS = ("Mn", "Me", "Mc", "Cf")  # accents, vowel signs, variation selectors; signs that are not seen
_OTHER_MARKS = "\u0e33\u0eb3\uff9e\uff9f"  # letters by category, but written onto the one before
_SKIN = ("\U0001f3fb", "\U0001f3ff")
_FLAG = ("\U0001f1e6", "\U0001f1ff")
_SYLLABLES = ("\uac00", "\ud7a3")
_JAMO = (("\u1100", "\u11ff"), ("\ua960", "\ua97c"), ("\ud7b0", "\ud7fb"))
_FIRST_JAMO = (("\u1100", "\u115f"), ("\ua960", "\ua97c"))
# Scripts that put no space between words; each character is a word. (Thai and its neighbours stay whole.)
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

# Words are found in the shape of a text: one sign for each seen character, so that accents and emoji are no concern.
# Latin letters stand for themselves, other letters are x or X, digits 0, Chinese 字, punctuation is as it is.
_WORD = r"[A-Za-z0_]"
_END = rf"(?!{_WORD})"
_CLITIC = rf"['’](?i:s|m|d|re|ve|ll){_END}"
_SHORT = (
    "Mr|Mrs|Ms|Dr|Prof|St|Sen|Rep|Gov|Gen|Col|Lt|Sgt|Capt|Jr|Sr|Inc|Corp|Co|Ltd|Bros|No|vs|etc|Mt|Ft|"
    "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec"
)
_WORDS = re.compile(
    rf"""
      [A-Za-z]+://[^\s<>"]*[^\s<>".,;:!?)'\]]                      # an address in the web
    | (?:[A-Za-z]\.){{2,}} (?:[A-Za-z]{_END})? {_END} (?:-{_WORD}+)*  # U.S. and U.S.-led with their points
    | (?<!{_WORD})(?:(?i:{_SHORT})|[A-Z])\.(?=\s+\S)               # Mr. and J., unless they end the text
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
    """The characters of a text from `start` up to, not including, `end`."""

    text: str
    start: int
    end: int


def choose_split_by(lengths: Mapping[int, int]) -> SplitBy:
    """What the words of tagged text are, told by how many of them have each length; a few long ones are borne."""
    return "character" if lengths.get(1, 0) > _NEARLY_ALL * sum(lengths.values()) else "word"


def split_text(text: str, split_by: SplitBy) -> list[Word]:
    """The words of a text, its punctuation apart as CoNLL has it, or all its characters but white space."""
    spans = _clusters(text) if split_by == "character" else _words(text)
    return [Word(text[start:end], start, end) for start, end in spans]


def _words(text: str) -> Iterator[tuple[int, int]]:
    shape = []
    spans: list[tuple[int, int]] = []  # of each sign of the shape
    last = 0
    for start, end in _clusters(text):
        if start > last:
            shape.append(" ")
            spans.append((last, start))
        shape.append(_shape_character(text[start]))
        spans.append((start, end))
        last = end
    for match in _WORDS.finditer("".join(shape)):
        yield spans[match.start()][0], spans[match.end() - 1][1]


def is_chinese_or_kana(character: str) -> bool:
    """Whether it is of a script that puts no space between words, and a word by itself."""
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
    """Where each character as it is seen begins and ends; white space is none."""
    start = None
    flags = 0  # that end the cluster
    for position, character in enumerate(text):
        if start is not None and not _joins(text[position - 1], character, flags):
            yield start, position
            start = None
        if character.isspace():
            continue
        flags = (flags if start is not None else 0) + 1 if _within(character, (_FLAG,)) else 0
        start = position if start is None else start
    if start is not None:
        yield start, len(text)


def _joins(last: str, character: str, flags: int) -> bool:
    """Whether a character is seen as one with the last: a plain form of the rules of Unicode (UAX 29)."""
    if character.isascii():
        return False
    category = unicodedata.category(character)
    if category in _SPECIAL_TOKENS or character in _OTHER_MARKS or _within(character, (_SKIN,)):
        return True
    if last == _JOINER:
        return category[0] == "S"
    if _within(character, (_FLAG,)):
        return flags == 1
    if not _within(character, _JAMO):
        return False
    return _within(last, _FIRST_JAMO) or (_within(last, (*_JAMO, _SYLLABLES)) and not _within(character, _FIRST_JAMO))


def _within(character: str, ranges: tuple[tuple[str, str], ...]) -> bool:
    return any(first <= character <= last for first, last in ranges)


@dataclass(frozen=True)
class WordTable:
    """Of every id: whether a word may go on with it, whether a word may go on after it, whether it must go on."""

    continues_word: NDArray[np.bool_]
    may_continue: NDArray[np.bool_]
    is_continuation_byte: NDArray[np.bool_]  # a byte that is not the first of its character

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "WordTable":
        """That of a tokenizer's vocabulary. Each Chinese character or kana is a word, since no space ends it."""
        n_tokens = tokenizer.vocab_size
        continues_word, may_continue, is_continuation_byte = (np.zeros(n_tokens, dtype=np.bool_) for _ in range(3))
        for token_id in range(n_tokens):
            byte = tokenizer.byte_of(token_id)
            if byte is not None:
                is_continuation_byte[token_id] = 0x80 <= byte < 0xC0
            else:
                token = tokenizer.id_to_token(token_id)
                continues_word[token_id], may_continue[token_id] = (
                    _is_word_character(token[0]),
                    _is_word_character(token[-1]),
                )
        return cls(continues_word, may_continue, is_continuation_byte)

    def word_ids(self, ids: NDArray[np.integer]) -> NDArray[np.int64]:
        """0, 0, 1, 2, 2 …: which word of a text each of its tokens belongs to."""
        continues_word = self.is_continuation_byte[ids[1:]] | (
            self.continues_word[ids[1:]] & self.may_continue[ids[:-1]]
        )
        return np.concatenate([np.zeros(min(1, len(ids)), dtype=np.int64), np.cumsum(~continues_word)])


def _is_word_character(character: str) -> bool:
    return character.isalnum() and not is_chinese_or_kana(character)
