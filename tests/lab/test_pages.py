import re
from pathlib import Path

import pytest

from manyheads.errors import LabError
from manyheads.lab.effect_plots import draw_plot
from manyheads.lab.effects import find_effects
from manyheads.lab.figures import figure, fill
from manyheads.lab.lab_answers import Answered, answered, shipped_answers
from manyheads.lab.lab_texts import LabText
from manyheads.lab.prediction_table import count_edges, count_verdicts, prediction_page
from manyheads.lab.question_page import render_question
from manyheads.lab.questions import QUESTIONS
from manyheads.lab.result_store import Results, definition_digest
from manyheads.lab.sweep import SweepDone, sweep

from lab.questions_for_tests import ARITHMETIC, run_here

# Texts in which a figure of ours could be typed by hand instead of quoted from the results.
_TYPED = re.compile(r"\d+(?:\.\d+)? ?(?:%|points|个百分点)")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    *_, last = sweep(ARITHMETIC, tmp_path_factory.mktemp("lab"), n_processes=1, run=run_here)
    assert isinstance(last, SweepDone)
    return last.results


def test_figures_are_means_differences_and_rates_of_the_rows(results: Results) -> None:
    known = {"arithmetic": (ARITHMETIC, results)}
    values = results.values("high", "one", "value")
    assert float(figure("mean arithmetic high one value", known)) == pytest.approx(sum(values.values()) / 6, abs=5e-4)
    effect = find_effects(ARITHMETIC, results)[0]
    assert (
        figure("diff arithmetic high low one value", known)
        == f"{effect.mean:+.3f} [{effect.low:+.3f}, {effect.high:+.3f}]"
    )
    assert figure("rate arithmetic high one", known) == "0.01"
    assert figure("seeds arithmetic", known) == "6"
    assert figure("diff arithmetic high@two high@one one value", known) == "+0.000 [+0.000, +0.000]"
    filled = fill(
        LabText({"en": "a {{mean arithmetic low one value}}", "zh": "乙 {{mean arithmetic low one value}}"}), known
    )
    assert filled["en"][2:] == filled["zh"][2:] == figure("mean arithmetic low one value", known)


@pytest.mark.parametrize(
    "words",
    [
        "mean nothing low one value",
        "mean arithmetic none one value",
        "mean arithmetic low one x",
        "odd arithmetic",
        "mean",
    ],
)
def test_a_figure_that_no_result_has_is_an_error(results: Results, words: str) -> None:
    with pytest.raises(LabError, match="The figure"):
        figure(words, {"arithmetic": (ARITHMETIC, results)})


def test_the_page_is_self_contained_and_bilingual(results: Results) -> None:
    page = render_question(Answered(ARITHMETIC, results))
    assert "http" not in page.replace("http-equiv", "")
    assert page.count('<svg class="plot ') == 8  # two plots, each in two languages and two widths
    assert "Higher by +1." in page and "中Higher by +1." in page
    assert "{{" not in page
    assert "0.01 ↑" not in page  # the grid was extended beyond it


def test_results_of_changed_arms_are_refused(results: Results, tmp_path: Path) -> None:
    from dataclasses import replace

    (tmp_path / "results.json").write_bytes(results.to_json())
    assert answered(ARITHMETIC, tmp_path) is not None
    changed = replace(ARITHMETIC, learning_rates=(1e-3,))
    with pytest.raises(LabError, match="another version of this experiment"):
        answered(changed, tmp_path)
    with pytest.raises(LabError, match="has the results of 'arithmetic', not of 'scale'"):
        answered(QUESTIONS["scale"], tmp_path)
    (tmp_path / "results.json").write_bytes(replace(results, size="mail.toml").to_json())
    with pytest.raises(LabError, match=r"has the results on mail\.toml\. Add --on mail\.toml"):
        answered(ARITHMETIC, tmp_path)


def test_a_page_says_whose_results_it_shows(results: Results) -> None:
    assert "your run" in render_question(Answered(ARITHMETIC, results))
    shipped = render_question(Answered(ARITHMETIC, results, is_shipped=True))
    assert "shipped with manyheads" in shipped and "your run" not in shipped


def test_steps_that_were_not_reached_and_shares_are_not_beyond_their_bounds() -> None:
    page = render_question(shipped_answers()["embedding-scale"])
    assert "&gt; 300" in page and "0/6 ✓" in page
    assert "[301, 301]" not in page
    cells = page[page.index('id="cells"') :]
    assert max(float(one) for one in re.findall(r"<small>\[[\d.−]+, (\d+\.\d)\]</small>", cells)) <= 100.0


