"""`TextStreamer`: the text of tokens as they come, given out as soon as nothing can take it back."""

from collections.abc import Sequence

from manyheads.text.tokenizer import Tokenizer

_NEAR = 16  # tokens: what is further back does not change how the next are decoded


class TextStreamer:
    """Ids in, text out. Held back is what may yet become something else: half a character, the start of a stop.

    `before` are the ids of the text that is continued. When `is_stopped`, a stop was written: neither it nor
    what came after it in the same token was given out, and nothing more should be added.
    """

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int] = (), stops: Sequence[str] = ()) -> None:
        self.tokenizer = tokenizer
        self.stops = tuple(stops)
        self.is_stopped = False
        self._before = list(before[-_NEAR:])
        self._pending: list[int] = []  # ids whose last character is not whole
        self._held = ""  # text that may be the beginning of a stop

    def add(self, token_id: int) -> str:
        """The text that is certain by one more token."""
        self._pending.append(token_id)
        return "" if self._is_inside_a_character() else self._settle()

    def finish(self) -> str:
        """What was held back, when no more comes; half a character is none."""
        held, self._held, self._pending = self._held, "", []
        return held

    def _settle(self) -> str:
        self._held += self.tokenizer.decode_continuation(self._before, self._pending)
        self._before, self._pending = [*self._before, *self._pending][-_NEAR:], []
        position = first_stop(self._held, self.stops)
        if position is not None:
            self.is_stopped = True
            text, self._held = self._held[:position], ""
            return text
        kept = len(self._held) - _overlap(self._held, self.stops)
        text, self._held = self._held[:kept], self._held[kept:]
        return text

    def _is_inside_a_character(self) -> bool:
        """Whether the newest bytes begin a UTF-8 character that they do not end."""
        for n_bytes, token_id in enumerate(reversed(self._pending[-3:]), start=1):
            byte = self.tokenizer.byte_of(token_id)
            if byte is None or byte < 0x80:
                return False
            if byte >= 0xC0:  # which says how many bytes the character has
                return n_bytes < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
        return False


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Where the first stop begins in a text, if there is any."""
    return min((position for position in map(text.find, stops) if position >= 0), default=None)


def _overlap(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end of a text are the beginning of a stop."""
    longest = min(len(text), max(map(len, stops), default=1) - 1)
    for size in range(longest, 0, -1):
        if any(stop.startswith(text[-size:]) for stop in stops):
            return size
    return 0
