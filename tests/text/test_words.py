"""Words told from pieces."""

import numpy as np
import pytest

from manyheads.text.tokenizer import Tokenizer, TokenizerSettings
from manyheads.text.words import WordTable

LINES = ["the unhappy cat, 小猫 sat.", "unhappily the dog sat on 小狗 and\nthe mat"] * 40


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_pieces_are_put_together_to_words(kind: str) -> None:
    tokenizer = Tokenizer.learn(LINES, TokenizerSettings(kind=kind, vocabulary=330))
    table = WordTable.of(tokenizer)
    text = "the unhappily sat,\nthe 小猫 é😀x"
    pieces = tokenizer.pieces(text)
    numbers = table.number(np.array([piece.id for piece in pieces])).tolist()
    words: dict[int, str] = {}
    for number, piece in zip(numbers, pieces, strict=True):
        start = max(piece.start, sum(map(len, words.values())))
        words[number] = words.get(number, "") + text[start : piece.end]
    assert "".join(words.values()) == text
    found = [word.strip(" ") for word in words.values() if word.strip(" ")]
    assert [word for word in found if word.isascii() and word.isalpha()] == ["the", "unhappily", "sat", "the", "x"]
    assert {"小", "小猫"} & set(found), "a piece of its own, as learnt"
    assert "😀" in found


def test_nothing_has_no_words() -> None:
    table = WordTable.of(Tokenizer.learn(LINES, TokenizerSettings(kind="bpe", vocabulary=330)))
    assert table.number(np.array([], dtype=np.int64)).tolist() == []
