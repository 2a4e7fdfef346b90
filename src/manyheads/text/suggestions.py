"""Wording of error messages: suggestions for misspelled names, and shortened values."""

import difflib
from collections.abc import Iterable


def missing_name(where: str, kind: str, name: str, known: Iterable[str], settings: str) -> str:
    """Return the message for a missing column or key; `settings` are the settings that choose it."""
    names = list(known)
    fault = f'{where}: there is no {kind} "{name}".'
    if not names:
        return f"{fault} There is no {kind} at all."
    advice = suggest(name, names) or f" Choose one with {settings}."
    return f"{fault} Available: {shortened(', '.join(names))}.{advice}"


def suggest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" with the closest known name, or an empty string if none is close."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def shortened(text: str, max_length: int = 200) -> str:
    """Return the text, truncated to `max_length` characters so that an error message stays readable."""
    return text if len(text) <= max_length else text[:max_length] + "…"
