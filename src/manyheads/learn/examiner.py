"""The examiner: what a learner's file returns, compared with the reference and with its faulty variants.

A result is compared on all inputs, which go from small to large. If it differs, the variant that equals it on every
input, errors included, is the bug: first single ones, then pairs at two places. The evidence is the first and so the
smallest input on which it shows. If no variant matches, the examiner says which property fails and claims no cause.
"""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Any, Literal

import numpy as np

from manyheads.learn.child_process import ChildAnswer, run_child
from manyheads.learn.exercise import Exercise, all_exercises
from manyheads.learn.isolated_child import decode, encode
from manyheads.learn.references import REFERENCES
from manyheads.learn.references.reference import RAISED, Draw, Inputs, Raised, Result, close, is_finite
from manyheads.learn.submission import Submission
from manyheads.messages import Message, _

SECONDS = 10.0  # for all inputs of a check
N_DERIVED = 4  # inputs on which a property that compares two calls is tried
# What becomes of a row that sees nothing, where no right solution has one: a mistake of the mask makes such rows.
STYLES = ("hidden-row-nan", "mask-finite", "mask-finite-added")
EXTREME = 30.0  # numbers whose exponential overflows or vanishes beside others
_DTYPES = {"numpy": "float64", "torch": "float32"}
Outcome = Literal["solved", "named", "failed", "refused"]
Run = Callable[[Submission, list[list[Any]]], ChildAnswer]


@dataclass(frozen=True)
class Evidence:
    """The smallest input on which a result is wrong; `given` is RAISED if the call failed, `error` then says how."""

    inputs: Inputs
    expected: Result
    given: Result
    error: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the examiner says about a file."""

    exercise: Exercise
    outcome: Outcome
    variants: tuple[str, ...] = ()  # the mistakes, by name
    is_certain: bool = True  # False: there is another mistake beside those named
    reason: str = ""  # one line, if the file was refused or no variant matches
    evidence: Evidence | None = None
    remarks: tuple[str, ...] = ()
    printed: str = ""
    seconds: float = 0.0  # of all calls, after the imports

    def sentences(self) -> list[str]:
        """One sentence for each mistake, or the reason."""
        return [str(self.exercise.variants[name]) for name in self.variants] or [self.reason]


@dataclass(frozen=True)
class Paper:
    """The inputs of an exercise with the expected results; those for properties come after the others."""

    exercise: Exercise
    cases: list[Inputs]
    expected: list[Result]
    repeated: int  # the input that comes again as the last one: dropout that was left on shows
    derived: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by property: (input, derived input)


@cache
def make_paper(name: str) -> Paper:
    """The inputs of an exercise; they are the same in every check."""
    exercise, reference = all_exercises()[name], REFERENCES[name]
    cases = list(reference.cases(Draw()))
    derived: dict[str, list[tuple[int, int]]] = {}
    for key, rule in reference.properties.items():
        if rule.derive is None:
            continue
        for number, inputs in enumerate(list(cases)):
            if len(derived.get(key, [])) < N_DERIVED and (other := rule.derive(inputs)) is not None:
                derived.setdefault(key, []).append((number, len(cases)))
                cases.append(other)
    repeated = len(cases) // 2
    cases.append(cases[repeated])
    return Paper(exercise, cases, [reference.evaluate(inputs) for inputs in cases], repeated, derived)


def examine(submission: Submission, *, run: Run | None = None) -> Verdict:
    """Run a learner's file on the inputs of its exercise and say what is wrong with it."""
    paper = make_paper(submission.exercise)
    calls = [encode_inputs(paper.exercise, inputs, submission.mask) for inputs in paper.cases]
    answer = run(submission, calls) if run else run_child(submission, calls, seconds=SECONDS)
    verdicts = [_judge(paper, submission, answer, kind) for kind in submission.arrays]
    rank = {"solved": 0, "named": 1, "failed": 2, "refused": 3}
    return min(verdicts, key=lambda verdict: rank[verdict.outcome])


def encode_inputs(exercise: Exercise, inputs: Inputs, mask: str) -> list[Any]:
    """An input as JSON, with masks in the convention that the learner declared."""
    return [encode(_convert_mask(value, mask) if name in exercise.masks else value) for name, value in inputs.items()]


def _convert_mask(visible: Any, convention: str) -> Any:
    if convention == "visible" or visible is None:
        return visible
    return ~visible if convention == "hidden" else np.where(visible, 0.0, -np.inf)


