"""Wording of error messages: suggestions for misspelled names, and shortened values."""

import difflib
from collections.abc import Iterable
from itertools import islice

_MAX_COMPARED = 1000  # names, each of at most as many characters: comparing takes time


def missing_name(where: str, kind: str, name: str, known: Iterable[str], settings: str) -> str:
    """Return the message for a missing column or key; `settings` are the settings that choose it."""
    names = list(known)
    fault = f'{where}: there is no {kind} "{shortened(name)}".'
    if not names:
        return f"{fault} There is no {kind} at all."
    advice = suggest(name, names) or f" Choose one with {settings}."
    return f"{fault} Available: {shortened(', '.join(names))}.{advice}"


def suggest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" with the closest known name, or an empty string if none is close."""
    compared = sorted(other for other in islice(known, _MAX_COMPARED) if len(other) <= _MAX_COMPARED)
    close = difflib.get_close_matches(name[:_MAX_COMPARED], compared, n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def shortened(text: str, max_length: int = 200) -> str:
    """Return the text, truncated to `max_length` characters so that an error message stays readable."""
    return text if len(text) <= max_length else text[:max_length] + "…"
