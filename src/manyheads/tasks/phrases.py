"""Phrases: what a text's pieces, pairs and triples of pieces say about its label, each by itself.

A linear model beside the Transformer (Wang & Manning 2012): a phrase's evidence for a label is how much more often it
stands in texts with that label than in others, times a gain that is learnt. On few texts it is hard to beat, and what
it does not see, as order and distance, is what the Transformer does.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.text.tokenizer import BEGIN, PAD

_MOST_BUCKETS = 1 << 18
_MOST_NUMBERS = 1 << 21  # of evidence: with many labels there are fewer buckets
_SCALE = 0.1  # of the sum of evidence: phrases overlap, and so say the same thing several times
_RARE = 2  # a phrase seen less often says nothing
_NOTHING = 0  # the bucket of no phrase


class Phrases(nn.Module):
    """Evidence of hashed phrases of up to `longest` pieces; each phrase counts once a text."""

    evidence: Tensor

    def __init__(self, n_labels: int, longest: int) -> None:
        super().__init__()
        self.longest = longest
        self.n_buckets = min(_MOST_BUCKETS, 1 << (max(_MOST_NUMBERS // n_labels, 1024).bit_length() - 1))
        self.gain = nn.Parameter(torch.full((self.n_buckets,), 0.5))
        self.bias = nn.Parameter(torch.zeros(n_labels))
        self.register_buffer("evidence", torch.zeros(self.n_buckets, n_labels))

    def forward(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        """The logits of each label."""
        places = self.buckets(ids)
        said = self.evidence[places] * self.gain[places][..., None]
        return _SCALE * said.sum(1) + self.bias

    def buckets(self, ids: Int[Tensor, "B S"]) -> Int[Tensor, "B N"]:
        """Where each text's phrases are kept; a second copy of one, and what is not real, is nothing."""
        is_real = (ids != PAD) & (ids != BEGIN)
        found, mixed = [], torch.zeros_like(ids)
        for length in range(1, min(self.longest, ids.size(1)) + 1):
            n_starts = ids.size(1) - length + 1
            # One more piece: multiply by an odd number, add, and let the high digits reach the low ones.
            mixed = (mixed[:, :n_starts] + ids[:, length - 1 :] + length) * 0x5851F42D4C957F2D
            mixed = mixed ^ ((mixed >> 29) & 0x7FFFFFFF)
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