def _judge(paper: Paper, submission: Submission, answer: ChildAnswer, arrays: str) -> Verdict:
    """The verdict for one kind of arrays."""
    exercise = paper.exercise

    def refuse(reason: str) -> Verdict:
        return Verdict(exercise, "refused", reason=reason, printed=answer.printed, seconds=answer.seconds)

    calls = answer.calls.get(arrays, [])
    if reason := _unfinished(submission, answer, len(calls), len(paper.cases)):
        return refuse(reason)
    if reason := _unusable(paper, submission, calls):
        return refuse(reason)
    try:
        results = [_result(exercise, submission.mask, message) for message in calls]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return refuse(_("{where}: the result cannot be read.", where=submission.place(submission.result_line)))
    errors = [message.get("text", "") for message in calls]
    verdict = compare(paper, results, _DTYPES[arrays], errors)
    if verdict.outcome in ("solved", "failed") and (reason := _wrong_dtype(paper, submission, calls, results)):
        return refuse(reason)
    remarks = _remarks(paper, calls) if verdict.outcome == "solved" else ()
    return Verdict(
        exercise,
        verdict.outcome,
        variants=verdict.variants,
        is_certain=verdict.is_certain,
        reason=verdict.reason or _crash(submission, calls, verdict.evidence),
        evidence=verdict.evidence,
        remarks=remarks,
        printed=answer.printed,
        seconds=answer.seconds,
    )


def compare(paper: Paper, results: list[Result], dtype: str, errors: list[str] | None = None) -> Verdict:
    """The verdict for results on all inputs of a paper: the heart of the examiner."""
    exercise = paper.exercise
    wrong = [n for n, (given, right) in enumerate(zip(results, paper.expected, strict=True)) if not close(given, right)]
    if not wrong:
        return Verdict(exercise, "solved")
    n = wrong[0]
    evidence = Evidence(paper.cases[n], paper.expected[n], results[n], errors[n] if errors else "")
    variants, is_certain = _match(paper, results, dtype)
    if variants:
        return Verdict(exercise, "named", variants=variants, is_certain=is_certain, evidence=evidence)
    number, reason = _failed_property(paper, results, n)
    if number != n:
        evidence = Evidence(paper.cases[number], paper.expected[number], results[number])
    return Verdict(exercise, "failed", reason=reason, evidence=evidence)


def _match(paper: Paper, results: list[Result], dtype: str) -> tuple[tuple[str, ...], bool]:
    """The mistakes of the variants that equal the results on every input, and whether they are all."""
    first = [n for n, given in enumerate(results) if not close(given, paper.expected[n])]
    order = [*first, *(n for n in range(len(results)) if n not in first)]  # most candidates differ on the first
    for is_strict in (True, False):
        for faults in candidates(paper.exercise, 1):  # several may behave alike, such as two kinds of finite mask
            if _equals(paper, results, faults, dtype, order, is_strict=is_strict):
                return faults, True
    styles = [style for style in STYLES if style not in paper.exercise.variants]
    for faults in candidates(paper.exercise, 1):
        if any(_equals(paper, results, (*faults, style), dtype, order, is_strict=False) for style in styles):
            return faults, True
    pairs = [
        faults
        for faults in candidates(paper.exercise, 2)
        if _equals(paper, results, faults, dtype, order, is_strict=False)
    ]
    places = [{paper.exercise.variants[name].place for name in faults} for faults in pairs]
    if pairs and all(place == places[0] for place in places):
        return pairs[0], True
    common = set.intersection(*map(set, pairs)) if pairs else set()
    return tuple(sorted(common)), False


def candidates(exercise: Exercise, n_faults: int) -> Iterator[tuple[str, ...]]:
    """The combinations of mistakes at different places."""
    for faults in combinations(exercise.variants, n_faults):
        if len({exercise.variants[name].place for name in faults}) == n_faults:
            yield faults


