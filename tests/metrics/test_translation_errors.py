"""Copies, repetitions and lengths."""

import pytest

from manyheads.metrics import copies, length_ratio, repetitions


def test_length_ratio_counts_the_tokens_of_bleu() -> None:
    assert length_ratio(["ein Hund."], ["ein großer Hund bellt laut."], "de") == pytest.approx(3 / 6)
    assert length_ratio(["那只狗。"], ["那只大狗在叫。"], "zh") == pytest.approx(4 / 7)
    assert length_ratio(["", ""], ["a", "b"], "en") == 0


def test_copies_may_differ_in_surrounding_space() -> None:
    assert copies(["Berlin", "a b", "a b", "", "A"], [" Berlin ", "a b", "a  b", "", "a"]) == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("language", "hypothesis", "reference", "is_one"),
    [
        ("en", "the the the cat", "the cat", True),
        ("en", "the the cat", "the cat", False),
        ("en", "a cat and a cat and a cat and", "a cat", True),
        ("en", "one two three four one two three four one two three four", "x", True),
        ("en", "a b c d e a b c d e a b c d e", "x", False),  # phrases of five words are not checked
        ("en", "no no no!", "never never never!", False),  # the reference repeats too
        ("en", "no no no!", "never", True),
        ("en", "wait...", "wait", False),
        ("en", "100 000 000", "x", False),
        ("en", "well , , , , yes", "x", True),
        ("zh", "我歌手歌手歌手。", "我把信寄给了他。", True),
        ("zh", "那些了了。", "那些问题很简单。", False),
        ("zh", "哈哈哈，你好。", "哈哈哈哈，您好。", False),
        ("ja", "1000円です", "x", False),
        ("en", "", "", False),
    ],
)
def test_repetitions(language: str, hypothesis: str, reference: str, is_one: bool) -> None:
    assert repetitions([hypothesis], [reference], language) == [is_one]