def test_a_plot_marks_every_seed(results: Results) -> None:
    dots = draw_plot(ARITHMETIC.plots[0], ARITHMETIC, results)["en"]
    broad, narrow = dots.split("</svg>")[:2]
    for one in (broad, narrow):
        assert one.count('class="seed"') == 3 * 2 * 6
        assert one.count('class="mean"') == 3 * 2
    lines = draw_plot(ARITHMETIC.plots[1], ARITHMETIC, results)["zh"]
    assert lines.count("<polyline") == 2 * 3
    assert "中high" in lines


def test_every_question_has_shipped_results_of_its_present_definition() -> None:
    shipped = shipped_answers()
    assert shipped.keys() == QUESTIONS.keys()
    for name, one in shipped.items():
        assert one.results.size == "default"
        assert one.results.definition == definition_digest(QUESTIONS[name], "default"), (
            f"run manyheads lab {name} again"
        )
        assert one.results.stamp.keys() >= {"date", "machine", "python", "torch", "seconds"}
        for arm, condition in one.question.cells():
            n_seeds = len(one.results.measured(arm.name, condition.name))
            assert n_seeds == one.question.n_seeds >= 3, (name, arm.name, condition.name)


def test_every_report_and_answer_renders_in_both_languages() -> None:
    for name, one in shipped_answers().items():
        assert "{{" not in render_question(one), name
        assert one.answer["en"] and one.answer["zh"]
        for branch in (one.question.answer.yes, one.question.answer.no):
            assert "{{" not in "".join(one.fill(branch).by_language().values()), name


def test_no_measured_number_is_typed_into_an_answer() -> None:
    for name, question in QUESTIONS.items():
        labels = [*question.arms, *question.conditions]
        settings = set(
            re.findall(
                r"[\d.]+", " ".join([*question.method.by_language().values(), *(one.label["en"] for one in labels)])
            )
        )
        evidence = [claim.evidence for claim in question.claims]
        for text in (
            text
            for shown in (question.answer.yes, question.answer.no, *evidence)
            for text in shown.by_language().values()
        ):
            rest = re.sub(r"\{\{[^}]*\}\}", "", text)
            typed = {re.sub(r"[^\d.]", "", one) for one in _TYPED.findall(rest)}
            assert typed <= settings, (name, text)


def test_each_question_is_complete() -> None:
    for name, question in QUESTIONS.items():
        assert question.id == name
        assert question.n_seeds >= 3
        assert all(question.differs.by_language().values()), name
        for arm, condition in question.cells():
            setup = question.cell_setup(arm, condition)
            longest = 1000 if setup.convergence is None else 2500  # seconds on one core
            assert setup.steps <= longest and setup.model.get("width", 0) <= 128, name
            if setup.convergence is not None:
                assert 2 * setup.convergence.patience < setup.steps, name
                names = {measure.name for measure in question.measures}
                assert names >= {"accuracy", "steps", "seconds", "trained", "converged"}, name
        assert any(one.is_key for one in question.comparisons), name
        names = [arm.name for arm in question.arms]
        assert len(set(names)) == len(names)
        for one in question.comparisons:
            for condition in (one.condition, one.against_condition or one.condition):
                assert question.condition(condition)
            assert question.arm(one.arm) and question.arm(one.against) and question.measure(one.measure)
            if one.expect == "same":
                assert one.margin > 0, (name, one)
        for plot in question.plots:
            assert question.measure(plot.measure)


@pytest.mark.parametrize(("language", "file"), [("en", "concepts/lab.md"), ("zh", "zh/concepts/lab.md")])
def test_the_table_in_the_documentation_is_that_of_the_shipped_results(language: str, file: str) -> None:
    path = Path(__file__).parents[2] / "docs" / file
    current = prediction_page(shipped_answers(), language)  # type: ignore[arg-type]
    assert path.read_text(encoding="utf-8") == current, "run python -m manyheads.lab.prediction_table"


def test_there_are_clear_effects_and_the_others_are_named() -> None:
    answers = shipped_answers()
    counts = count_verdicts(answers)
    assert counts["clear"] >= 12
    page = prediction_page(answers, "en")
    n_older = sum(one.question.tuned_on is not None and not one.question.converges for one in answers.values())
    assert page.count("tuned cells are at the edge of their grid of learning rates.") == n_older
    assert page.count("older protocol, 2026-") >= 10
    n_edges, n_cells = count_edges({name: one for name, one in answers.items() if one.question.converges})
    assert f"{n_edges} of {n_cells} tuned cells stayed at the edge" in page
    assert page.count("contrary to the prediction |") == counts["contrary"]
    assert page.count("not distinguishable |") == counts["not distinguishable"]
