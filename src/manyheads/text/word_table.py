"""Which tokens of a vocabulary make up words, told from the tokens alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.text.tokenizer import Tokenizer
from manyheads.text.word_splitter import is_chinese_or_kana


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
