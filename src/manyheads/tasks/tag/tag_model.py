"""The model of tagging: a Transformer reads tokens, and each word, a word or a character, gets scores of its tags."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.data import pad
from manyheads.metrics import IntentRule
from manyheads.model import Transformer
from manyheads.settings import raise_faults, type_faults
from manyheads.tasks.ngrams import NgramTagger
from manyheads.tasks.pooling import Pool, Pooling
from manyheads.tasks.tag.crf import CRF, States
from manyheads.text.tokenizer import BOS, PAD

_HASH_MODULUS = (1 << 61) - 1  # a prime, and as much as fits into an id


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """How tags are chosen and learnt, and whether each text has an intent besides."""

    kind: Literal["tag"] = "tag"
    decoder: Literal["constrained", "crf"] = "crf"  # whether the steps from tag to tag are learnt, or only valid
    head_dropout: float = 0.2  # of what the tags are chosen by
    ngrams: int = 0  # up to so many words in a row also count by themselves, beside the Transformer; 0: none do
    ngram_dropout: float = 0.3  # of those runs
    swapping: float = 0.0  # of training spans, the share put in place of by another span of the same label
    smoothing: float = 0.0  # ε of label smoothing; with "crf" only of intents
    consistency: float = 0.0  # R-Drop's α: how much two passes with different dropout have to agree; 0: one pass

    intents: bool = False  # whether rows have a label besides their tags
    pooling: Pooling = "mean-max"  # how the tokens' vectors become the one that the intent is told by
    intent_weight: float = 0.3  # of the intent's loss beside that of the tags
    intent_rule: IntentRule = "strict"  # whether "a#b" is right only as a whole, or "a" is right too
    separator: str = "#"

    def __post_init__(self) -> None:
        raise_faults(type_faults(self, "task.") or self._faults())

    def _faults(self) -> list[str]:
        faults = [
            f"task.{name} = {getattr(self, name)} must be at least 0 and less than 1."
            for name in ("head_dropout", "ngram_dropout", "smoothing")
            if not 0.0 <= getattr(self, name) < 1.0
        ]
        if not 0 <= self.ngrams <= 5:
            faults.append(f"task.ngrams = {self.ngrams} must be at least 0 and at most 5.")
        if not 0.0 <= self.swapping <= 1.0:
            faults.append(f"task.swapping = {self.swapping} must be at least 0 and at most 1.")
        faults += [
            f"task.{name} = {getattr(self, name)} must be at least 0 and finite."
            for name in ("consistency", "intent_weight")
            if not 0.0 <= getattr(self, name) < math.inf
        ]
        return faults


class Tagger(nn.Module):
    """A Transformer that reads tokens; a word is the mean of its tokens, and one linear layer scores its tags."""

    def __init__(self, model: Transformer, states: States, n_intents: int, settings: TagSettings) -> None:
        super().__init__()
        self.model = model
        self.dropout = nn.Dropout(settings.head_dropout)
        self.output = nn.Linear(model.settings.width, len(states))
        self.crf = CRF(states, learned=settings.decoder == "crf")
        self.ngrams = NgramTagger(len(states), settings.ngrams, settings.ngram_dropout) if settings.ngrams else None
        if settings.intents:
            self.pool = Pool(settings.pooling, model.settings.width)
            self.intent = nn.Linear(self.pool.width, n_intents)

    def forward(
        self, ids: Int[Tensor, "B S"], words: Int[Tensor, "B S"], word_hashes: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T K"], Float[Tensor, "B C"] | None]:
        """The scores of each word's tags, and of each text's intents; `words` says whose tokens these are.

        What belongs to no word (BOS, padding) has the number of words; `word_hashes` are those of `WordBatch`.
        """
        is_real: Bool[Tensor, "B S"] = ids != PAD
        n_words = word_hashes.size(1)
        hidden = self.model.encode(ids, is_real)
        pooled = self.dropout(_mean_by(hidden, words, n_words + 1)[:, :n_words])
        intents = self.intent(self.dropout(self.pool(hidden, is_real))) if hasattr(self, "intent") else None
        scores = self.output(pooled)
        return scores if self.ngrams is None else scores + self.ngrams(word_hashes), intents


def _mean_by(x: Float[Tensor, "B S W"], owners: Int[Tensor, "B S"], n_owners: int) -> Float[Tensor, "B O W"]:
    """The mean of each owner's vectors; of who has none, zeros."""
    flat = (owners + n_owners * torch.arange(len(owners), device=owners.device)[:, None]).flatten()
    size = n_owners * len(owners)
    sums = x.new_zeros(size, x.size(-1)).index_add(0, flat, x.flatten(0, 1))
    counts = x.new_zeros(size).index_add(0, flat, x.new_ones(len(flat)))
    return (sums / counts.clamp(min=1.0)[:, None]).unflatten(0, (len(owners), n_owners))


@dataclass(frozen=True)
class WordBatch:
    """Texts as ids, which word each id is of, numbers to know words by, and which of them are real."""

    ids: Int[Tensor, "B S"]
    words: Int[Tensor, "B S"]
    word_hashes: Int[Tensor, "B T"]
    is_real: Bool[Tensor, "B T"]

    @classmethod
    def of(cls, texts: Sequence[Sequence[Sequence[int]]], device: torch.device) -> "WordBatch":
        """Texts given as the tokens of each of their words; BOS is put before them."""
        n_words = [len(text) for text in texts]
        longest = max(n_words)
        ids = pad([[number for word in text for number in word] for text in texts], before=BOS)
        words = np.full_like(ids, longest)
        for row, text in zip(words, texts, strict=True):
            owners = np.repeat(np.arange(len(text)), [len(word) for word in text])
            row[1 : 1 + len(owners)] = owners
        word_hashes = pad([list(map(_hash_word, text)) for text in texts])
        is_real = np.arange(longest) < np.array(n_words)[:, None]
        return cls(*(torch.from_numpy(array).to(device) for array in (ids, words, word_hashes, is_real)))


def _hash_word(tokens: Sequence[int]) -> int:
    """A number to know a word by: the same tokens, the same number; 0 is that of none."""
    name = 1
    for token in tokens:
        name = (name * 1_000_003 + token) % _HASH_MODULUS
    return name
