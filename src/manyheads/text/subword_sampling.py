"""Subword sampling that a seed repeats, in this process and in every later one.

SentencePiece's own sampling cannot be repeated: since 0.2.2 it mixes a number of the process into every seed, so a
run that goes on in a new process would see other tokens. The distributions here are the same as its own.
"""

import math
import random
from bisect import bisect
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate

import sentencepiece

from manyheads.text.tokenizer_training import METASPACE

_UNKNOWN_PENALTY = 10.0  # SentencePiece's: how much less likely than the rarest token an unknown character is
_CACHED_LENGTH = 24  # longer stretches seldom come again
_CACHED = 100_000  # characters in all: some 40 MB

# Of each position in a stretch, the tokens that end there: where they begin, their ids, their weights summed up.
Lattice = list[tuple[list[int], list[list[int]], list[float]]]


class SubwordSampler:
    """The vocabulary of a SentencePiece model, for splitting text at random."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        special = (processor.is_control, processor.is_unknown, processor.is_byte, processor.is_unused)
        ordinary = [number for number in range(processor.vocab_size()) if not any(kind(number) for kind in special)]
        self.ids: dict[str, int] = {processor.id_to_piece(number): number for number in ordinary}
        self.scores: dict[str, float] = {token: processor.get_score(number) for token, number in self.ids.items()}
        self.bytes: list[int] = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        self.longest = max(map(len, self.ids), default=1)
        self.is_bpe = all(score == round(score) for score in self.scores.values())  # ranks; unigram's are logarithms
        self._unknown = min(self.scores.values(), default=0.0) - _UNKNOWN_PENALTY
        self._lattices: dict[tuple[str, float], Lattice] = {}
        self._n_cached = 0

    def sample(self, text: str, strength: float, rng: random.Random, *, begins: bool) -> list[int]:
        """The ids of a text without ▁, split by `chance`; `begins`: SentencePiece puts a space before it."""
        if not text:
            return []
        split = self._merge if self.is_bpe else self._sample_path
        spaced = (METASPACE if begins else "") + text.replace(" ", METASPACE)
        # No token goes on after a space, so that each word is split by itself.
        first, *words = spaced.split(METASPACE)
        stretches = [first, *(METASPACE + word for word in words)]
        return [number for stretch in stretches if stretch for number in split(stretch, strength, rng.random)]

    def _sample_path(self, text: str, strength: float, draw: Callable[[], float]) -> list[int]:
        """One of all splits, drawn by its probability to the power of `strength`: from the end to the beginning."""
        lattice = self._lattice(text, strength)
        found: list[list[int]] = []
        position = len(text)
        while position:
            starts, ids, sums = lattice[position]
            choice = min(bisect(sums, draw() * sums[-1]), len(sums) - 1) if len(sums) > 1 else 0
            found.append(ids[choice])
            position = starts[choice]
        return [number for part in reversed(found) for number in part]

    def _lattice(self, text: str, strength: float) -> Lattice:
        known = self._lattices.get((text, strength))
        if known is not None:
            return known
        totals = [0.0]  # of each position, the logarithm of the summed weight of all ways there
        lattice: Lattice = [([], [], [])]
        for end in range(1, len(text) + 1):
            starts = [start for start in range(max(0, end - self.longest), end) if text[start:end] in self.ids]
            ways = [totals[start] + strength * self.scores[text[start:end]] for start in starts]
            ids = [[self.ids[text[start:end]]] for start in starts]
            if end - 1 not in starts:
                starts.append(end - 1)
                ways.append(totals[end - 1] + strength * self._unknown)
                ids.append(self._byte_ids(text[end - 1]))
            largest = max(ways)
            sums = list(accumulate(math.exp(way - largest) for way in ways))
            totals.append(largest + math.log(sums[-1]))
            lattice.append((starts, ids, sums))
        if len(text) <= _CACHED_LENGTH:
            if self._n_cached + len(text) > _CACHED:
                self._lattices.clear()
                self._n_cached = 0
            self._lattices[text, strength] = lattice
            self._n_cached += len(text)
        return lattice

    def _merge(self, text: str, strength: float, draw: Callable[[], float]) -> list[int]:
        """Merges from characters up, best first, each left out with the probability `strength`."""
        parts: list[str] = list(text)  # a part that was merged into the one before it is empty
        after = list(range(1, len(parts) + 1))
        before = list(range(-1, len(parts) - 1))

        def candidates(lefts: Sequence[int]) -> list[tuple[float, int, str]]:
            pairs = [
                (left, parts[left] + parts[after[left]]) for left in lefts if left >= 0 and after[left] < len(parts)
            ]
            return [(-self.scores[pair], left, pair) for left, pair in pairs if pair in self.scores]

        agenda = candidates(range(len(parts)))
        heapify(agenda)
        while agenda:
            _, left, pair = heappop(agenda)
            right = after[left]
            if not parts[left] or right >= len(parts) or parts[left] + parts[right] != pair:
                continue  # one of the two has been merged otherwise meanwhile
            if draw() < strength:
                continue
            parts[left], parts[right] = pair, ""
            after[left] = after[right]
            if after[left] < len(parts):
                before[after[left]] = left
            for candidate in candidates([before[left], left]):
                heappush(agenda, candidate)
        tokens = (part for part in parts if part)
        return [
            number for token in tokens for number in ([self.ids[token]] if token in self.ids else self._byte_ids(token))
        ]

    def _byte_ids(self, text: str) -> list[int]:
        return [self.bytes[byte] for byte in text.encode()]
