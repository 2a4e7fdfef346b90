"""The data files of the lab: a question or a topic of cards is one TOML file with its texts in every language.

Every text is a table with `en` and the other languages. English is required; a language that is missing is reported
once and shown in English. Translations have to quote the same figures. A question's texts stand beside what they
describe: the `en` of an arm, a condition or a measure is its label, that of a comparison the reason for its prediction,
that of a source its finding. Values of `setup`, `changes` and `full` are those of `Setup`, where

    { type = "Lookup", n_keys = 8 }                           is a task of `lab_tasks`
    { function = "variants:with_score_scale", power = 0.5 }   is a function of `trials`, with arguments
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from manyheads.bounded_files import BoundsError, parse_toml, read_bounded
from manyheads.errors import LabError
from manyheads.lab import lab_tasks
from manyheads.lab.convergence import Convergence
from manyheads.lab.lab_texts import LabText
from manyheads.lab.question import (
    COMMON_MEASURES,
    NO_CONDITION,
    ONLY,
    Answer,
    Arm,
    ArmComparison,
    Asked,
    Better,
    Claim,
    ClaimVerdict,
    Condition,
    Expectation,
    Measure,
    Plot,
    PlotKind,
    Question,
    Source,
)
from manyheads.lab.setup import Setup
from manyheads.language import LANGUAGES, Language
from manyheads.messages import _
from manyheads.settings import did_you_mean

_FIGURE = re.compile(r"\{\{.*?\}\}")
_TRIALS = "manyheads.lab.trials"
_SETUP = [field.name for field in fields(Setup)]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that circulates, and the number that refutes it; both may quote figures."""

    claim: LabText
    refutation: LabText


@dataclass(frozen=True)
class FollowUp:
    """What an interviewer asks next, with a one-sentence answer."""

    question: LabText
    answer: LabText


@dataclass(frozen=True, kw_only=True)
class AnswerCard:
    """One interview question. Texts may quote figures as {{…}}: of stored results, see `figures`, or computed ones.

    For {{computed GROUP NAME}} see `card_computations`.
    """

    id: str
    question: LabText
    answer: LabText  # two to four sentences
    formula: str = ""  # plain text with Unicode, such as softmax(QKᵀ/√d_k)V
    # Evidence: a plot of an experiment, as (question id, number of its plot), or lines of a computation.
    plot: tuple[str, int] | None = None
    computation: tuple[LabText, ...] = ()
    command: str = ""  # what to run to see it
    wrong_answers: tuple[WrongAnswer, ...] = ()
    follow_ups: tuple[FollowUp, ...] = ()


@dataclass(frozen=True)
class Revision:
    """What an earlier version claimed about a question, and what a newer run says; `after` may quote figures."""

    question: str
    before: LabText
    after: LabText


def read_question(path: Path) -> Question:
    """Read and check the file of a question; its id is the file's name."""
    table = _open(path)
    arms = tuple(Arm(name, part.text(), part.values("changes")) for name, part in table.named("arms"))
    conditions = tuple(Condition(name, part.text(), part.values("changes")) for name, part in table.named("conditions"))
    measures = tuple(_measure(name, part) for name, part in table.named("measures"))
    arm_names = [arm.name for arm in arms]
    condition_names = [condition.name for condition in conditions or NO_CONDITION]
    measure_names = [measure.name for measure in measures]
    comparisons = tuple(
        ArmComparison(
            arm=part.choice("arm", arm_names),
            against=part.choice("against", arm_names),
            measure=part.choice("measure", measure_names),
            expect=part.choice("expect", get_args(Expectation)),
            because=part.text(),
            condition=part.choice("condition", condition_names, ONLY),
            against_condition=part.choice("against_condition", condition_names, None),
            margin=part.take("margin", float, 0.0),
            is_key=part.take("is_key", bool, False),
        )
        for part in table.listed("comparisons")
    )
    plots = tuple(
        Plot(
            measure=part.choice("measure", measure_names),
            kind=part.choice("kind", get_args(PlotKind), "dots"),
            conditions=part.names("conditions", condition_names),
            arms=part.names("arms", arm_names),
        )
        for part in table.listed("plots")
    )
    answer = table.table("answer")
    setup = table.table("setup", is_optional=True)
    question = Question(
        id=path.stem,
        order=table.take("order", int),
        asks=table.choice("asks", get_args(Asked)),
        title=table.table("title").text(),
        differs=table.table("differs").text(),
        method=table.table("method").text(),
        arms=arms,
        conditions=conditions or NO_CONDITION,
        measures=measures,
        comparisons=comparisons,
        answer=Answer(answer.table("yes").text(), answer.table("no").text()),
        plots=plots,
        sources=tuple(Source(part.take("citation", str), part.text()) for part in table.listed("sources")),
        claims=tuple(
            Claim(
                part.table("claim").text(),
                part.choice("verdict", get_args(ClaimVerdict)),
                part.table("evidence").text(),
            )
            for part in table.listed("claims")
        ),
        setup=None if setup is None else setup.setup(),
        trial=table.function("trial"),
        tuned_on=table.choice("tuned_on", measure_names, None),
        learning_rates=table.rates("learning_rates", Question.learning_rates),
        max_extension=table.take("max_extension", int, Question.max_extension),
        n_tuning_seeds=table.take("n_tuning_seeds", int, Question.n_tuning_seeds),
        n_seeds=table.take("n_seeds", int, Question.n_seeds),
        skipped=tuple((arm, condition) for arm, condition in table.take("skipped", list, [])),
        full=table.values("full"),
        measures_time=table.take("measures_time", bool, False),
    )
    table.close()
    return question


