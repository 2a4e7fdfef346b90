"""Lens examples of the tag task, whose model reads a text word by word."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from manyheads.text.tokens.tokenizer import Token
from manyheads.text.tokens.words import split_text


def tokenize_words(task: Any, texts: Sequence[str]) -> list[list[Token]]:
    """Return the tokens of each text, tokenized word by word, with their offsets in the text."""
    rows = [split_text(text, task.split_by) for text in texts]
    words = list({word.text for row in rows for word in row})
    tokens_of = dict(zip(words, task.tokenizer.tokenize_batch(words), strict=True))
    return [
        [
            replace(token, start=token.start + word.start, end=token.end + word.start)
            for word in row
            for token in tokens_of[word.text]
        ]
        for row in rows
    ]
