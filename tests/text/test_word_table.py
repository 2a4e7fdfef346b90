"""Words told from tokens."""

import numpy as np
import pytest

from manyheads.text.tokenizer import Tokenizer, TokenizerSettings
from manyheads.text.word_table import WordTable

LINES = ["the unhappy cat, 小猫 sat.", "unhappily the dog sat on 小狗 and\nthe mat"] * 40


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_tokens_are_put_together_to_words(kind: str) -> None:
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
    assert {"小", "小猫"} & set(found), "a token of its own, as learnt"
    assert "😀" in found


def test_nothing_has_no_words() -> None:
    table = WordTable.of(Tokenizer.train(LINES, TokenizerSettings(kind="bpe", vocab_size=330)))
    assert table.word_ids(np.array([], dtype=np.int64)).tolist() == []