def _equals(
    paper: Paper, results: list[Result], faults: tuple[str, ...], dtype: str, order: list[int], *, is_strict: bool
) -> bool:
    """Whether a variant gives these results.

    If not strict, numbers may differ by 1 %, as with another fixed ε; an error equals NaN, as Python's own arithmetic
    raises one where numpy does not; and where numbers overflow, any wrong result equals another, since how it is wrong
    depends on the order of operations.
    """
    reference = REFERENCES[paper.exercise.name]
    for n in order:
        found = reference.evaluate(paper.cases[n], faults, dtype)
        if close(results[n], found) or (not is_strict and close(results[n], found, relative=1e-2, absolute=5e-3)):
            continue
        if is_strict or _is_finite(found) or close(results[n], paper.expected[n]):
            return False
        if _is_finite(results[n]) and not _is_extreme(paper.cases[n]):
            return False
    return True


def _is_finite(result: Result) -> bool:
    try:
        return not isinstance(result, Raised) and is_finite({}, result, None)
    except (TypeError, ValueError):
        return True


def _is_extreme(inputs: Inputs) -> bool:
    return any(isinstance(value, np.ndarray) and np.abs(value).max(initial=0) > EXTREME for value in inputs.values())


def _failed_property(paper: Paper, results: list[Result], first_wrong: int) -> tuple[int, str]:
    """The first property that fails, with the number of its input; else what differs on the first wrong input."""
    given, right = results[first_wrong], paper.expected[first_wrong]
    if not close(results[paper.repeated], results[-1]):
        reason = _("The same input gives another result each time: dropout or another random number is left.")
        return paper.repeated, reason
    if isinstance(given, Raised):
        return first_wrong, ""
    if (shape := _shape(given)) != (expected := _shape(right)):
        return first_wrong, _("The result has the shape {shape}; expected {expected}.", shape=shape, expected=expected)
    for name, rule in REFERENCES[paper.exercise.name].properties.items():
        pairs = paper.derived.get(name) if rule.derive else [(n, n) for n in range(len(paper.cases))]
        for number, other in pairs or []:
            if isinstance(results[number], Raised) or isinstance(results[other], Raised):
                continue
            try:
                holds = rule.holds(paper.cases[number], results[number], results[other])
            except (IndexError, TypeError, ValueError):
                holds = True  # a shape that the property does not know; shapes are compared elsewhere
            if not holds:
                return number, str(paper.exercise.properties[name])
    return first_wrong, _("The result differs from the reference on this input. The cause is unknown.")


def _size(value: Any) -> int:
    """How many numbers or texts a value has."""
    if isinstance(value, list | tuple | dict):
        return sum(map(_size, value))
    return int(np.size(value))


def _shape(result: Result) -> str:
    if isinstance(result, tuple | list) and any(isinstance(part, np.ndarray) for part in result):
        return ", ".join(map(_shape, result))
    if isinstance(result, str | dict) or result is None:
        return type(result).__name__
    try:
        return str(np.shape(result))
    except ValueError:
        return type(result).__name__


# What cannot be compared ---------------------------------------------------------------------------------------------

_ENDINGS = {
    "exit": Message("{where}: the check ended before it had answered: the code ended its own process."),
    "time": Message("{where}: no answer within {seconds:g} seconds. A check takes less than one: look for a loop."),
    "output": Message("{where}: the code printed more than 1 MB. Remove the print."),
    "answers": Message("{where}: the results are larger than 32 MB."),
}


def _unfinished(submission: Submission, answer: ChildAnswer, n_calls: int, n_all: int) -> str:
    """Why the child did not answer every call, if it did not."""
    where = submission.place(None)
    if answer.ending == "loading":
        loading = answer.loading
        if "kind" in loading:
            values = {"where": where, "name": submission.function, "kind": loading["kind"]}
            return _("{where}: {name} is a {kind}; expected a function.", **values)
        return _error_line(submission, loading)
    ending = answer.ending if answer.ending in _ENDINGS else "exit"
    if ending == answer.ending or n_calls != n_all:
        message = _ENDINGS[ending]
        return _(message.text, where=where, seconds=SECONDS)
    return ""


def _unusable(paper: Paper, submission: Submission, calls: list[dict[str, Any]]) -> str:
    """Why the results are no results: an error every time, None, a generator, changed inputs."""
    where, name = submission.place(submission.result_line), submission.function
    for message, expected in zip(calls, paper.expected, strict=True):
        if kind := _other_kind(message, expected):
            wanted = _describe(expected)
            return _(
                "{where}: {name} returns {kind}; expected {wanted}.", where=where, name=name, kind=kind, wanted=wanted
            )
    if all("error" in message for message in calls):
        return _error_line(submission, calls[0])
    for message in calls:
        if message.get("changed"):
            parameter = paper.exercise.parameters[message["changed"][0] % len(paper.exercise.parameters)]
            return _(
                "{where}: {name} changes its input {parameter} in place. Work on a copy.",
                where=submission.place(None),
                name=name,
                parameter=parameter,
            )
    return ""


