"""What was predicted and what was measured, for all questions: docs/concepts/lab.md and docs/zh/concepts/lab.md.

`python -m manyheads.lab.prediction_table` writes both; a test fails if they are not those of the shipped results.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from manyheads.lab.lab_answers import Answered, expectation_name, shipped_answers, verdict_name
from manyheads.language import Language, using
from manyheads.messages import _


def prediction_page(answers: Mapping[str, Answered], language: Language) -> str:
    """The page in one language."""
    with using(language):
        return "\n".join(_lines(answers)) + "\n"


def count_verdicts(answers: Mapping[str, Answered]) -> dict[str, int]:
    """How many comparisons came out as predicted, contrary, or not distinguishable, and how many are clear effects.

    Computed values, which do not depend on the seed, do not count as effects.
    """
    effects = [effect for answered in answers.values() for effect in answered.effects]
    n_computed = sum(effect.is_computed for effect in effects)
    n_clear = sum(effect.is_clear and not effect.is_computed for effect in effects)
    counts = {"comparisons": len(effects), "computed": n_computed, "clear": n_clear}
    for verdict in ("as predicted", "contrary", "not distinguishable"):
        counts[verdict] = sum(effect.verdict == verdict for effect in effects)
    return counts


def _lines(answers: Mapping[str, Answered]) -> Iterator[str]:
    title = _("The lab")
    yield f"# {title}"
    yield ""
    yield _(
        "Every “why” of the Transformer as an experiment: `manyheads lab` lists the questions, `manyheads lab scale` "
        "runs one. Below are the results that come with manyheads. Differences are paired by seed, with 95 % "
        "intervals; “clear” means p < 0.05 after Holm's correction over the comparisons of a question; × marks a "
        "ratio. Predictions come from theory and the literature, mostly after a pilot run of one or two seeds; where a "
        "result contradicts one, the prediction stays as it was. Models are tiny, training takes seconds, and learning "
        "rates come from small grids."
    )
    yield ""
    yield _count_sentence(len(answers), count_verdicts(answers))
    for name, answered in answers.items():
        yield ""
        yield f"## {answered.question.title}"
        yield ""
        yield f"`manyheads lab {name}` · {answered.results.stamp['date']}"
        yield ""
        yield str(answered.answer)
        yield ""
        yield _("| comparison | predicted | measured | |")
        yield "| --- | --- | --- | --- |"
        for effect in answered.effects:
            cells = (
                str(answered.describe(effect.comparison)),
                str(expectation_name(effect)),
                answered.difference(effect),
                str(verdict_name(effect)),
            )
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _count_sentence(n_questions: int, counts: Mapping[str, int]) -> str:
    return _(
        "{n_comparisons} comparisons in {n_questions} questions: {n_predicted} as predicted, {n_contrary} contrary to "
        "the prediction, {n_unclear} not distinguishable. {n_clear} are clear effects; {n_computed} compare computed "
        "values, which do not depend on chance. `manyheads lab cards` puts the answers on one page that prints well.",
        n_comparisons=counts["comparisons"],
        n_questions=n_questions,
        n_predicted=counts["as predicted"],
        n_contrary=counts["contrary"],
        n_unclear=counts["not distinguishable"],
        n_clear=counts["clear"],
        n_computed=counts["computed"],
    )


if __name__ == "__main__":
    for _language, _file in (("en", "concepts/lab.md"), ("zh", "zh/concepts/lab.md")):
        Path("docs", _file).write_text(prediction_page(shipped_answers(), _language), encoding="utf-8")
