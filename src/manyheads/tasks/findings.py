"""`Finding`: the result of one check, with figures, examples and a fix, in the language in use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from manyheads.messages import _

Verdict = Literal["good", "warning", "bad"]

MAX_EXAMPLES = 3
_LONGEST_EXCERPT = 60  # characters


@dataclass(frozen=True)
class Finding:
    """The result of one check. A good one has no fix."""

    check: str
    verdict: Verdict
    message: str  # one sentence with the figures
    examples: tuple[str, ...] = ()  # each begins with its file and line
    fix: str = ""  # what to do


def has_bad(findings: Iterable[Finding]) -> bool:
    """Return whether any finding is a problem."""
    return any(finding.verdict == "bad" for finding in findings)


def merge_good(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are not good, or the first one if all are good."""
    return [finding for finding in findings if finding.verdict != "good"] or list(findings[:1])


def verdict_of(count: int, total: int, *, warn: float, fail: float = 1.0) -> Verdict:
    """Return the verdict on a share: good up to `warn`, bad above `fail`."""
    share = count / max(total, 1)
    return "good" if share <= warn else "warning" if share <= fail else "bad"


def share(count: int, total: int) -> str:
    """Return a count and its share, such as "12 of 1,000 (1.2 %)"."""
    counts = _("{count:,} of {total:,}", count=count, total=total)
    if not count:
        return counts
    percent = 100 * count / max(total, 1)
    shown = f"{percent:.1f}" if percent >= 0.1 else f"{percent:.1g}" if percent >= 0.01 else "< 0.01"
    return f"{counts} ({shown} %)"


def describe_sizes(n_parameters: int, vocab_size: int) -> str:
    """Return the sizes of a model and its vocabulary."""
    millions = f"{n_parameters / 1e6:.1f} M"
    return _(
        "{millions} parameters ({n_parameters:,}), {vocab_size:,} tokens.",
        millions=millions,
        n_parameters=n_parameters,
        vocab_size=vocab_size,
    )


def excerpt(text: str) -> str:
    """Return a one-line excerpt around the first unusual character, with invisible characters made visible."""
    inner = text.strip(" ")
    left = len(text) - len(text.lstrip(" ")) if inner else 0
    drawn = "␣" * left + inner + "␣" * (len(text) - left - len(inner))
    odd = next((position for position, character in enumerate(drawn) if _is_odd(character)), 0)
    start = max(0, min(odd - _LONGEST_EXCERPT // 2, len(drawn) - _LONGEST_EXCERPT))
    cut = drawn[start : start + _LONGEST_EXCERPT]
    before, after = "…" * (start > 0), "…" * (start + len(cut) < len(drawn))
    return before + "".join(_escape(character) for character in cut) + after


def _is_odd(character: str) -> bool:
    return not character.isprintable() or character in "\ufffd␣"


def _escape(character: str) -> str:
    return character if character.isprintable() else f"<U+{ord(character):04X}>"
