"""Which pieces of a vocabulary make up words, told from the pieces alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.text.tokenizer import Tokenizer
from manyheads.text.units import is_chinese_or_kana


@dataclass(frozen=True)
class WordTable:
    """Of every id: whether a word may go on with it, whether a word may go on after it, whether it must go on."""

    goes_on: NDArray[np.bool_]
    is_open: NDArray[np.bool_]
    is_inner: NDArray[np.bool_]  # a byte that is not the first of its character

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "WordTable":
        """That of a tokenizer's vocabulary. Each Chinese character or kana is a word, since no space ends it."""
        n_pieces = tokenizer.vocabulary
        goes_on, is_open, is_inner = (np.zeros(n_pieces, dtype=np.bool_) for _ in range(3))
        for piece_id in range(n_pieces):
            byte = tokenizer.byte_of(piece_id)
            if byte is not None:
                is_inner[piece_id] = 0x80 <= byte < 0xC0
            else:
                piece = tokenizer.piece(piece_id)
                goes_on[piece_id], is_open[piece_id] = _is_of_a_word(piece[0]), _is_of_a_word(piece[-1])
        return cls(goes_on, is_open, is_inner)

    def number(self, ids: NDArray[np.integer]) -> NDArray[np.int64]:
        """0, 0, 1, 2, 2 …: which word of a text each of its pieces belongs to."""
        goes_on = self.is_inner[ids[1:]] | (self.goes_on[ids[1:]] & self.is_open[ids[:-1]])
        return np.concatenate([np.zeros(min(1, len(ids)), dtype=np.int64), np.cumsum(~goes_on)])


def _is_of_a_word(character: str) -> bool:
    return character.isalnum() and not is_chinese_or_kana(character)
