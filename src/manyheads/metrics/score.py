"""`Score`: one figure with its confidence interval and signature, and how a figure is displayed."""

from dataclasses import dataclass

_LOWER_IS_BETTER = {"ter", "loss", "perplexity", "nats", "bits", "calibration"}  # first words of score names
_DECIMALS = {"loss": 3, "nats": 3, "bits": 3, "perplexity": 2}  # by the first word of the name; 1 for all others


@dataclass(frozen=True)
class Score:
    """A figure of a test set. 95 % of bootstrap resamples of the test set lie between low and high."""

    name: str
    value: float
    low: float
    high: float
    signature: str


def lower_is_better(name: str) -> bool:
    """Return whether a score of this name is better when it is lower."""
    return _first_word(name) in _LOWER_IS_BETTER


def format_score(name: str, value: float) -> str:
    """Format a score of this name with its significant decimals.

    Validation during training negates scores of which lower is better. Their absolute value is displayed.
    """
    value = abs(value) if lower_is_better(name) else value
    return f"{value:,.{_DECIMALS.get(_first_word(name), 1)}f}"


def _first_word(name: str) -> str:
    return name.lower().partition(" ")[0]
