"""What the log of a run tells, gathered line by line: a log may be long, cut off, resumed, or of another version."""

import json
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyheads.metrics import NO_LABEL, lower_is_better

Sample = tuple[str, str, str]  # what went in, what came out, what was wanted

_BEGINNING = b'{"event"'
_RECENT = 500  # steps, of whose pace the time left is reckoned
_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}


@dataclass(frozen=True, kw_only=True)
class Validation:
    """One look at the valid set."""

    step: float
    minute: float
    metric: str
    score: float
    samples: Sequence[Sample]  # the same sentences each time, if the run watched some
    sample: Sample | None  # another sentence each time


class Steps:
    """A column of numbers for each fact of a step, in the order of the steps."""

    def __init__(self) -> None:
        self.step, self.minute, self.tokens = array("d"), array("d"), array("d")
        self.loss, self.rate, self.norm, self.speed = array("d"), array("d"), array("d"), array("d")

    def __len__(self) -> int:
        return len(self.step)

    def cut(self, step: float) -> None:
        """Forget this step and all after it."""
        if self.step and self.step[-1] >= step:
            keep = bisect_left(self.step, step)
            for column in vars(self).values():
                del column[keep:]

    def add(self, entry: Mapping[str, Any], minutes: float) -> None:
        """One more step, which took so long."""
        tokens, seconds = number(entry.get("n_tokens")), number(entry.get("seconds"))
        self.minute.append((self.minute[-1] if self.minute else 0.0) + minutes)
        self.tokens.append((self.tokens[-1] if self.tokens else 0.0) + (tokens if math.isfinite(tokens) else 0.0))
        self.step.append(entry["step"])
        self.loss.append(number(entry.get("loss")))
        self.rate.append(number(entry.get("learning_rate")))
        self.norm.append(number(entry.get("gradient_norm")))
        self.speed.append(tokens / seconds if seconds > 0 else math.nan)


class History:
    """A run as far as its log tells; of steps told twice, because a run was resumed, the later telling counts."""

    def __init__(self) -> None:
        self.steps = Steps()
        self.validations: list[Validation] = []
        self.prepared: Mapping[str, Any] = {}
        self.finished: Mapping[str, Any] = {}
        self.state = "starting"  # or stage, training, interrupted, finished
        self.stage = ""
        self.began = math.nan
        self._clock = math.nan  # when the last event was, unless the run was away in between

    def add_lines(self, lines: Sequence[bytes]) -> None:
        """Take in whole lines of the log."""
        for entry in _parse(lines):
            if isinstance(entry, dict):
                self._add(entry)

    @property
    def step(self) -> int:
        """The newest step."""
        return int(self.steps.step[-1]) if len(self.steps) else 0

    @property
    def minutes(self) -> float:
        """How long was trained, without the time between an interruption and going on."""
        return self.steps.minute[-1] if len(self.steps) else 0.0

    @property
    def best(self) -> Validation | None:
        """The best of all validations that are scored like the newest."""
        alike = [one for one in self.validations if one.metric == self.validations[-1].metric]
        if not alike:
            return None
        sign = -1 if lower_is_better(alike[0].metric) else 1
        return max(alike, key=lambda validation: sign * validation.score)

    def seconds_left(self, n_steps: int) -> float:
        """How long the steps that remain will take at the pace of the recent ones; not a number if none was made."""
        recent = min(len(self.steps), _RECENT)
        if not recent:
            return math.nan
        minutes = self.steps.minute[-1] - (self.steps.minute[-recent - 1] if recent < len(self.steps) else 0.0)
        return 60 * minutes / recent * max(0, n_steps - self.step)

    def _add(self, entry: Mapping[str, Any]) -> None:
        event, when = entry.get("event"), number(entry.get("time"))
        if event == "Step" and math.isfinite(number(entry.get("step"))):
            self._add_step(entry, when)
        elif event == "Validated" and math.isfinite(number(entry.get("step"))):
            self._add_validation(entry)
        elif event == "Prepared":
            self.prepared, self.finished, self.state = entry, {}, "starting"
            self._clock = math.nan
        elif event == "Resumed":
            self._resume(number(entry.get("step")))
        elif event == "Stage":
            self.state, self.stage = "stage", str(entry.get("description", ""))
        elif event == "Interrupted":
            self.state = "interrupted"
        elif event == "Finished":
            self.state, self.finished = "finished", entry
        if math.isnan(self.began):
            self.began = when

    def _add_step(self, entry: Mapping[str, Any], when: float) -> None:
        self._forget_from(entry["step"])
        seconds = when - self._clock
        if not 0 <= seconds < math.inf:  # the first step after a pause
            seconds = number(entry.get("seconds"))
        self.steps.add(entry, seconds / 60 if math.isfinite(seconds) else 0.0)
        self._clock, self.state = when, "training"

    def _add_validation(self, entry: Mapping[str, Any]) -> None:
        score = number(entry.get("score", entry.get("bleu")))
        metric = str(entry.get("metric", "BLEU"))
        if not math.isfinite(score):
            return
        validation = Validation(
            step=entry["step"],
            minute=self.minutes,
            metric=_NAMES.get(metric.lower(), metric),
            # A look at the model turns the sign of what is better when lower; the page shows it as it is.
            score=abs(score) if lower_is_better(metric) else score,
            samples=as_samples(entry.get("samples")),
            sample=as_sample(entry.get("sample")),
        )
        self.validations = [one for one in self.validations if one.step < validation.step] + [validation]

    def _resume(self, step: float) -> None:
        if math.isfinite(step):
            self._forget_from(step + 1)
        self.state, self._clock = "training", math.nan

    def _forget_from(self, step: float) -> None:
        self.steps.cut(step)
        while self.validations and self.validations[-1].step >= step:
            self.validations.pop()


