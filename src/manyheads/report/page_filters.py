"""Formats of the page: durations, numbers, and answers compared with what was expected."""

import math
from difflib import SequenceMatcher

from manyheads.messages import Message

_MIN_SPACES = 1 / 15  # per character; languages written with spaces have more
_LONGEST = 600  # characters of an answer that are compared


def format_duration(seconds: float) -> Message:
    """Return a duration; a dash if it is not known."""
    if not math.isfinite(seconds):
        return Message("{sign}", sign="–")
    if seconds < 90:
        return Message("{seconds:.0f} s", seconds=seconds)
    minutes = round(seconds / 60)
    if minutes < 90:
        return Message("{minutes} min", minutes=minutes)
    hours, minutes = divmod(minutes, 60)
    return Message("{hours} h {minutes:02d} min", hours=hours, minutes=minutes)


def format_number(value: float) -> str:
    """Return a number with thousands separators; fractions with three decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def compare_texts(answer: str, expected: str) -> list[tuple[str, bool]]:
    """Split an answer into parts, each with whether the expected answer lacks it."""
    ours, theirs = (_split(text[:_LONGEST]) for text in (answer, expected))
    parts: list[tuple[str, bool]] = []
    position = 0
    matcher = SequenceMatcher(None, [part.strip() for part in ours], [part.strip() for part in theirs], autojunk=False)
    for block in matcher.get_matching_blocks():
        other = "".join(ours[position : block.a])
        marked = other.rstrip()
        parts += [(marked, True), (other[len(marked) :], False)]
        parts.append(("".join(ours[block.a : block.a + block.size]), False))
        position = block.a + block.size
    parts.append((answer[_LONGEST:], False))
    return [part for part in parts if part[0]]


def _split(text: str) -> list[str]:
    """Return words, each with the space after it; characters of a language written without spaces."""
    if not text.isascii() and text.strip().count(" ") < len(text) * _MIN_SPACES:
        return list(text)
    return [word + " " for word in text.split(" ")[:-1]] + text.split(" ")[-1:]
