"""`TextStreamer`: decodes generated tokens incrementally and returns text as soon as it is final."""

from collections.abc import Sequence

from manyheads.text.tokens.tokenizer import Tokenizer

_N_CONTEXT_TOKENS = 16  # earlier tokens do not affect how the next ones are decoded


class TextStreamer:
    """Takes token ids one by one and returns their text, up to the first stop string.

    Text that is not final is held back: an incomplete character, or the start of a possible stop string. `before` are
    the ids of the text that is continued. `is_stopped` becomes true when a stop string was generated; neither the stop
    string nor the text after it is returned, and no more tokens should be added.
    """

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int] = (), stops: Sequence[str] = ()) -> None:
        self.tokenizer = tokenizer
        self.stops = tuple(stops)
        self.is_stopped = False
        self._before = list(before[-_N_CONTEXT_TOKENS:])
        self._pending: list[int] = []  # ids whose last character is incomplete
        self._held = ""  # text that may be the start of a stop string

    def add(self, token_id: int) -> str:
        """Add one token and return the text that is now final."""
        self._pending.append(token_id)
        return "" if self.tokenizer.ends_inside_character(self._pending) else self._decode_pending()

    def finish(self) -> str:
        """Return the text that was held back; an incomplete character is dropped."""
        held, self._held, self._pending = self._held, "", []
        return held

    def _decode_pending(self) -> str:
        self._held += self.tokenizer.decode_continuation(self._before, self._pending)
        self._before, self._pending = [*self._before, *self._pending][-_N_CONTEXT_TOKENS:], []
        position = first_stop(self._held, self.stops)
        if position is not None:
            self.is_stopped = True
            text, self._held = self._held[:position], ""
            return text
        n_final = len(self._held) - _overlap(self._held, self.stops)
        text, self._held = self._held[:n_final], self._held[n_final:]
        return text


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Return the position of the first stop string in a text, or None."""
    return min((position for position in map(text.find, stops) if position >= 0), default=None)


def _overlap(text: str, stops: Sequence[str]) -> int:
    """Return how many characters at the end of a text are the start of a stop string."""
    longest = min(len(text), max(map(len, stops), default=1) - 1)
    for size in range(longest, 0, -1):
        if any(stop.startswith(text[-size:]) for stop in stops):
            return size
    return 0
