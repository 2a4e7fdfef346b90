import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.text.tokens.tokenizer import Tokenizer, TokenizerSettings
from manyheads.text.tokens.words import SplitBy, Word, WordTable, choose_split_by, is_blank, split_text

# Text that means trouble: accents, joiners, flags, jamo, white space of all sorts, points and quotes.
ODD = st.text(
    st.sampled_from(
        "aZ0.,:'’-/@#&+$字か한\u1112\u1161\u11ab é\u0301\u200d\u200b\ufeff♂\ufe0f👩🏽🇩🇪\u3000\xa0\n\x1cกำक्षि…"
    )
)


def words(text: str) -> list[str]:
    return [word.text for word in split_text(text, "word")]


def characters(text: str) -> list[str]:
    return [word.text for word in split_text(text, "character")]


@settings(deadline=None)
@given(st.one_of(st.text(), ODD), st.sampled_from(["word", "character"]))
def test_words_cover_the_text_and_do_not_overlap(text: str, kind: SplitBy) -> None:
    last = 0
    for word in split_text(text, kind):
        assert last <= word.start < word.end
        assert not text[last : word.start].strip()
        assert word.text == text[word.start : word.end]
        assert not any(map(str.isspace, word.text))
        last = word.end
    assert not text[last:].strip()


@settings(deadline=None)
@given(st.one_of(st.text(), ODD))
def test_words_do_not_split_grapheme_clusters(text: str) -> None:
    assert {word.start for word in split_text(text, "word")} <= {word.start for word in split_text(text, "character")}


@pytest.mark.parametrize("text", ["a", " .", "\u200b床", "\u200d👍", "\ufffd", "\ue000", "\u0301e"])
def test_text_with_a_visible_character_is_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_spans_refer_to_the_raw_text() -> None:
    assert split_text(" a  (b)\n", "word") == [Word("a", 1, 2), Word("(", 4, 5), Word("b", 5, 6), Word(")", 6, 7)]
    assert split_text("", "word") == split_text(" \n", "character") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left (in May).", "He left ( in May ) ."),
        ("Don't say it won’t: it's I'd", "Do n't say it wo n’t : it 's I 'd"),
        ("O'Brien's l'homme rock'n'roll 'so'", "O'Brien 's l'homme rock'n'roll ' so '"),
        ("The U.S. and U.S.-led U.S.A, e.g. here", "The U.S. and U.S.-led U.S.A , e.g. here"),
        ("Mr. J. Smith of St. Louis, Jan. 5.", "Mr. J. Smith of St. Louis , Jan. 5 ."),
        ("It is plan B. Mist. No.", "It is plan B. Mist . No ."),
        ("3.5% of $1,000.50 at 10:30, 6-4: .500 +44", "3.5 % of $ 1,000.50 at 10:30 , 6-4 : .500 +44"),
        ("AT&T all-rounder and/or me@a.b.com", "AT&T all-rounder and/or me@a.b.com"),
        ("(see https://x.org/a?b=1,2). @you #tag", "( see https://x.org/a?b=1,2 ) . @you #tag"),
        ('Well... no -- yes!? "x"', 'Well ... no -- yes ! ? " x "'),
        ("我在Beijing的1,000人，東京タワー", "我 在 Beijing 的 1,000 人 ， 東 京 タ ワ ー"),
        ("नमस्ते दुनिया। 한국어 Straße, naïve cafe\u0301s", "नमस्ते दुनिया । 한국어 Straße , naïve cafe\u0301s"),
        ("ok👍🏽👩\u200d👧🇩🇪🇫🇷!", "ok 👍🏽 👩\u200d👧 🇩🇪 🇫🇷 !"),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert words(text) == expected.split(" ")


@pytest.mark.parametrize(
    "expected",
    [
        ["a", "1", ".", "北", "。"],
        ["e\u0301", "n\u0303\u0301", "क्", "षि", "กำ"],
        ["👩\u200d👧\u200d👦", "👍🏽", "❤\ufe0f", "🏳\ufe0f\u200d🌈", "1\ufe0f\u20e3"],
        ["🇩🇪", "🇫🇷", "🇩", "a", "🇩🇪"],
        ["한", "\u1112\u1161\u11ab", "\u1100\u1161", "\u1100\u1161"],
    ],
)
def test_grapheme_clusters(expected: list[str]) -> None:
    assert characters("".join(expected)) == expected
    assert characters("\u3000".join(expected) + " ") == expected


@pytest.mark.parametrize("fragment", ["a", "a.", "a-", "'", "n't", "0,", "http://", "\u0301", "🇩", ".", "(", "Mr.  "])
def test_time_is_linear_in_length(fragment: str) -> None:
    started = time.process_time()
    split_text(fragment * 20_000, "word")
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("lengths", "kind"), [({1: 990, 4: 10}, "character"), ({1: 300, 2: 400, 7: 300}, "word"), ({}, "word")]
)
def test_choose_split_by(lengths: dict[int, int], kind: SplitBy) -> None:
    assert choose_split_by(lengths) == kind


LINES = ["the unhappy cat, 小猫 sat.", "unhappily the dog sat on 小狗 and\nthe mat"] * 40


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_word_ids(kind: str) -> None:
    tokenizer = Tokenizer.train(LINES, TokenizerSettings(kind=kind, vocab_size=330))
    table = WordTable.of(tokenizer)
    text = "the unhappily sat,\nthe 小猫 é😀x"
    tokens = tokenizer.tokenize(text)
    numbers = table.word_ids(np.array([token.id for token in tokens])).tolist()
    words: dict[int, str] = {}
    for number, token in zip(numbers, tokens, strict=True):
        start = max(token.start, sum(map(len, words.values())))
        words[number] = words.get(number, "") + text[start : token.end]
    assert "".join(words.values()) == text
    found = [word.strip(" ") for word in words.values() if word.strip(" ")]
    assert [word for word in found if word.isascii() and word.isalpha()] == ["the", "unhappily", "sat", "the", "x"]
    assert {"小", "小猫"} & set(found), "a token of its own, as trained"
    assert "😀" in found


def test_word_ids_of_no_tokens() -> None:
    table = WordTable.of(Tokenizer.train(LINES, TokenizerSettings(kind="bpe", vocab_size=330)))
    assert table.word_ids(np.array([], dtype=np.int64)).tolist() == []
