import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.text.tokens import seen_words
from manyheads.text.tokens.seen_words import SeenWords, words_of

TEXTS = ["Two cats are sleeping.", "The teacher's book isn't red; l’homme reads it!", "我爱猫。"]


def seen(texts: list[str] = TEXTS) -> SeenWords:
    words = SeenWords.of(texts)
    assert words is not None
    return words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two cats, “well-known”: yes!", "Two cats well known yes"),
        ("Don't say 'so' to O’Brien's", "Don't say so to O'Brien's"),
        ("In 2024, 3.5 % of the A380s; 3rd", "In of the A380s 3rd"),
        ("我爱abc猫。", "我 爱 abc 猫"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("nai\u0308ve na\u00efve", "na\u00efve na\u00efve"),
        ("🙂 -- 12:30 _", ""),
    ],
)
def test_words_of_a_text(text: str, expected: str) -> None:
    assert words_of(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two CATS, Sleeping", []),
        ("The xylophone and the dog, the Xylophone", ["xylophone", "and", "dog"]),
        ("teacher isn’t l'homme's", []),  # the parts of a word with apostrophes were seen
        ("The dog's book", ["dog's"]),
        ("我爱狗", ["狗"]),
        ("17 🙂 !", []),
    ],
)
def test_unseen_words_are_named_once_in_order(text: str, expected: list[str]) -> None:
    assert seen().unseen(text) == expected


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(), max_size=5))
def test_no_word_of_the_training_text_is_unseen(texts: list[str]) -> None:
    words = seen(texts)
    assert [word for text in texts for word in words.unseen(text)] == []
    union = words.union(seen())
    assert union is not None and union.unseen(" ".join(TEXTS)) == []


def test_few_new_words_share_the_hash_of_a_seen_one() -> None:
    words = seen([" ".join(f"seen{number}" for number in range(20_000))])
    assert len(words) == 20_000
    new = [f"new{number}" for number in range(20_000)]
    assert len(new) - len(words.unseen(" ".join(new))) <= 2  # 20,000² / 2³² = 0.1 expected


def test_hashes_are_the_same_in_every_process() -> None:
    code = "from manyheads.text.tokens.seen_words import SeenWords; print(SeenWords.of(['a cat']).hashes.tolist())"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(seen(["Cat a"]).hashes.tolist())


def test_too_many_words_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_words, "MAX_WORDS", 3)
    assert SeenWords.of(["one two two", "three 4 5 6"]) is not None
    assert SeenWords.of(["one two", "three", "four"]) is None


def test_union_stays_sorted() -> None:
    union = seen().union(seen(["dog", "猫"]))
    assert union is not None and "dog" in union
    assert np.all(np.diff(union.hashes.astype(np.int64)) > 0)


def test_a_letter_that_folds_to_several_is_the_same_letter() -> None:
    words = seen(["τον Μαΐου, ΰ"])
    assert words.unseen("Μαΐου ΜΑΪ́ΟΥ ΰ") == []
    assert words.unseen("Μαΐων") == ["Μαΐων"]


def test_parts_and_other_texts_count_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_words, "MAX_WORDS", 3)
    assert SeenWords.of(["don't won't"]) is None  # don't, won't, don, won, t
    assert seen(["one two"]).union(seen(["two three"])) is not None
    assert seen(["one two"]).union(seen(["three four"])) is None  # a bundle with more could not be loaded
