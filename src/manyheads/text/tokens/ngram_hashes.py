"""Hashes of the word and character n-grams of texts: the features of a linear classifier, without a vocabulary.

Every n-gram is a substring of the normalized text, and its hash is a polynomial in its characters modulo 2^64. All
hashes of many texts come from one running sum, so that a few array operations replace a loop over n-grams.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_WORDS = 2  # of a word n-gram
MAX_CHARACTERS = 5  # of a character n-gram; a space counts if it is the first or the last

_PUNCTUATION = re.compile(r"([^\w\s])")
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that its powers have inverses
_INVERSE = np.uint64(pow(int(_BASE), -1, 1 << 64))
_WORD_SALT = np.uint64(0xD1B54A32D192ED03)
_SPACE, _END = ord(" "), 0


def normalized(text: str) -> str:
    """The text as n-grams see it: NFKC, lower case, punctuation apart, one space before, between and after words."""
    words = _PUNCTUATION.sub(r" \1 ", unicodedata.normalize("NFKC", text).lower().replace("\0", " ")).split()
    return f" {' '.join(words)} " if words else ""


@dataclass(frozen=True)
class NgramCounts:
    """How often each n-gram occurs in each text: parallel arrays, sorted by text."""

    texts: NDArray[np.int64]  # the index of the text
    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]
    are_words: NDArray[np.bool_]  # whether the n-gram consists of words

    @classmethod
    def of(cls, texts: Sequence[str]) -> "NgramCounts":
        """Count the n-grams of texts."""
        joined = chr(_END).join([*map(normalized, texts), ""])
        characters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        owners = np.cumsum(characters == _END) - (characters == _END)
        found = [(owners[starts], hashes, are_words) for starts, hashes, are_words in _ngrams(characters)]
        rows = np.concatenate([part[0] for part in found]).astype(np.int64)
        hashes = np.concatenate([part[1] for part in found])
        are_words = np.concatenate([np.full(len(part[1]), part[2]) for part in found])
        order = np.lexsort((hashes, rows))
        rows, hashes, are_words = rows[order], hashes[order], are_words[order]
        is_first = np.ones(len(rows), dtype=np.bool_)
        is_first[1:] = (rows[1:] != rows[:-1]) | (hashes[1:] != hashes[:-1])
        starts = np.flatnonzero(is_first)
        counts = np.diff(np.append(starts, len(rows)))
        return cls(rows[starts], hashes[starts], counts, are_words[starts])


def _ngrams(characters: NDArray[np.uint32]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64], bool]]:
    """Yield the start and the hash of each n-gram, for one length after the other, and whether they are of words."""
    n = len(characters)
    powers = np.full(n + 1, _BASE, dtype=np.uint64)
    powers[0] = 1
    inverses = np.full(n + 1, _INVERSE, dtype=np.uint64)
    inverses[0] = 1
    powers, inverses = np.cumprod(powers, dtype=np.uint64), np.cumprod(inverses, dtype=np.uint64)
    sums = np.zeros(n + 1, dtype=np.uint64)
    np.cumsum(_scrambled(characters.astype(np.uint64)) * powers[:n], dtype=np.uint64, out=sums[1:])

    def hash_between(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
        return _scrambled((sums[ends] - sums[starts]) * inverses[starts])

    is_space = (characters == _SPACE) | (characters == _END)
    n_ends = np.concatenate([[0], np.cumsum(characters == _END)])
    n_spaces = np.concatenate([[0], np.cumsum(is_space)])
    for length in range(1, MAX_CHARACTERS + 1):
        starts = np.arange(max(0, n - length + 1))
        inside = n_spaces[starts + length] - n_spaces[starts]
        at_edges = is_space[starts].astype(np.int64) + (is_space[starts + length - 1] if length > 1 else 0)
        whole = (n_ends[starts + length] == n_ends[starts]) & (inside == at_edges) & (inside < length)
        starts = starts[whole]
        yield starts, hash_between(starts, starts + length), False
    is_start = ~is_space & np.append(True, is_space[:-1])[:n]
    word_starts = np.flatnonzero(is_start)
    word_ends = np.flatnonzero(~is_space & np.append(is_space[1:], True)[:n]) + 1
    for length in range(1, MAX_WORDS + 1):
        starts, ends = word_starts[: len(word_starts) - length + 1], word_ends[length - 1 :]
        same_text = n_ends[starts] == n_ends[ends]
        starts, ends = starts[same_text], ends[same_text]
        yield starts, hash_between(starts, ends) ^ _WORD_SALT, True


def _scrambled(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number (the finalizer of SplitMix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
