"""`History`: the state of a run according to its log, which may be long, truncated or resumed."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyheads.errors import RecipeError
from manyheads.messages import Message
from manyheads.metrics import lower_is_better
from manyheads.settings import build
from manyheads.tasks import DecodingChoice

Sample = tuple[str, str, str]  # text, answer, expected answer

_N_RECENT = 500  # steps whose pace predicts the remaining time


@dataclass(frozen=True, kw_only=True)
class Validation:
    """One validation during training."""

    step: float
    minute: float
    metric: str
    score: float
    samples: Sequence[Sample]  # of the same texts each time
    sample: Sample | None  # of another text each time


class Steps:
    """The figures of all steps, a column each."""

    def __init__(self) -> None:
        self.step, self.minute, self.tokens = array("d"), array("d"), array("d")
        self.loss, self.rate, self.norm, self.speed = array("d"), array("d"), array("d"), array("d")

    def __len__(self) -> int:
        return len(self.step)

    def cut(self, step: float) -> None:
        """Remove this step and all later ones."""
        if self.step and self.step[-1] >= step:
            keep = bisect_left(self.step, step)
            for column in vars(self).values():
                del column[keep:]

    def add(self, entry: Mapping[str, Any], minutes: float) -> None:
        """Append a step that took so many minutes."""
        tokens, seconds = read_number(entry.get("n_tokens")), read_number(entry.get("seconds"))
        self.minute.append((self.minute[-1] if self.minute else 0.0) + minutes)
        self.tokens.append((self.tokens[-1] if self.tokens else 0.0) + (tokens if math.isfinite(tokens) else 0.0))
        self.step.append(entry["step"])
        self.loss.append(read_number(entry.get("loss")))
        self.rate.append(read_number(entry.get("learning_rate")))
        self.norm.append(read_number(entry.get("gradient_norm")))
        self.speed.append(tokens / seconds if seconds > 0 else math.nan)


class History:
    """The state of a run; of steps that occur twice because the run was resumed, the later ones count."""

    def __init__(self) -> None:
        self.steps = Steps()
        self.validations: list[Validation] = []
        self.prepared: Mapping[str, Any] = {}
        self.finished: Mapping[str, Any] = {}
        self.decoding_choice: Message | None = None  # what the run chose to decode with, and why
        self.state = "starting"  # or stage, training, interrupted, finished
        self.stage = ""
        self._clock = math.nan  # time of the last step; NaN after a pause

    @property
    def step(self) -> int:
        """The last step."""
        return int(self.steps.step[-1]) if len(self.steps) else 0

    @property
    def minutes(self) -> float:
        """The training time, without pauses between an interruption and its resumption."""
        return self.steps.minute[-1] if len(self.steps) else 0.0

    @property
    def best(self) -> Validation | None:
        """The best validation among those with the metric of the last one."""
        comparable = [validation for validation in self.validations if validation.metric == self.validations[-1].metric]
        if not comparable:
            return None
        factor = -1 if lower_is_better(comparable[0].metric) else 1
        return max(comparable, key=lambda validation: factor * validation.score)

    def seconds_left(self, n_steps: int) -> float:
        """Return the remaining time at the pace of the recent steps; NaN before the first step."""
        n_recent = min(len(self.steps), _N_RECENT)
        if not n_recent:
            return math.nan
        minutes = self.steps.minute[-1] - (self.steps.minute[-n_recent - 1] if n_recent < len(self.steps) else 0.0)
        return 60 * minutes / n_recent * max(0, n_steps - self.step)

    def add(self, entry: Mapping[str, Any]) -> None:
        """Take one entry of the log into account; entries that are damaged or unknown change nothing."""
        event, when = entry.get("event"), read_number(entry.get("time"))
        if event == "Step" and math.isfinite(read_number(entry.get("step"))):
            self._add_step(entry, when)
        elif event == "Validated" and math.isfinite(read_number(entry.get("step"))):
            self._add_validation(entry)
        elif event == "Prepared":
            self.prepared, self.finished, self.state, self.decoding_choice = entry, {}, "starting", None
            self._clock = math.nan
        elif event == "Resumed":
            self._resume(read_number(entry.get("step")))
        elif event == "Stage":
            self.state, self.stage = "stage", str(entry.get("description", ""))
        elif event == "DecodingChosen":
            self.decoding_choice = _describe_choice(entry.get("choice"))
        elif event == "Interrupted":
            self.state = "interrupted"
        elif event == "Finished":
            self.state, self.finished = "finished", entry

    def _add_step(self, entry: Mapping[str, Any], when: float) -> None:
        self._remove_from(entry["step"])
        seconds = when - self._clock
        if not 0 <= seconds < math.inf:  # the first step after a pause
            seconds = read_number(entry.get("seconds"))
        self.steps.add(entry, seconds / 60 if math.isfinite(seconds) else 0.0)
        self._clock, self.state = when, "training"

    def _add_validation(self, entry: Mapping[str, Any]) -> None:
        score, metric = read_number(entry.get("score")), str(entry.get("metric"))
        if not math.isfinite(score):
            return
        validation = Validation(
            step=entry["step"],
            minute=self.minutes,
            metric=metric,
            # Scores of which lower is better are negated in the log; the page shows them as they are.
            score=abs(score) if lower_is_better(metric) else score,
            samples=read_samples(entry.get("samples")),
            sample=read_sample(entry.get("sample")),
        )
        self.validations = [*(old for old in self.validations if old.step < validation.step), validation]

    def _resume(self, step: float) -> None:
        if math.isfinite(step):
            self._remove_from(step + 1)
        self.state, self._clock = "training", math.nan

    def _remove_from(self, step: float) -> None:
        self.steps.cut(step)
        while self.validations and self.validations[-1].step >= step:
            self.validations.pop()


def _describe_choice(record: object) -> Message | None:
    try:
        return build(DecodingChoice, record if isinstance(record, Mapping) else {}).describe()
    except RecipeError:
        return None


def read_number(value: object) -> float:
    """Return a number of the log, or NaN if the value is not a number."""
    if type(value) is float:  # the usual case, and this function is called a million times
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return float(value)
    return math.nan


def read_sample(value: object) -> Sample | None:
    """Return a sample of the log, or None if it is not a list of three strings."""
    if isinstance(value, list | tuple) and len(value) >= 3 and all(isinstance(text, str) for text in value[:3]):
        return value[0], value[1], value[2]
    return None


def read_samples(value: object) -> list[Sample]:
    """Return the samples in a list of the log."""
    samples = map(read_sample, value) if isinstance(value, list | tuple) else ()
    return [sample for sample in samples if sample]
