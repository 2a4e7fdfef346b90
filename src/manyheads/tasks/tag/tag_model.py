"""The tagger module: a Transformer reads tokens, and each word (or character) gets scores for its tags."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.data import pad
from manyheads.model import Transformer
from manyheads.tasks.ngrams import NgramTagger
from manyheads.tasks.pooling import Pool
from manyheads.tasks.tag.crf import CRF, States
from manyheads.tasks.tag.settings import TagSettings
from manyheads.text.tokens.tokenizer import BOS, PAD

_HASH_MODULUS = (1 << 61) - 1  # a prime that fits in 64 bits


class Tagger(nn.Module):
    """A Transformer over tokens; a word is the mean of its tokens, and a linear layer scores its tags."""

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
        """The scores of each word's tags and of each text's intents.

        `words` is the index of the word that each token belongs to; tokens of no word (BOS, padding) have the number of
        words. `word_hashes` are those of `WordBatch`.
        """
        is_real: Bool[Tensor, "B S"] = ids != PAD
        n_words = word_hashes.size(1)
        hidden = self.model.encode(ids, is_real)
        pooled = self.dropout(_mean_by(hidden, words, n_words + 1)[:, :n_words])
        intents = self.intent(self.dropout(self.pool(hidden, is_real))) if hasattr(self, "intent") else None
        scores = self.output(pooled)
        return scores if self.ngrams is None else scores + self.ngrams(word_hashes), intents


def _mean_by(x: Float[Tensor, "B S W"], owners: Int[Tensor, "B S"], n_owners: int) -> Float[Tensor, "B O W"]:
    """The mean of each owner's vectors; zeros for an owner without any."""
    flat = (owners + n_owners * torch.arange(len(owners), device=owners.device)[:, None]).flatten()
    size = n_owners * len(owners)
    sums = x.new_zeros(size, x.size(-1)).index_add(0, flat, x.flatten(0, 1))
    counts = x.new_zeros(size).index_add(0, flat, x.new_ones(len(flat)))
    return (sums / counts.clamp(min=1.0)[:, None]).unflatten(0, (len(owners), n_owners))


@dataclass(frozen=True)
class WordBatch:
    """Texts as ids, the word index of each id, the hash of each word, and which words are not padding."""

    ids: Int[Tensor, "B S"]
    words: Int[Tensor, "B S"]
    word_hashes: Int[Tensor, "B T"]
    is_real: Bool[Tensor, "B T"]

    @classmethod
    def of(cls, texts: Sequence[Sequence[Sequence[int]]], device: torch.device) -> "WordBatch":
        """Make a batch of texts, given as the token ids of each word; BOS is prepended."""
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
    """A hash of a word's tokens; 0 is reserved for padding."""
    value = 1
    for token in tokens:
        value = (value * 1_000_003 + token) % _HASH_MODULUS
    return value