def read_cards(path: Path) -> tuple[int, tuple[AnswerCard, ...]]:
    """Read and check the cards of one topic, and where the topic stands on the page."""
    table = _open(path)
    order = table.take("order", int)
    cards = tuple(_card(part) for part in table.listed("cards"))
    table.close()
    return order, cards


def read_revisions(path: Path) -> tuple[Revision, ...]:
    """Read and check the claims that a newer run changed."""
    table = _open(path)
    revisions = tuple(
        Revision(part.take("question", str), part.table("before").text(), part.table("after").text())
        for part in table.listed("revisions")
    )
    table.close()
    return revisions


def _measure(name: str, table: "_Table") -> Measure:
    """A measure; one without a text is common to many questions."""
    if not table.keys() and name in COMMON_MEASURES:
        return COMMON_MEASURES[name]
    return Measure(
        name,
        table.text(),
        better=table.choice("better", get_args(Better), None),
        is_percentage=table.take("is_percentage", bool, False),
        digits=table.take("digits", int, Measure.digits),
        is_logarithmic=table.take("is_logarithmic", bool, False),
        is_censored=table.take("is_censored", bool, False),
    )


def _card(table: "_Table") -> AnswerCard:
    plot = table.table("plot", is_optional=True)
    return AnswerCard(
        id=table.take("id", str),
        question=table.table("question").text(),
        answer=table.table("answer").text(),
        formula=table.take("formula", str, ""),
        plot=None if plot is None else (plot.take("question", str), plot.take("number", int)),
        computation=tuple(part.text() for part in table.listed("computation")),
        command=table.take("command", str, ""),
        wrong_answers=tuple(
            WrongAnswer(part.table("claim").text(), part.table("refutation").text())
            for part in table.listed("wrong_answers")
        ),
        follow_ups=tuple(
            FollowUp(part.table("question").text(), part.table("answer").text()) for part in table.listed("follow_ups")
        ),
    )


def _open(path: Path) -> "_Table":
    try:
        return _Table(parse_toml(read_bounded(path)), str(path), "")
    except (OSError, BoundsError) as error:
        raise LabError(_("{path} cannot be read: {error}.", path=path, error=error)) from None


_REQUIRED = object()


