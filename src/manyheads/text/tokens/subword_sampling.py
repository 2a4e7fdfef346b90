"""Subword sampling (subword regularization and BPE dropout) that is reproducible from a seed, in every process.

SentencePiece's own sampling is not reproducible: since 0.2.2 it mixes a process-specific number into every seed, so a
run resumed in a new process would see other tokens. The distributions here are the same as SentencePiece's.
"""

import math
import random
import re
from bisect import bisect
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate

import sentencepiece

from manyheads.text.tokens.tokenizer_training import METASPACE

_UNKNOWN_PENALTY = 10.0  # of SentencePiece: the score of an unknown character below that of the rarest token
_MAX_CACHED_LENGTH = 24  # longer words rarely repeat
_MAX_CACHED_CHARACTERS = 100_000  # about 40 MB

# For each position in a word, the tokens that end there: their start positions, ids and cumulative weights.
Lattice = list[tuple[list[int], list[list[int]], list[float]]]


class SubwordSampler:
    """Splits text into tokens of a SentencePiece model at random."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor, whole: Sequence[str] = ()) -> None:
        """Read the vocabulary; the tokens `whole` are never split and never merged with others."""
        special = (processor.is_control, processor.is_unknown, processor.is_byte, processor.is_unused)
        self.whole: dict[str, int] = {token: processor.piece_to_id(token) for token in whole}
        self._is_whole = re.compile(f"({'|'.join(map(re.escape, whole))})") if whole else None
        ordinary = [
            number
            for number in range(processor.vocab_size())
            if not any(kind(number) for kind in special) and number not in self.whole.values()
        ]
        self.ids: dict[str, int] = {processor.id_to_piece(number): number for number in ordinary}
        self.scores: dict[str, float] = {token: processor.get_score(number) for token, number in self.ids.items()}
        self.bytes: list[int] = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
        self.longest = max(map(len, self.ids), default=1)
        self.is_bpe = all(score == round(score) for score in self.scores.values())  # unigram: log-probabilities
        self._unknown = min(self.scores.values(), default=0.0) - _UNKNOWN_PENALTY
        self._lattices: dict[tuple[str, float], Lattice] = {}
        self._n_cached = 0

    def sample(self, text: str, strength: float, rng: random.Random, *, add_prefix: bool) -> list[int]:
        """Return the token ids of a random split of a text without ▁; `add_prefix` adds a space before the text."""
        if not text:
            return []
        split = self._merge if self.is_bpe else self._sample_path
        spaced = (METASPACE if add_prefix else "") + text.replace(" ", METASPACE)
        # A space occurs only at the start of a token, so each word is split independently.
        first, *rest = spaced.split(METASPACE)
        words = [first, *(METASPACE + word for word in rest)]
        if self._is_whole is not None:
            words = [part for word in words for part in self._is_whole.split(word)]
        return [
            number
            for word in words
            if word
            for number in ([self.whole[word]] if word in self.whole else split(word, strength, rng.random))
        ]

    def _sample_path(self, text: str, strength: float, draw: Callable[[], float]) -> list[int]:
        """Sample a split with probability proportional to its own probability to the power of `strength`.

        The tokens are drawn from the last to the first (forward filtering, backward sampling).
        """
        lattice = self._lattice(text, strength)
        path: list[list[int]] = []
        position = len(text)
        while position:
            starts, ids, sums = lattice[position]
            choice = min(bisect(sums, draw() * sums[-1]), len(sums) - 1) if len(sums) > 1 else 0
            path.append(ids[choice])
            position = starts[choice]
        return [number for part in reversed(path) for number in part]

    def _lattice(self, text: str, strength: float) -> Lattice:
        cached = self._lattices.get((text, strength))
        if cached is not None:
            return cached
        totals = [0.0]  # for each position, the log of the total weight of all splits up to it
        lattice: Lattice = [([], [], [])]
        for end in range(1, len(text) + 1):
            starts = [start for start in range(max(0, end - self.longest), end) if text[start:end] in self.ids]
            weights = [totals[start] + strength * self.scores[text[start:end]] for start in starts]
            ids = [[self.ids[text[start:end]]] for start in starts]
            if end - 1 not in starts:
                starts.append(end - 1)
                weights.append(totals[end - 1] + strength * self._unknown)
                ids.append(self._byte_ids(text[end - 1]))
            largest = max(weights)
            sums = list(accumulate(math.exp(weight - largest) for weight in weights))
            totals.append(largest + math.log(sums[-1]))
            lattice.append((starts, ids, sums))
        if len(text) <= _MAX_CACHED_LENGTH:
            if self._n_cached + len(text) > _MAX_CACHED_CHARACTERS:
                self._lattices.clear()
                self._n_cached = 0
            self._lattices[text, strength] = lattice
            self._n_cached += len(text)
        return lattice

    def _merge(self, text: str, strength: float, draw: Callable[[], float]) -> list[int]:
        """Merge characters into tokens, best merge first, and skip each merge with probability `strength`."""
        parts: list[str] = list(text)  # a part merged into its left neighbor becomes empty
        after = list(range(1, len(parts) + 1))
        before = list(range(-1, len(parts) - 1))

        def candidates(lefts: Sequence[int]) -> list[tuple[float, int, str]]:
            pairs = [
                (left, parts[left] + parts[after[left]]) for left in lefts if left >= 0 and after[left] < len(parts)
            ]
            return [(-self.scores[pair], left, pair) for left, pair in pairs if pair in self.scores]

        heap = candidates(range(len(parts)))
        heapify(heap)
        while heap:
            _, left, pair = heappop(heap)
            right = after[left]
            if not parts[left] or right >= len(parts) or parts[left] + parts[right] != pair:
                continue  # one of the two parts was merged with another part in the meantime
            if draw() < strength:
                continue
            parts[left], parts[right] = pair, ""
            after[left] = after[right]
            if after[left] < len(parts):
                before[after[left]] = left
            for candidate in candidates([before[left], left]):
                heappush(heap, candidate)
        tokens = (part for part in parts if part)
        return [
            number for token in tokens for number in ([self.ids[token]] if token in self.ids else self._byte_ids(token))
        ]

    def _byte_ids(self, text: str) -> list[int]:
        return [self.bytes[byte] for byte in text.encode()]
