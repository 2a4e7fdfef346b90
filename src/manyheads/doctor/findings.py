"""`Finding`: what one check has to say, with figures, examples and a fix."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["good", "warning", "bad"]

MAX_EXAMPLES = 3
_LONGEST_EXCERPT = 60  # characters


@dataclass(frozen=True)
class Finding:
    """The result of one check. What is good needs no fix."""

    check: str
    verdict: Verdict
    message: str  # one sentence with the figures
    examples: tuple[str, ...] = ()  # each begins with where it stands
    fix: str = ""  # what to do, in English and in Chinese


def has_bad(findings: Iterable[Finding]) -> bool:
    """Whether anything needs mending before going on."""
    return any(finding.verdict == "bad" for finding in findings)


def merge_good(findings: Sequence[Finding]) -> list[Finding]:
    """Everything that is not good; where all of it is, the first of them speaks for the others."""
    return [finding for finding in findings if finding.verdict != "good"] or list(findings[:1])


def verdict_of(count: int, total: int, *, warn: float, fail: float = 1.0) -> Verdict:
    """The verdict on a share: good up to `warn`, bad beyond `fail`."""
    share = count / max(total, 1)
    return "good" if share <= warn else "warning" if share <= fail else "bad"


def share(count: int, total: int) -> str:
    """ "12 of 1,000 (1.2 %)", with as many digits as a small share needs."""
    if not count:
        return f"0 of {total:,}"
    percent = 100 * count / max(total, 1)
    shown = f"{percent:.1f}" if percent >= 0.1 else f"{percent:.1g}" if percent >= 0.01 else "< 0.01"
    return f"{count:,} of {total:,} ({shown} %)"


def excerpt(text: str) -> str:
    """A text short enough for one line, around its first odd character, with what cannot be seen made visible."""
    inner = text.strip(" ")
    left = len(text) - len(text.lstrip(" ")) if inner else 0
    # Spaces at the ends are drawn: nobody would see them otherwise.
    drawn = "␣" * left + inner + "␣" * (len(text) - left - len(inner))
    odd = next((place for place, character in enumerate(drawn) if _is_odd(character)), 0)
    start = max(0, min(odd - _LONGEST_EXCERPT // 2, len(drawn) - _LONGEST_EXCERPT))
    cut = drawn[start : start + _LONGEST_EXCERPT]
    before, after = "…" * (start > 0), "…" * (start + len(cut) < len(drawn))
    return before + "".join(_escape(character) for character in cut) + after


def _is_odd(character: str) -> bool:
    return not character.isprintable() or character in "\ufffd␣"


def _escape(character: str) -> str:
    return character if character.isprintable() else f"<U+{ord(character):04X}>"