class _Table:
    """A table of a data file, whose keys are taken one by one; `close` finds those that nobody asked for."""

    def __init__(self, content: Mapping[str, Any], path: str, key: str) -> None:
        self._left = dict(content)
        self._path, self._key = path, key
        self._parts: list[_Table] = []
        self._asked: list[str] = []

    def keys(self) -> Iterable[str]:
        """The keys that are left."""
        return self._left.keys()

    def take(self, key: str, kind: type, default: Any = _REQUIRED) -> Any:
        """The value of a key, which has to be of this type."""
        self._asked.append(key)
        if key not in self._left:
            if default is _REQUIRED:
                raise LabError(_("{where} is missing.", where=self._where(key)))
            return default
        value = self._left.pop(key)
        if not isinstance(value, (int, float) if kind is float else kind) or isinstance(value, bool) != (kind is bool):
            raise self._wrong_type(key, value, kind)
        return value

    def choice(self, key: str, known: Iterable[str], default: Any = _REQUIRED) -> Any:
        """A name, which has to be one of these."""
        value = self.take(key, str, default)
        if value is not default and value not in (names := list(known)):
            raise self._unknown_name(key, value, names)
        return value

    def names(self, key: str, known: list[str]) -> tuple[str, ...]:
        """A list of names, each of which has to be one of these."""
        found = self.take(key, list, [])
        for name in found:
            if name not in known:
                raise self._unknown_name(key, name, known)
        return tuple(found)

    def table(self, key: str, *, is_optional: bool = False) -> "_Table | Any":
        """The table below a key."""
        content = self.take(key, dict, None if is_optional else _REQUIRED)
        return None if content is None else self._part(content, key)

    def named(self, key: str) -> Iterator[tuple[str, "_Table"]]:
        """The tables below a key, by name."""
        for name, content in self.take(key, dict, {}).items():
            yield name, self._part(content, f"{key}.{name}")

    def listed(self, key: str) -> Iterator["_Table"]:
        """The tables of a list."""
        for number, content in enumerate(self.take(key, list, []), 1):
            yield self._part(content, f"{key}[{number}]")

    def text(self) -> LabText:
        """The text of this table in every language that it has."""
        found: dict[Language, str] = {"en": self.take("en", str)}
        for language in LANGUAGES:
            if language == "en":
                continue
            translated = self.take(language, str, None)
            if translated is None:
                logger.warning(_("{where} is missing: the text is in English.", where=self._where(language)))
                continue
            if sorted(_FIGURE.findall(translated)) != sorted(_FIGURE.findall(found["en"])):
                raise LabError(_("{where} quotes other figures than the English text.", where=self._where(language)))
            found[language] = translated
        return LabText(found)

    def values(self, key: str) -> dict[str, Any]:
        """Values of a setup by name."""
        values = self.take(key, dict, {})
        for name in values:
            if name.partition(".")[0] not in _SETUP:
                raise self._unknown_name(key, name, _SETUP)
        return {name: self._built(value, f"{key}.{name}") for name, value in values.items()}

    def rates(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """A grid of learning rates, which can be extended on both sides: positive, ascending."""
        rates = self.take(key, list, list(default))
        numbers = [rate for rate in rates if isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0]
        if not numbers or len(numbers) < len(rates) or sorted(set(numbers)) != numbers:
            raise LabError(
                _(
                    "{where} is {value!r}, which cannot be extended on both sides. Give positive rates in ascending "
                    "order, such as [0.001, 0.003, 0.01].",
                    where=self._where(key),
                    value=rates,
                )
            )
        return tuple(numbers)

    def setup(self) -> Setup:
        """This table as a setup."""
        values = {name: self._built(value, name) for name, value in self._left.items()}
        self._left.clear()
        try:
            if "convergence" in values:
                values["convergence"] = Convergence(**values["convergence"])
            return Setup(**values)
        except TypeError as error:
            raise LabError(f"{self._path}: {self._key}: {error}.") from None

    def function(self, key: str) -> Any:
        """The function of `trials` that a key names as MODULE:FUNCTION."""
        return self._function(self.take(key, str), key)

    def close(self) -> None:
        """Refuse keys that are left, here and in every table below."""
        for key in self._left:
            hint = did_you_mean(key, self._asked)
            raise LabError(_("{where} is unknown. {hint}", where=self._where(key), hint=hint))
        for part in self._parts:
            part.close()

    def _part(self, content: Any, key: str) -> "_Table":
        if not isinstance(content, dict):
            raise self._wrong_type(key, content, dict)
        part = _Table(content, self._path, f"{self._key}.{key}".removeprefix("."))
        self._parts.append(part)
        return part

    def _built(self, value: Any, key: str) -> Any:
        """A value of a setup: a task, a function, or the value itself; a list becomes a tuple, which can be hashed."""
        if isinstance(value, list):
            return tuple(self._built(item, key) for item in value)
        if not isinstance(value, dict):
            return value
        inner = {name: self._built(item, f"{key}.{name}") for name, item in value.items()}
        try:
            if "type" in inner:
                return getattr(lab_tasks, inner.pop("type"))(**inner)
            if "function" in inner:
                function = self._function(inner.pop("function"), key)
                return partial(function, **inner) if inner else function
        except (AttributeError, TypeError) as error:
            raise LabError(f"{self._where(key)}: {error}.") from None
        return inner

    def _function(self, name: str, key: str) -> Any:
        module, _colon, function = name.partition(":")
        try:
            return getattr(import_module(f"{_TRIALS}.{module}"), function)
        except (ImportError, AttributeError, ValueError):
            message = _("{where} is {name!r}, which no module of lab/trials has.", where=self._where(key), name=name)
            raise LabError(message) from None

    def _wrong_type(self, key: str, value: object, kind: type) -> LabError:
        where, name = self._where(key), kind.__name__
        return LabError(_("{where} is {value!r}, which is not of type {kind}.", where=where, value=value, kind=name))

    def _unknown_name(self, key: str, value: object, known: Iterable[str]) -> LabError:
        hint = did_you_mean(str(value), known)
        return LabError(_("{where} is {value!r}. {hint}", where=self._where(key), value=value, hint=hint))

    def _where(self, key: str) -> str:
        """The file and the full name of a key."""
        return f"{self._path}: {f'{self._key}.{key}'.removeprefix('.')}"
