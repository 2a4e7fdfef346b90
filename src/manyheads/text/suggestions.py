"""Wording of error messages: suggestions for misspelled names, and shortened values."""

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Literal

from manyheads.messages import _

_MAX_COMPARED = 1000  # names, each of at most as many characters: comparing takes time


def missing_name(where: str, kind: Literal["column", "key"], name: str, known: Iterable[str], settings: str) -> str:
    """Return the message for a missing column or key; `settings` are the settings that choose it."""
    names = list(known)
    if kind == "column":
        fault = _('{where}: there is no column "{name}".', where=where, name=shortened(name))
        none = _("{fault} There is no column at all.", fault=fault)
    else:
        fault = _('{where}: there is no key "{name}".', where=where, name=shortened(name))
        none = _("{fault} There is no key at all.", fault=fault)
    if not names:
        return none
    return _(
        "{fault} Available: {names}.{advice}",
        fault=fault,
        names=shortened(", ".join(names)),
        advice=suggest(name, names) or _(" Choose one with {settings}.", settings=settings),
    )


def suggest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" with the closest known name, or an empty string if none is close."""
    compared = sorted(other for other in islice(known, _MAX_COMPARED) if len(other) <= _MAX_COMPARED)
    close = difflib.get_close_matches(name[:_MAX_COMPARED], compared, n=1, cutoff=0.6)
    return _(" Did you mean {name}?", name=close[0]) if close else ""


def shortened(text: str, max_length: int = 200) -> str:
    """Return the text, truncated to `max_length` characters so that an error message stays readable."""
    return text if len(text) <= max_length else text[:max_length] + "…"
