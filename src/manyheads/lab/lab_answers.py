"""What the stored results say: the answer of each question, and the table of predictions against measurements."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from manyheads.errors import LabError
from manyheads.lab.effects import Effect, find_effects
from manyheads.lab.figures import fill, format_difference
from manyheads.lab.question import Comparison, Question
from manyheads.lab.questions import QUESTIONS
from manyheads.lab.result_store import RESULTS, Results, definition_digest, read_results, shipped_results
from manyheads.language import Bilingual
from manyheads.settings import did_you_mean

_EXPECTATIONS = {
    "higher": Bilingual("higher", "更高"),
    "lower": Bilingual("lower", "更低"),
    "same": Bilingual("the same", "相同"),
}
_VERDICTS = {
    "as predicted": Bilingual("as predicted", "符合预测"),
    "contrary": Bilingual("contrary to the prediction", "与预测相反"),
    "not distinguishable": Bilingual("not distinguishable", "没有可分辨的差异"),
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
    def is_confirmed(self) -> bool:
        """Whether every key comparison came out as predicted."""
        keys = [effect for effect in self.effects if effect.comparison.is_key]
        n_asked = sum(comparison.is_key for comparison in self.question.comparisons)
        return len(keys) == n_asked and all(effect.verdict == "as predicted" for effect in keys)

    @property
    def answer(self) -> Bilingual:
        """The answer in plain words, with its figures."""
        return self.fill(self.question.answer.yes if self.is_confirmed else self.question.answer.no)

    @property
    def short_answer(self) -> Bilingual:
        """The first sentence of the answer."""
        answer = self.answer
        return Bilingual(f"{answer.en.split('. ')[0].rstrip('.')}.", f"{answer.zh.split('。')[0]}。")

    def fill(self, text: Bilingual) -> Bilingual:
        """A text of this question with its figures."""
        return fill(text, {self.question.id: (self.question, self.results)})

    def describe(self, comparison: Comparison) -> Bilingual:
        """What is compared: "not scaled v divided by √d_k (d_k = 512), accuracy"."""
        question = self.question
        arm, against = (question.arm(name).label for name in (comparison.arm, comparison.against))
        measure = question.measure(comparison.measure).label
        own = question.condition(comparison.condition).label
        other = question.condition(comparison.against_condition or comparison.condition).label
        texts = []
        for index in range(2):
            where = f" ({own[index]})" if own[index] else ""
            versus, colon = (" v ", ": ") if index == 0 else (" 对 ", "：")
            sides = f"{arm[index]}{versus}{against[index]}{where}"
            if comparison.against_condition:
                sides = f"{arm[index]}{where}{versus}{against[index]} ({other[index]})"
            texts.append(f"{sides}{colon}{measure[index]}")
        return Bilingual(*texts)

    def difference(self, effect: Effect) -> str:
        """An effect as text."""
        measure = self.question.measure(effect.comparison.measure)
        return format_difference(effect.mean, effect.low, effect.high, measure)


def expectation_name(effect: Effect) -> Bilingual:
    """The predicted direction in words."""
    return _EXPECTATIONS[effect.comparison.expect]


def verdict_name(effect: Effect) -> Bilingual:
    """The outcome in words; a value that does not depend on the seed is marked, since it is no evidence."""
    verdict = _VERDICTS[effect.verdict]
    return Bilingual(f"{verdict.en} (computed)", f"{verdict.zh}（计算值）") if effect.is_computed else verdict


def find_question(name: str) -> Question:
    """The question with this id."""
    if name not in QUESTIONS:
        raise LabError(f"{name!r} is not a question of the lab. {did_you_mean(name, QUESTIONS)}")
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
        raise LabError(f"{path} has the results of {results.question!r}, not of {question.id!r}.")
    if not recipe and results.size not in ("default", "full"):
        raise LabError(f"{path} has the results on {results.size}. Add --on {results.size} to see them.")
    if results.definition != definition_digest(question, recipe or results.size, data):
        raise LabError(
            f"{path} is of another version of this experiment. Run it again: manyheads lab {question.id} --fresh"
        )
    return Answered(question, results)


def shipped_answers() -> Mapping[str, Answered]:
    """Every question that has shipped results."""
    found = {name: answered(question) for name, question in QUESTIONS.items()}
    return {name: one for name, one in found.items() if one is not None}