def number(value: object) -> float:
    """A number of the log; anything else is not a number."""
    if type(value) is float:  # nearly always, and this is asked a million times
        return value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else math.nan


def as_sample(value: object) -> Sample | None:
    """What went in, what came out and what was wanted, as a list or as a table; None if it is neither."""
    if isinstance(value, Mapping) and "predicted" in value:
        answers = [(value.get(f"{kind}_label"), value.get(kind)) for kind in ("predicted", "gold")]
        value = [value.get("text"), *(_answer(label, parts) for label, parts in answers)]
    elif isinstance(value, Mapping) and "prompt" in value:  # how a text goes on: whatever comes is wanted
        value = [value.get(key) for key in ("prompt", "text", "text")]
    elif isinstance(value, Mapping):
        value = [value.get(key) for key in ("source", "translation", "reference")]
    if isinstance(value, list | tuple) and len(value) >= 3 and all(isinstance(text, str) for text in value[:3]):
        return value[0], value[1], value[2]
    return None


def _answer(label: object, parts: object) -> str:
    """Labels or spans in a line, the label of the whole sentence before them."""
    found = parts if isinstance(parts, list | tuple) else []
    return " · ".join(str(part) for part in ([label, *found] if label else found)) or NO_LABEL


def as_samples(value: object) -> list[Sample]:
    """Those of a list that are such triples."""
    found = [as_sample(one) for one in value] if isinstance(value, list | tuple) else []
    return [one for one in found if one]


def _parse(lines: Sequence[bytes]) -> Iterable[object]:
    try:  # one call for all lines takes half the time of a call for each
        return list(json.loads(b"[" + b",".join(lines) + b"]"))
    except ValueError:
        return [entry for line in lines for entry in _parse_line(line)]


def _parse_line(line: bytes) -> list[object]:
    """One line; of a line that was cut off and then gone on with by another run, the later part."""
    for part in (line, line[max(0, line.rfind(_BEGINNING)) :]):
        try:
            return [json.loads(part)]
        except ValueError:
            continue
    return []
