"""A linear model of n-grams that tags beside a Transformer.

`NgramTagger` has the features of a CRF without a network: learned weights of a word, its neighbors and the n-grams they
form.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

_MAX_BUCKETS = 1 << 18
_MAX_NUMBERS = 1 << 21  # numbers of evidence: with many labels there are fewer buckets
_MIN_COUNT = 2  # n-grams seen less often are ignored


def _count_buckets(n_outputs: int) -> int:
    return min(_MAX_BUCKETS, 1 << (max(_MAX_NUMBERS // n_outputs, 1024).bit_length() - 1))


def _mix(numbers: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """Hash each number: multiply by an odd constant and mix the high bits into the low ones."""
    mixed = numbers * 0x5851F42D4C957F2D
    return mixed ^ ((mixed >> 29) & 0x7FFFFFFF)


class NgramTable(nn.Module):
    """A table of evidence by hashed n-gram; most of its rows are zero, because most hashes never occur."""

    evidence: Tensor


def sparse_tables(module: nn.Module) -> set[str]:
    """Return the names of the weights in a module of which most rows are zero by nature."""
    return {f"{name}.evidence" for name, part in module.named_modules() if isinstance(part, NgramTable)}


class NgramTagger(NgramTable):
    """Learned evidence for a word's tag: of every n-gram of up to `max_n` words around it, by its position in it."""

    is_common: Tensor  # 1 for n-grams that occur at least `_MIN_COUNT` times, else 0

    def __init__(self, n_states: int, max_n: int, dropout: float) -> None:
        super().__init__()
        self.max_n = max_n
        self.dropout = dropout
        self.n_buckets = _count_buckets(n_states)
        self.evidence = nn.Parameter(torch.zeros(self.n_buckets, n_states))
        self.register_buffer("is_common", torch.zeros(self.n_buckets))

    def forward(self, word_hashes: Int[Tensor, "B T"]) -> Float[Tensor, "B T K"]:
        """The scores of each word's tags; `word_hashes` are hashes of the words, 0 for padding."""
        buckets = self.buckets(word_hashes)
        weights = self.is_common[buckets]
        if self.training and self.dropout:
            weights = weights * (torch.rand_like(weights) >= self.dropout) / (1.0 - self.dropout)
        scores = nn.functional.embedding_bag(
            buckets.flatten(0, 1), self.evidence, per_sample_weights=weights.flatten(0, 1), mode="sum"
        )
        return scores.unflatten(0, buckets.shape[:2])

    def buckets(self, word_hashes: Int[Tensor, "B T"]) -> Int[Tensor, "B T N"]:
        """The buckets of the n-grams around each word."""
        n_words, buckets = word_hashes.size(1), []
        padded = nn.functional.pad(word_hashes, (self.max_n - 1, self.max_n - 1))
        mixed = torch.zeros_like(padded)
        for length in range(1, self.max_n + 1):
            n_starts = padded.size(1) - length + 1
            mixed = _mix(mixed[:, :n_starts] + padded[:, length - 1 :] + length)
            for offset in range(length):  # of the word in the n-gram
                start = self.max_n - 1 - offset
                buckets.append(_mix(mixed[:, start : start + n_words] + offset) % self.n_buckets)
        return torch.stack(buckets, dim=-1)

    @torch.no_grad()
    def count(self, batches: Iterable[Int[Tensor, "B T"]]) -> None:
        """Count the n-grams; those that occur once are ignored, since they would only be memorized."""
        counts = torch.zeros_like(self.is_common)
        for word_hashes in batches:
            buckets = self.buckets(word_hashes)[word_hashes != 0].flatten()
            counts.index_add_(0, buckets, torch.ones_like(buckets, dtype=counts.dtype))
        self.is_common.copy_(counts >= _MIN_COUNT)
