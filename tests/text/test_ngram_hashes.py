"""Hashed n-grams: the same as those found by slicing the text."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.text.tokens.ngram_hashes import MAX_CHARACTERS, MAX_WORDS, NgramCounts, normalized


def slow_ngrams(text: str) -> Counter[tuple[str, str]]:
    """The reference: slices of the normalized text."""
    counts: Counter[tuple[str, str]] = Counter()
    for word in normalized(text).split():
        for length in range(1, MAX_CHARACTERS + 1):
            padded = f" {word} "
            for start in range(len(padded) - length + 1):
                if padded[start : start + length].strip():
                    counts["characters", padded[start : start + length]] += 1
    words = normalized(text).split()
    for length in range(1, MAX_WORDS + 1):
        for start in range(len(words) - length + 1):
            counts["words", " ".join(words[start : start + length])] += 1
    return counts


def counts_of(texts: list[str]) -> list[Counter[int]]:
    found = NgramCounts.of(texts)
    rows: list[Counter[int]] = [Counter() for _ in texts]
    for text, ngram, count in zip(found.texts.tolist(), found.hashes.tolist(), found.counts.tolist(), strict=True):
        assert ngram not in rows[text]  # each n-gram once, with its count
        rows[text][ngram] = count
    return rows


@given(st.lists(st.text(alphabet="abA ,.\n一二ｗé\0", max_size=20), max_size=6))
def test_ngrams_are_those_of_slices(texts: list[str]) -> None:
    for text, found in zip(texts, counts_of(texts), strict=True):
        assert sorted(found.values()) == sorted(slow_ngrams(text).values())


def test_the_same_ngram_has_the_same_hash_everywhere() -> None:
    one, other, third = counts_of(["the cat sat", "a cat", "一二三"])
    shared = slow_ngrams("the cat sat") & slow_ngrams("a cat")
    assert len(set(one) & set(other)) == len(shared) > 0
    assert not set(one) & set(third)


def test_a_word_and_its_characters_are_different_ngrams() -> None:
    (found,) = counts_of(["ab"])
    assert len(found) == len(slow_ngrams("ab"))  # "ab" as a word, and as two characters


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Ｈello, World!", " hello , world ! "), ("  \t", ""), ("don't", " don ' t "), ("ＡＢＣ一", " abc一 ")],
)
def test_normalized_text(text: str, expected: str) -> None:
    assert normalized(text) == expected


def test_no_text() -> None:
    assert len(NgramCounts.of([]).texts) == 0
    assert len(NgramCounts.of(["", " "]).texts) == 0
