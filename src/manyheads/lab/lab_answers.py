"""What the stored results say: the answer of each question, and the table of predictions against measurements."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from manyheads.errors import LabError
from manyheads.lab.card_computations import fill_computed
from manyheads.lab.effects import Effect, find_effects
from manyheads.lab.figures import fill, format_difference
from manyheads.lab.lab_texts import LabText, Shown, changed, in_each_language
from manyheads.lab.question import Arm, ArmComparison, Condition, Question
from manyheads.lab.questions import QUESTIONS
from manyheads.lab.result_store import RESULTS, Results, definition_digest, read_results, shipped_results
from manyheads.messages import Message, _
from manyheads.settings import did_you_mean

_EXPECTATIONS = {
    "higher": Message("higher"),
    "lower": Message("lower"),
    "same": Message("the same"),
}
_PROBLEMS = {
    "diverged": Message("diverged, so that the weights before that step are measured"),
    "nan": Message("a measure is not a finite number and is left out"),
}
_VERDICTS = {
    "as predicted": Message("as predicted"),
    "contrary": Message("contrary to the prediction"),
    "not distinguishable": Message("not distinguishable"),
}


@dataclass(frozen=True)
class Answered:
    """A question with its results."""

    question: Question
    results: Results
    is_shipped: bool = False  # the results come with manyheads; otherwise this user's own

    @cached_property
    def effects(self) -> list[Effect]:
        """The paired effects, corrected for their number."""
        return find_effects(self.question, self.results)

    @property
    def unmeasured(self) -> list[ArmComparison]:
        """The comparisons that have no effect, because a side has fewer than two seeds."""
        measured = [effect.comparison for effect in self.effects]
        return [comparison for comparison in self.question.comparisons if comparison not in measured]

    def gaps(self) -> Iterator[tuple[Arm, Condition, list[Message]]]:
        """Every cell that is not as it should be, and why: seeds that are missing, runs that failed, a rate at an edge.

        Arms that could not run at all are listed in `Results.impossible`.
        """
        for arm, condition in self.question.cells():
            if arm.name not in self.results.impossible:
                found = list(self._faults(arm, condition))
                if found:
                    yield arm, condition, found

    def _faults(self, arm: Arm, condition: Condition) -> Iterator[Message]:
        cell, n_seeds = (arm.name, condition.name), self.question.n_seeds
        rows, failed = self.results.measured(*cell), self.results.problems(*cell)
        if len(rows) < n_seeds:
            yield Message("{n_done} of {n_seeds} seeds were run", n_done=len(rows), n_seeds=n_seeds)
        for problem, text in _PROBLEMS.items():
            n_failed = sum(row.problem == problem for row in failed)
            if n_failed:
                yield Message(
                    "{problem}: {n_failed} of {n_seeds} runs", problem=text, n_failed=n_failed, n_seeds=n_seeds
                )
        slow = sum(row.measures.get("converged") == 0.0 for row in rows)
        if slow:
            yield Message("did not converge: {n_slow} of {n_seeds} runs", n_slow=slow, n_seeds=n_seeds)
        if edge := self.results.edge(*cell):
            yield Message("learning rate at the edge of its grid {edge}", edge=edge)

    @property
    def is_complete(self) -> bool:
        """Whether every cell that can run has all its seeds."""
        n_seeds = self.question.n_seeds
        cells = [cell for cell in self.question.cells() if cell[0].name not in self.results.impossible]
        return all(len(self.results.measured(arm.name, condition.name)) >= n_seeds for arm, condition in cells)

    @property
    def is_confirmed(self) -> bool:
        """Whether every key comparison came out as predicted."""
        keys = [effect for effect in self.effects if effect.comparison.is_key]
        n_asked = sum(comparison.is_key for comparison in self.question.comparisons)
        return len(keys) == n_asked and all(effect.verdict == "as predicted" for effect in keys)

    @property
    def answer(self) -> LabText:
        """The answer in plain words, with its figures; if seeds are missing, the first sentence says so."""
        if not self.is_complete:
            gap = in_each_language(lambda: _("The run is not complete: some cells have fewer seeds, or none.") + " ")
            answer = self.fill(self.question.answer.no)
            return LabText({language: text + answer[language] for language, text in gap.by_language().items()})
        return self.fill(self.question.answer.yes if self.is_confirmed else self.question.answer.no)

    @property
    def short_answer(self) -> LabText:
        """The first sentence of the answer."""
        return changed(self.answer, _first_sentence)

    def fill(self, text: Shown) -> LabText:
        """A text of this question with its figures."""
        return fill(fill_computed(changed(text, str)), {self.question.id: (self.question, self.results)})

    def describe(self, comparison: ArmComparison) -> Message:
        """What is compared: "not scaled v divided by √d_k (d_k = 512), accuracy"."""
        question = self.question
        arm, against = (question.arm(name).label for name in (comparison.arm, comparison.against))
        measure = question.measure(comparison.measure).label
        own = question.condition(comparison.condition).label
        other = question.condition(comparison.against_condition or comparison.condition).label
        if comparison.against_condition:
            return Message(
                "{arm} ({condition}) v {against} ({other}): {measure}",
                arm=arm,
                condition=own,
                against=against,
                other=other,
                measure=measure,
            )
        if str(own):
            return Message(
                "{arm} v {against} ({condition}): {measure}", arm=arm, against=against, condition=own, measure=measure
            )
        return Message("{arm} v {against}: {measure}", arm=arm, against=against, measure=measure)

    def difference(self, effect: Effect) -> str:
        """An effect as text; ≥ or ≤ if a side is a bound, because some of its runs did not reach the level."""
        measure = self.question.measure(effect.comparison.measure)
        text = format_difference(effect.mean, effect.low, effect.high, measure)
        if effect.bound == "both":
            return _("{difference} (of two bounds)", difference=text)
        return f"{effect.bound} {text}".strip()


def expectation_name(effect: Effect) -> Message:
    """The predicted direction in words."""
    return _EXPECTATIONS[effect.comparison.expect]


def verdict_name(effect: Effect) -> Message:
    """The outcome in words; a value that does not depend on the seed is marked, since it is no evidence."""
    verdict = _VERDICTS[effect.verdict]
    return Message("{verdict} (computed)", verdict=verdict) if effect.is_computed else verdict


def _first_sentence(text: str) -> str:
    stop, mark = ("。", "。") if "。" in text else (". ", ".")
    return text.split(stop)[0].rstrip(mark) + mark


def find_question(name: str) -> Question:
    """The question with this id."""
    if name not in QUESTIONS:
        raise LabError(
            _("{name!r} is not a question of the lab. {hint}", name=name, hint=did_you_mean(name, QUESTIONS))
        )
    return QUESTIONS[name]


def answered(question: Question, folder: Path | None = None) -> Answered | None:
    """A question with the results in a folder, or else with the shipped ones; None if there are none."""
    if folder is not None and (folder / RESULTS).exists():
        return own_answer(question, folder)
    shipped = shipped_results(question.id)
    return None if shipped is None else Answered(question, shipped, is_shipped=True)


def own_answer(question: Question, folder: Path, recipe: str = "", data: str = "") -> Answered:
    """A question with the results in a folder: of its usual task, or of a recipe, which `data` identifies."""
    path = folder / RESULTS
    results = read_results(path)

    if results.question != question.id:
        raise LabError(
            _(
                "{path} has the results of {found!r}, not of {asked!r}.",
                path=path,
                found=results.question,
                asked=question.id,
            )
        )
    if not recipe and results.size not in ("default", "full"):
        raise LabError(
            _("{path} has the results on {recipe}. Add --on {recipe} to see them.", path=path, recipe=results.size)
        )
    if results.definition != definition_digest(question, recipe or results.size, data):
        raise LabError(
            _(
                "{path} is of another version of this experiment. Run it again: manyheads lab {question} --fresh",
                path=path,
                question=question.id,
            )
        )
    return Answered(question, results)


def shipped_answers() -> Mapping[str, Answered]:
    """Every question that has shipped results."""
    found = {name: answered(question) for name, question in QUESTIONS.items()}
    return {name: answer for name, answer in found.items() if answer is not None}
