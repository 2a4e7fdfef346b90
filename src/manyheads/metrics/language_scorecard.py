"""The scorecards of language models: perplexity of text, and accuracy of masked tokens."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from manyheads.errors import DataError
from manyheads.messages import Message, _
from manyheads.metrics.bootstrap import (
    N_RESAMPLES,
    Count,
    Extremes,
    ResampledSums,
    Sums,
    percentage,
    rate_extremes,
    sum_resamples,
)
from manyheads.metrics.card_sections import Figure, Figures, Generations, GenerationSample, Section
from manyheads.metrics.score import Score

_NATS, _TOKENS, _CHARACTERS, _WORDS, _BYTES = range(5)  # columns of counts of a language model
_CORRECT, _MASKED, _MASKED_NATS = range(3)  # columns of counts of a masked model
_MAX_WORD_LENGTH = 15  # characters on average; longer "words" mean that the text is written without spaces
_MAX_NATS = 700.0  # exp overflows above


@dataclass(frozen=True)
class LanguageCard:
    """How well a language model predicts a test set. `asdict` makes it JSON."""

    scores: Sequence[Score]  # lower is better for all of them
    n_texts: int  # documents, or blocks of one document
    n_tokens: int
    n_characters: int
    n_words: int
    n_bytes: int
    n_nats: float  # negative log-likelihood of the whole test set
    samples: Sequence[GenerationSample] = ()

    def sections(self) -> list[Section]:
        """Return generated samples and the size of the test set."""
        figures = [
            Figure(Message("tokens"), self.n_tokens),
            Figure(Message("characters"), self.n_characters),
            Figure(Message("words"), self.n_words),
            Figure(Message("bytes"), self.n_bytes),
        ]
        return [*([Generations(self.samples)] if self.samples else []), Figures(figures)]


def language_card(
    nats: Sequence[float],
    tokens: Sequence[int],
    characters: Sequence[int],
    words: Sequence[int],
    n_bytes: Sequence[int],
    *,
    item: Literal["documents", "blocks"] = "documents",
    context: str = "",
    samples: Sequence[GenerationSample] = (),
    n_resamples: int = N_RESAMPLES,
) -> LanguageCard:
    """Return the scorecard for the negative log-likelihoods of documents, or of the blocks of a single document.

    Intervals resample documents or blocks, so they need several of them. `context` is added to the signatures, for
    example "context:256|stride:128". Text written without spaces gets no perplexity per word.
    """
    columns = (nats, tokens, characters, words, n_bytes)
    if len({len(column) for column in columns}) > 1:
        raise ValueError("Nats, tokens, characters, words and bytes are not of the same texts.")
    if not sum(tokens):
        raise DataError(_("There is nothing to score: the test set is empty."))
    extremes = partial(_language_extremes, factors=rate_extremes(nats, tokens))
    sums = _sum_columns(columns, item, extremes, n_resamples)
    has_words = sum(words) > 0 and sum(characters) / sum(words) <= _MAX_WORD_LENGTH
    statistics: dict[str, Callable[[Sums], Sums]] = {
        "nats per character": lambda sums: _nats_per(sums, _CHARACTERS),
        "bits per byte": lambda sums: _nats_per(sums, _BYTES) / math.log(2),
        **({"perplexity per word": lambda sums: _perplexity(_nats_per(sums, _WORDS))} if has_words else {}),
        "perplexity per token": lambda sums: _perplexity(_nats_per(sums, _TOKENS)),
    }
    return LanguageCard(
        scores=[sums.score(name, statistic, *([context] if context else [])) for name, statistic in statistics.items()],
        n_texts=len(nats),
        n_tokens=sum(tokens),
        n_characters=sum(characters),
        n_words=sum(words),
        n_bytes=sum(n_bytes),
        n_nats=float(sum(nats)),
        samples=samples,
    )


@dataclass(frozen=True)
class MaskedCard:
    """How well a masked language model restores masked tokens. `asdict` makes it JSON."""

    scores: Sequence[Score]
    n_texts: int
    n_masked: int

    def sections(self) -> list[Section]:
        """Return the size of the test set."""
        figures = [
            Figure(Message("number of texts"), self.n_texts),
            Figure(Message("masked tokens"), self.n_masked),
        ]
        return [Figures(figures)]


def masked_card(
    n_correct: Sequence[float],
    n_masked: Sequence[float],
    nats: Sequence[float],
    *,
    context: str = "",
    n_resamples: int = N_RESAMPLES,
) -> MaskedCard:
    """Return the scorecard for the masked tokens of each text: how many are correct, how many there are, their nats."""
    if not sum(n_masked):
        raise DataError(_("There is nothing to score: the test set is empty."))
    extremes = partial(_masked_extremes, factors=rate_extremes(nats, n_masked))
    sums = _sum_columns((n_correct, n_masked, nats), "documents", extremes, n_resamples)
    details = [context] if context else []
    return MaskedCard(
        scores=[
            sums.score(
                "accuracy of masked tokens", lambda sums: percentage(sums[..., _CORRECT], sums[..., _MASKED]), *details
            ),
            sums.score(
                "perplexity of masked tokens",
                lambda sums: _perplexity(np.asarray(sums[..., _MASKED_NATS] / np.maximum(sums[..., _MASKED], 1.0))),
                *details,
            ),
        ],
        n_texts=len(n_masked),
        n_masked=round(sum(n_masked)),
    )


def _language_extremes(mean: Sums, factors: Sequence[float]) -> list[Sums]:
    """Texts of mean size that are harder or easier than the mean by these factors."""
    return [np.array([factor * mean[_NATS], *mean[1:]]) for factor in factors]


def _masked_extremes(mean: Sums, factors: Sequence[float]) -> list[Sums]:
    """Texts whose masked tokens are all wrong, or all right."""
    masked, nats = mean[_MASKED], mean[_MASKED_NATS]
    return [np.array([0.0, masked, factors[0] * nats]), np.array([masked, masked, factors[1] * nats])]


def _sum_columns(columns: Sequence[Sequence[float]], item: str, extremes: Extremes, n_resamples: int) -> ResampledSums:
    counts: list[Count] = [
        (text, column, float(amount)) for column, amounts in enumerate(columns) for text, amount in enumerate(amounts)
    ]
    return sum_resamples(counts, len(columns[0]), len(columns), extremes, n_resamples, item)


def _nats_per(sums: Sums, column: int) -> Sums:
    return np.asarray(sums[..., _NATS] / np.maximum(sums[..., column], 1.0))


def _perplexity(nats: Sums) -> Sums:
    return np.exp(np.minimum(nats, _MAX_NATS))
