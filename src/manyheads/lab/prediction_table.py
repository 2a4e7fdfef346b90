"""What was predicted and what was measured, for all questions: docs/concepts/lab.md and docs/zh/concepts/lab.md.

`python -m manyheads.lab.prediction_table` writes both; a test fails if they are not those of the shipped results.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from manyheads.lab.figures import figure, fill
from manyheads.lab.lab_answers import Answered, expectation_name, shipped_answers, verdict_name
from manyheads.lab.lab_files import read_revisions
from manyheads.lab.question import Arm, Condition
from manyheads.lab.question_page import asked_and_stopped
from manyheads.lab.replication import Repeated, compare_fresh, shipped_replication
from manyheads.lab.result_store import Results
from manyheads.language import Language, using
from manyheads.messages import _

_REVISIONS = Path(__file__).parent / "revisions.toml"


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


def count_edges(answers: Mapping[str, Answered]) -> tuple[int, int]:
    """How many tuned cells chose the highest or the lowest rate that was tried, and how many tuned cells there are."""
    cells = [
        (one, arm, condition)
        for one in answers.values()
        for arm, condition in one.question.cells()
        if one.results.tried_rates(arm.name, condition.name)
    ]
    return sum(bool(one.results.edge(arm.name, condition.name)) for one, arm, condition in cells), len(cells)


def _lines(answers: Mapping[str, Answered]) -> Iterator[str]:
    title = _("The lab")
    yield f"# {title}"
    yield ""
    yield _(
        "Every “why” of the Transformer as an experiment: `manyheads lab` lists the questions, `manyheads lab scale` "
        "runs one. Below are the results that come with manyheads. Differences are paired by seed, with 95 % "
        "intervals; “clear” means p < 0.05 after Holm's correction over the comparisons of a question; × marks a "
        "ratio. Predictions come from theory and the literature, mostly after a pilot run of one or two seeds; where a "
        "result contradicts one, the prediction stays as it was. Models are tiny."
    )
    yield ""
    yield _(
        "A question asks about ability (what an arm can learn) or about speed (how soon it learns it). Runs of the "
        "newer protocol end when they stop improving on a validation set, and report both. Their learning rates are "
        "tuned for each arm and condition until rates on both sides of the best one are tried. Questions that were not "
        "run again say so: there, an arm that learns slowly looks like one that cannot learn."
    )
    yield ""
    yield _count_sentence(len(answers), count_verdicts(answers))
    yield ""
    yield from _protocols(answers)
    yield ""
    yield from _revisions(answers)
    for name, answered in answers.items():
        yield ""
        yield from _question(name, answered)


def _protocols(answers: Mapping[str, Answered]) -> Iterator[str]:
    """How many questions were run by which protocol, the edges of their grids, and the time they took."""
    newer = {name: one for name, one in answers.items() if one.question.converges}
    older = {name: one for name, one in answers.items() if name not in newer and one.question.tuned_on is not None}
    n_new, n_new_cells = count_edges(newer)
    n_old, n_old_cells = count_edges(older)
    seconds = sum(int(one.results.stamp.get("cpu_seconds", 0)) for one in newer.values())
    yield _(
        "Newer protocol: {names}. {n_edges} of {n_cells} tuned cells stayed at the edge of their grid. These runs took "
        "{minutes:.0f} minutes of processor time: `manyheads lab QUESTION --fresh --processes 1`.",
        names=", ".join(f"`{name}`" for name in newer),
        n_edges=n_new,
        n_cells=n_new_cells,
        minutes=seconds / 60,
    )
    yield ""
    yield _(
        "Older protocol, a fixed number of steps and a grid that was not extended: {names}. {n_edges} of {n_cells} "
        "tuned cells are at the edge of their grid.",
        names=", ".join(f"`{name}`" for name in older),
        n_edges=n_old,
        n_cells=n_old_cells,
    )


def _revisions(answers: Mapping[str, Answered]) -> Iterator[str]:
    """What earlier versions of this page claimed, and what the newer protocol measures."""
    known = {name: (one.question, one.results) for name, one in answers.items()}
    heading = _("Claims that a second look changed")
    yield f"## {heading}"
    yield ""
    yield _("| question | before | after |")
    yield "| --- | --- | --- |"
    for revision in read_revisions(_REVISIONS):
        yield f"| `{revision.question}` | {revision.before} | {fill(revision.after, known)} |"
    n_edges, n_cells = count_edges({name: one for name, one in answers.items() if one.question.converges})
    yield "| {} | {} | {} |".format(
        _("all"),
        _("143 of 170 tuned cells chose an end of their grid of learning rates"),
        _("{n_edges} of {n_cells} in the questions that were run again", n_edges=n_edges, n_cells=n_cells),
    )


def _question(name: str, answered: Answered) -> Iterator[str]:
    yield f"## {answered.question.title}"
    yield ""
    yield f"`manyheads lab {name}` · {answered.results.stamp['date']}"
    yield ""
    yield str(answered.answer)
    yield ""
    yield str(asked_and_stopped(answered))
    yield ""
    if answered.question.converges:
        yield from _ability_and_speed(name, answered)
        yield ""
    elif answered.question.tuned_on is not None:
        n_edges, n_cells = count_edges({name: answered})
        yield _(
            "{n_edges} of {n_cells} tuned cells are at the edge of their grid of learning rates.",
            n_edges=n_edges,
            n_cells=n_cells,
        )
        yield ""
    yield _("| comparison | predicted | measured | |")
    yield "| --- | --- | --- | --- |"
    for effect in answered.effects:
        yield _row(
            str(answered.describe(effect.comparison)),
            str(expectation_name(effect)),
            answered.difference(effect),
            str(verdict_name(effect)),
        )
    for comparison in answered.unmeasured:
        yield _row(str(answered.describe(comparison)), "", _("not measured"), "")
    fresh = shipped_replication(name)
    if fresh is not None:
        yield ""
        yield from _replication(answered, fresh)


def _ability_and_speed(name: str, answered: Answered) -> Iterator[str]:
    """Each cell: its final score, its steps to the level, how many of its runs converged, its rate."""
    question, results = answered.question, answered.results
    known = {name: (question, results)}
    yield _("| arm | final accuracy, % | steps to the level | seconds | converged | learning rate |")
    yield "| --- | --- | --- | --- | --- | --- |"
    for arm, condition in question.cells():
        cell = f"{arm.name} {condition.name}"
        rows = results.measured(arm.name, condition.name)
        if not rows:
            yield _row(_cell_name(arm, condition), _("not measured"), "", "", "", "")
            continue
        n_converged = sum(row.measures.get("converged", 0.0) > 0 for row in rows)
        yield _row(
            _cell_name(arm, condition),
            figure(f"mean {name} {cell} accuracy", known),
            figure(f"steps {name} {cell}", known),
            figure(f"mean {name} {cell} seconds", known),
            f"{n_converged}/{len(rows)}",
            figure(f"rate {name} {cell}", known),
        )


def _replication(answered: Answered, fresh: Results) -> Iterator[str]:
    yield _("| again with fresh seeds | stored | fresh | difference |")
    yield "| --- | --- | --- | --- |"
    for repeated in compare_fresh(answered, fresh):
        yield _row(str(repeated.what), repeated.stored, repeated.fresh, _agreement(repeated))


def _agreement(repeated: Repeated) -> str:
    if repeated.is_same is None:
        return repeated.difference
    same = _("same outcome") if repeated.is_same else _("other outcome")
    return f"{repeated.difference} ({same})"


def _cell_name(arm: Arm, condition: Condition) -> str:
    return f"{arm.label} · {condition.label}".removesuffix(" · ")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


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
