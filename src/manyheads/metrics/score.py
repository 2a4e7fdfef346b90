"""`Score`: one figure with its confidence interval and signature, and how a figure is displayed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from manyheads.messages import Message
from manyheads.settings import build

Use = Literal["training", "stopping", "calibration", "decoding"]  # of a set, which makes its scores optimistic

_LOWER_IS_BETTER = {"ter", "loss", "perplexity", "nats", "bits", "calibration", "false"}  # first words of score names
_FEW = 30  # texts; with fewer, an interval says little
_USES: dict[str, Message] = {
    "training": Message("to train"),
    "stopping": Message("to choose the checkpoint"),
    "calibration": Message("to calibrate the probabilities"),
    "decoding": Message("to choose the length penalty"),
}
_MAX_DECIMALS = 9  # of a change; finer differences are rounding errors
_DECIMALS = {"loss": 3, "nats": 3, "bits": 3, "perplexity": 2}  # by the first word of the name; 1 for all others


@dataclass(frozen=True)
class Score:
    """A figure of a test set with its 95 % confidence interval from low to high."""

    name: str
    value: float
    low: float
    high: float
    signature: str
    n: int | None = None  # texts it was computed from, or documents or blocks; None if not recorded
    used_for: tuple[Use, ...] = ()  # what the set was used for besides scoring; the score is then optimistic

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Score":
        """Return the score that `asdict` wrote to JSON; raise RecipeError if it is not one."""
        return build(cls, record, "score.")


def score_notes(n: int | None, used_for: Sequence[str]) -> Iterator[Message]:
    """Yield what a reader should know about scores of `n` texts of a set that was used for something else too."""
    if n is not None and n < _FEW:
        yield Message("n = {n}: so few that the interval says little.", n=n)
    uses = [_USES[use] for use in used_for if use in _USES]
    if uses:
        listed = reduce(lambda first, second: Message("{first} and {second}", first=first, second=second), uses)
        yield Message("The set was also used {uses}: its scores are optimistic.", uses=listed)


def lower_is_better(name: str) -> bool:
    """Return whether a score of this name is better when it is lower."""
    return _first_word(name) in _LOWER_IS_BETTER


def format_score(name: str, value: float) -> str:
    """Format a score of this name with its significant decimals.

    Validation during training negates scores of which lower is better. Their absolute value is displayed.
    """
    value = abs(value) if lower_is_better(name) else value
    return f"{value:,.{_DECIMALS.get(_first_word(name), 1)}f}"


def format_change(difference: float, low: float, high: float) -> tuple[str, str]:
    """Format a change and its interval with as many decimals as tell the ends of the interval apart, at least two.

    The interval is "" where it is a point, as where no text is scored otherwise.
    """
    for decimals in range(2, _MAX_DECIMALS + 1):
        if round(low, decimals) != round(high, decimals):
            return f"{difference:+.{decimals}f}", f"[{low:+.{decimals}f}, {high:+.{decimals}f}]"
    return f"{difference:+.2f}", ""


def _first_word(name: str) -> str:
    return name.lower().partition(" ")[0]