def _other_kind(message: dict[str, Any], expected: Result) -> str:
    """What a call returned, if it cannot be compared with what was expected."""
    if "kind" in message:
        return str(message["kind"])
    result = message.get("result", 0)
    if result is None:
        return "None"
    n = len(result["tuple"]) if isinstance(result, dict) and "tuple" in result else 0
    if n and isinstance(expected, np.ndarray) and n != len(expected):
        return _("a tuple of {n}", n=n)
    return ""


def _error_line(submission: Submission, message: dict[str, Any]) -> str:
    if message.get("error") == "NotImplementedError":
        return _("{where}: not written yet.", where=submission.place(message.get("line")))
    return _(
        "{where}: {error}: {text}",
        where=submission.place(message.get("line")),
        error=message.get("error"),
        text=message.get("text"),
    )


def _crash(submission: Submission, calls: list[dict[str, Any]], evidence: Evidence | None) -> str:
    """The line of the error that the evidence shows."""
    if evidence is None or not isinstance(evidence.given, Raised):
        return ""
    return next(_error_line(submission, message) for message in calls if "error" in message)


def _describe(expected: Result) -> str:
    if isinstance(expected, tuple):
        return _("a tuple of {n}", n=len(expected))
    if isinstance(expected, np.ndarray):
        return _("an array of shape {shape}", shape=expected.shape)
    return _("a value of type {type}", type=type(expected).__name__)


def _result(exercise: Exercise, mask: str, message: dict[str, Any]) -> Result:
    if "result" not in message:
        return RAISED
    result = decode(_without_dtypes(message["result"]), "numpy")
    if exercise.returns_mask and isinstance(result, np.ndarray):
        if mask == "hidden":
            return ~result.astype(bool)
        if mask == "additive":
            return result > -1e4
    return result


def _without_dtypes(value: Any) -> Any:
    """JSON of a result whose arrays are all of a dtype that numpy knows; `_wrong_dtype` looks at the original."""
    if isinstance(value, list):
        return [_without_dtypes(item) for item in value]
    if isinstance(value, dict) and "tuple" in value:
        return {"tuple": [_without_dtypes(item) for item in value["tuple"]]}
    if isinstance(value, dict) and "array" in value:
        is_bool = value["array"] == "bool"
        data = value["data"] or [0.0] * int(np.prod(value["shape"]))
        return {**value, "array": "bool" if is_bool else "float64", "data": data}
    return value


def _wrong_dtype(paper: Paper, submission: Submission, calls: list[dict[str, Any]], results: list[Result]) -> str:
    """A dtype or device that no right result has."""
    where = submission.place(submission.result_line)
    for number, message in enumerate(calls):
        for array in _arrays_of(message.get("result")):
            if array.get("device", "cpu") != "cpu":
                return _("{where}: the result is on the device {device}; expected cpu.", where=where, **array)
            name = array["array"].removeprefix("torch.")
            is_number = re.fullmatch(r"(float(32|64)|longdouble|float128|u?int\d+|bool)", name)
            is_half_right = name[0] in "iub" and not close(results[number], paper.expected[number])
            wants_float = isinstance(paper.expected[number], np.ndarray) and paper.expected[number].dtype.kind == "f"
            if not is_number or (is_half_right and wants_float):
                return _(
                    "{where}: the result has the dtype {name}; expected float32 or float64.", where=where, name=name
                )
    return ""


def _arrays_of(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and "array" in value:
        yield value
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.get("tuple", []):
            yield from _arrays_of(item)


def _remarks(paper: Paper, calls: list[dict[str, Any]]) -> tuple[str, ...]:
    """How long the largest input took, beside the reference."""
    number = max(range(len(paper.cases)), key=lambda n: _size(list(paper.cases[n].values())))
    reference = REFERENCES[paper.exercise.name]
    started = time.perf_counter()
    reference.evaluate(paper.cases[number])
    own = time.perf_counter() - started
    given = float(calls[number].get("seconds", 0.0))
    timing = _(
        "{given:.2f} ms on the largest input; the reference in numpy: {own:.2f} ms.", given=1e3 * given, own=1e3 * own
    )
    return (timing,)
