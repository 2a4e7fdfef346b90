"""Phrases: what runs of tokens say about a text's label, and runs of words about a word's tag, each by itself.

Of labels (`NgramClassifier`): a linear model beside the Transformer (Wang & Manning 2012). A phrase's evidence for a label is
how much more often it stands in texts with that label than in others, times a weight that is learnt. On few texts it is
hard to beat, and what it does not see, as order and distance, is what the Transformer does. Of tags (`NgramTagger`):
what a CRF without a network goes by, learnt weights of the word, its neighbours and their runs.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.text.tokenizer import BOS, PAD

_MOST_BUCKETS = 1 << 18
_MOST_NUMBERS = 1 << 21  # of evidence: with many labels there are fewer buckets
_SCALE = 0.1  # of the sum of evidence: phrases overlap, and so say the same thing several times
_RARE = 2  # a phrase seen less often says nothing
_NOTHING = 0  # the bucket of no phrase


def _count_buckets(n_answers: int) -> int:
    return min(_MOST_BUCKETS, 1 << (max(_MOST_NUMBERS // n_answers, 1024).bit_length() - 1))


def _mix(numbers: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """Each number scattered: multiplied by an odd one, its high digits let reach the low ones."""
    mixed = numbers * 0x5851F42D4C957F2D
    return mixed ^ ((mixed >> 29) & 0x7FFFFFFF)


class NgramClassifier(nn.Module):
    """Evidence of hashed phrases of up to `max_n` tokens; each phrase counts once a text."""

    evidence: Tensor

    def __init__(self, n_labels: int, max_n: int) -> None:
        super().__init__()
        self.max_n = max_n
        self.n_buckets = _count_buckets(n_labels)
        self.weight = nn.Parameter(torch.full((self.n_buckets,), 0.5))
        self.bias = nn.Parameter(torch.zeros(n_labels))
        self.register_buffer("evidence", torch.zeros(self.n_buckets, n_labels))

    def forward(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        """The logits of each label."""
        places = self.buckets(ids)
        said = self.evidence[places] * self.weight[places][..., None]
        return _SCALE * said.sum(1) + self.bias

    def buckets(self, ids: Int[Tensor, "B S"]) -> Int[Tensor, "B N"]:
        """Where each text's phrases are kept; a second copy of one, and what is not real, is nothing."""
        is_real = (ids != PAD) & (ids != BOS)
        found, mixed = [], torch.zeros_like(ids)
        for length in range(1, min(self.max_n, ids.size(1)) + 1):
            n_starts = ids.size(1) - length + 1
            mixed = _mix(mixed[:, :n_starts] + ids[:, length - 1 :] + length)
            whole = is_real[:, :n_starts] & is_real[:, length - 1 :]
            found.append(torch.where(whole, 1 + mixed % (self.n_buckets - 1), _NOTHING))
        rows = torch.cat(found, dim=1).sort(1).values
        again = nn.functional.pad(rows[:, 1:] == rows[:, :-1], (1, 0))
        return rows.masked_fill(again, _NOTHING)

    @torch.no_grad()
    def count(self, batches: Iterable[tuple[Int[Tensor, "B S"], Float[Tensor, "B C"]]]) -> None:
        """Take the evidence from texts and their labels: log P(phrase | label) − log P(phrase | any other)."""
        having, lacking = torch.ones_like(self.evidence), torch.ones_like(self.evidence)
        for ids, wanted in batches:
            places = self.buckets(ids)
            for counts, rows in ((having, wanted), (lacking, 1.0 - wanted)):
                counts.index_add_(0, places.flatten(), rows.repeat_interleave(places.size(1), 0))
        having[_NOTHING], lacking[_NOTHING] = 1.0, 1.0
        evidence = (having / having.sum(0)).log() - (lacking / lacking.sum(0)).log()
        is_common = (having + lacking)[:, :1] - 2.0 >= _RARE
        self.evidence.copy_(evidence * is_common)
        self.evidence[_NOTHING] = 0.0


class NgramTagger(nn.Module):
    """Learnt evidence for a word's tag: of every run of up to `max_n` words that it stands in, and where in it."""

    is_common: Tensor  # 1 of runs that were seen often enough to say something, 0 of others

    def __init__(self, n_states: int, max_n: int, dropout: float) -> None:
        super().__init__()
        self.max_n = max_n
        self.dropout = dropout
        self.n_buckets = _count_buckets(n_states)
        self.evidence = nn.Parameter(torch.zeros(self.n_buckets, n_states))
        self.register_buffer("is_common", torch.zeros(self.n_buckets))

    def forward(self, word_hashes: Int[Tensor, "B T"]) -> Float[Tensor, "B T K"]:
        """The scores of each word's tags; `word_hashes` are numbers that tell words apart, 0 where there is none."""
        places = self.buckets(word_hashes)
        weights = self.is_common[places]
        if self.training and self.dropout:
            weights = weights * (torch.rand_like(weights) >= self.dropout) / (1.0 - self.dropout)
        said = nn.functional.embedding_bag(
            places.flatten(0, 1), self.evidence, per_sample_weights=weights.flatten(0, 1), mode="sum"
        )
        return said.unflatten(0, places.shape[:2])

    def buckets(self, word_hashes: Int[Tensor, "B T"]) -> Int[Tensor, "B T N"]:
        """Where the runs that each word stands in are kept."""
        n_words, found = word_hashes.size(1), []
        padded = nn.functional.pad(word_hashes, (self.max_n - 1, self.max_n - 1))
        mixed = torch.zeros_like(padded)
        for length in range(1, self.max_n + 1):
            n_starts = padded.size(1) - length + 1
            mixed = _mix(mixed[:, :n_starts] + padded[:, length - 1 :] + length)
            for place in range(length):  # of the word in the run
                start = self.max_n - 1 - place
                found.append(_mix(mixed[:, start : start + n_words] + place) % self.n_buckets)
        return torch.stack(found, dim=-1)

    @torch.no_grad()
    def count(self, batches: Iterable[Int[Tensor, "B T"]]) -> None:
        """Learn which runs there are more than once: the others would only be learnt by heart."""
        counts = torch.zeros_like(self.is_common)
        for word_hashes in batches:
            places = self.buckets(word_hashes)[word_hashes != 0].flatten()
            counts.index_add_(0, places, torch.ones_like(places, dtype=counts.dtype))
        self.is_common.copy_(counts >= _RARE)
