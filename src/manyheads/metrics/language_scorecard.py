"""The scorecard of a language model: how surprised it is by text, for each token, word, character and byte."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from manyheads.errors import DataError
from manyheads.metrics.bootstrap import Count, Sums, sum_resamples
from manyheads.metrics.score import Score

_NATS, _TOKENS, _CHARACTERS, _WORDS, _BYTES = range(5)  # columns of counts
_LONGEST_WORDS = 15  # characters, on average: where they are longer, words are not set apart by spaces
_MOST_NATS = 700.0  # e to the power of more is no number


@dataclass(frozen=True)
class GenerationSample:
    """A beginning and how a model went on."""

    prompt: str
    text: str


@dataclass(frozen=True)
class LanguageCard:
    """How well a model foretells a test set. `asdict` makes it JSON."""

    scores: Sequence[Score]  # of all of them, lower is better
    n_texts: int  # documents, or blocks of one
    n_tokens: int
    n_characters: int
    n_words: int
    n_bytes: int
    n_nats: float  # all that the model was surprised by
    samples: Sequence[GenerationSample] = ()


def language_card(
    nats: Sequence[float],
    tokens: Sequence[int],
    characters: Sequence[int],
    words: Sequence[int],
    n_bytes: Sequence[int],
    *,
    what: Literal["documents", "blocks"] = "documents",
    how: str = "",
    samples: Sequence[GenerationSample] = (),
    n_resamples: int = 1000,
) -> LanguageCard:
    """What a model's negative log-probabilities come to; of each document, or of each block of a single one.

    Intervals are of documents or blocks drawn again, so they need a few of them. `how` goes into the signatures: the
    context that each token was foretold from, as "context:256|stride:128". A figure for each word is left out of
    text that is written without spaces.
    """
    columns = (nats, tokens, characters, words, n_bytes)
    if len({len(column) for column in columns}) > 1:
        raise ValueError("Nats, tokens, characters, words and bytes are not of the same texts.")
    if not sum(tokens):
        raise DataError("There is nothing to score: the test set is empty.")
    counts: list[Count] = [
        (text, column, float(amount)) for column, amounts in enumerate(columns) for text, amount in enumerate(amounts)
    ]
    sums = sum_resamples(counts, len(nats), len(columns), n_resamples, what)
    has_words = sum(words) > 0 and sum(characters) / sum(words) <= _LONGEST_WORDS
    figures: dict[str, Callable[[Sums], Sums]] = {
        "nats per character": lambda sums: _per(sums, _CHARACTERS),
        "bits per byte": lambda sums: _per(sums, _BYTES) / math.log(2),
        **({"perplexity per word": lambda sums: _exponential(_per(sums, _WORDS))} if has_words else {}),
        "perplexity per token": lambda sums: _exponential(_per(sums, _TOKENS)),
    }
    return LanguageCard(
        scores=[sums.score(name, figure, *([how] if how else [])) for name, figure in figures.items()],
        n_texts=len(nats),
        n_tokens=sum(tokens),
        n_characters=sum(characters),
        n_words=sum(words),
        n_bytes=sum(n_bytes),
        n_nats=float(sum(nats)),
        samples=samples,
    )


def _per(sums: Sums, column: int) -> Sums:
    return np.asarray(sums[..., _NATS] / np.maximum(sums[..., column], 1.0))


def _exponential(nats: Sums) -> Sums:
    return np.exp(np.minimum(nats, _MOST_NATS))
