"""`SeenWords`: the words of a training text, stored as hashes, so that words a model has never seen can be named.

A word is a run of letters, marks and digits with at least one letter; upper and lower case are the same word. In
scripts written without spaces each character is a word. Hashes take 4 bytes per word and do not spell out the text.
A new word shares its hash with a seen one, and is then not named, in at most `MAX_WORDS` / 2³² = 0.02 % of cases. A
seen word is always recognized.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from manyheads.text.tokens.words import is_chinese_or_kana

MAX_WORDS = 1 << 20  # a text with more different words has no `SeenWords`: a bundle grows by at most 4 MiB
_N_CACHED = 10_000  # words whose result is remembered
_APOSTROPHES = "'’"
_OTHER_SCRIPTS_WITHOUT_SPACES = (("\u0e00", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff"))  # Thai to Khmer


class _CharacterTable(dict[int, str]):
    """For `str.translate`: what becomes of each character, so that `split` finds the words."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if is_chinese_or_kana(character) or any(a <= character <= b for a, b in _OTHER_SCRIPTS_WITHOUT_SPACES):
            kept = f" {character} "
        elif unicodedata.category(character)[0] in "LMN":
            kept = character
        else:
            kept = "'" if character in _APOSTROPHES else " "
        self[code] = kept
        return kept


_TABLE = _CharacterTable()


def words_of(text: str) -> list[str]:
    """Return the words of a text in order; numbers are not words."""
    return list(_clean(_split(text)))


def _split(text: str) -> list[str]:
    return unicodedata.normalize("NFC", text).translate(_TABLE).split()


def _clean(parts: Iterable[str]) -> Iterator[str]:
    """Yield words without quotation marks around them; numbers are left out."""
    for part in parts:
        word = part.strip("'")
        if any(map(str.isalpha, word)):
            yield word


@dataclass(frozen=True, eq=False)
class SeenWords:
    """The set of words of a text."""

    hashes: NDArray[np.uint32]  # sorted

    @classmethod
    def of(cls, texts: Iterable[str]) -> "SeenWords | None":
        """Collect the words of texts; None if there are more than `MAX_WORDS`."""
        words: set[str] = set()
        for text in texts:
            words.update(_clean(set(_split(text.casefold())) - words))
            if len(words) > MAX_WORDS:
                return None
        words.update([part for word in words for part in word.split("'")])
        return cls._bounded(np.unique(np.array([_hash(word) for word in words], dtype=np.uint32)))

    def __len__(self) -> int:
        return len(self.hashes)

    def __contains__(self, word: str) -> bool:
        """Whether a word was seen, or all parts of it that an apostrophe joins."""
        folded = unicodedata.normalize("NFC", word.casefold())  # "ΐ" folds to three characters
        return self._has(folded) or all(map(self._has, folded.split("'")))

    def unseen(self, text: str) -> list[str]:
        """Return the words of a text that were not seen, in order and each once."""
        words = [word for part in _split(text) if (word := self._unseen_word(part))]
        if len(words) < 2:
            return words
        new: dict[str, str] = {}
        for word in words:
            new.setdefault(word.casefold(), word)
        return list(new.values())

    def union(self, other: "SeenWords") -> "SeenWords | None":
        """Return the words of both texts; None if there are more than `MAX_WORDS`."""
        return self._bounded(np.union1d(self.hashes, other.hashes))

    @classmethod
    def _bounded(cls, hashes: NDArray[np.uint32]) -> "SeenWords | None":
        return cls(hashes) if len(hashes) <= MAX_WORDS else None

    @cached_property
    def _has(self) -> Callable[[str], bool]:
        return lru_cache(_N_CACHED)(self._search)  # most words of a text are common

    @cached_property
    def _unseen_word(self) -> Callable[[str], str]:
        """The word in a part of a text if it was not seen, otherwise an empty string."""

        def unseen_word(part: str) -> str:
            return next((word for word in _clean([part]) if word not in self), "")

        return lru_cache(_N_CACHED)(unseen_word)

    def _search(self, word: str) -> bool:
        code = _hash(word)
        index = int(np.searchsorted(self.hashes, np.uint32(code)))
        return index < len(self.hashes) and int(self.hashes[index]) == code


def _hash(word: str) -> int:
    # "surrogatepass": a lone surrogate is refused elsewhere, with a message.
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")
