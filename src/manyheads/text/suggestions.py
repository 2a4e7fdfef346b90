"""What to say of a name that is not there: what there is, and which of it is near."""

import difflib
from collections.abc import Iterable


def missing_name(where: str, word: str, name: str, known: Iterable[str], settings: str) -> str:
    """One line on a column or key (the word) that is not among those known, and the settings that choose it."""
    names = list(known)
    fault = f'{where}: there is no {word} "{name}". There is: '
    if not names:
        return f"{fault}none."
    advice = suggest(name, names) or f" Choose with {settings}."
    return f"{fault}{shortened(', '.join(names))}.{advice}"


def suggest(name: str, known: Iterable[str]) -> str:
    """A sentence to append, with its space: the nearest name, or nothing when none is near."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]}?" if close else ""


def shortened(text: str, most: int = 200) -> str:
    """The text, or its beginning: an error is one line that one can read."""
    return text if len(text) <= most else text[:most] + "…"
