"""`Surfaces`: the bytes of UTF-8 that each token id stands for, and the ids with which a given text can go on."""

from bisect import bisect_left
from collections.abc import Sequence


class Surfaces:
    """The bytes of every token id; empty for special tokens, which stand for no text.

    A placeholder stands for bytes that no text contains. A byte token is used only where no other token fits, as the
    tokenizer does.
    """

    def __init__(self, surfaces: Sequence[bytes], byte_ids: Sequence[int] = (), *, has_prefix: bool = True) -> None:
        self.of = tuple(surfaces)
        self.has_prefix = has_prefix  # a space is added before a text
        self._byte_ids = {self.of[token_id]: token_id for token_id in byte_ids}
        is_byte = set(byte_ids)
        named = sorted((surface, number) for number, surface in enumerate(self.of) if surface and number not in is_byte)
        self._sorted = [own for own, _ in named]
        self._ids = [token_id for _, token_id in named]
        self._longest = max(map(len, self._sorted), default=0)

    @staticmethod
    def placeholder(number: int) -> bytes:
        """The bytes of the placeholder with this number, counted from 0; no UTF-8 text contains 0xFF."""
        return bytes((0xFF, 0x80 + number // 64, 0x80 + number % 64))

    def beginning(self, text: bytes) -> list[int]:
        """The ids with which this text can begin: they stand for its first bytes, or for all of it."""
        found: list[int] = []
        for length in range(1, min(len(text), self._longest) + 1):
            own = text[:length]
            index = bisect_left(self._sorted, own)
            while index < len(self._sorted) and self._sorted[index] == own:
                found.append(self._ids[index])
                index += 1
        if not found and text[:1] in self._byte_ids:
            found.append(self._byte_ids[text[:1]])
        return found

    def exceeding(self, text: bytes) -> list[int]:
        """The ids that stand for this text and more."""
        index = bisect_left(self._sorted, text)
        found = []
        while index < len(self._sorted) and self._sorted[index].startswith(text):
            if len(self._sorted[index]) > len(text):
                found.append(self._ids[index])
            index += 1
        return found
