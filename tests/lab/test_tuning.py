"""Grids of learning rates that grow, runs that fail, and time that is up: nothing is missing silently."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.lab.lab_answers import Answered
from manyheads.lab.question import Question, edge_of
from manyheads.lab.question_page import render_question
from manyheads.lab.result_store import Results, Row, definition_digest, read_results
from manyheads.lab.sweep import RunTrial, SweepDone, sweep
from manyheads.lab.tuning import best_rate, rate_beyond

from lab.questions_for_tests import ARITHMETIC, run_here

SHORT = replace(ARITHMETIC, n_tuning_seeds=1, n_seeds=2)


def finish(question: Question, folder: Path, run: RunTrial = run_here, max_seconds: float | None = None) -> SweepDone:
    *_, last = sweep(question, folder, n_processes=1, run=run, max_seconds=max_seconds)
    assert isinstance(last, SweepDone)
    return last


def peak_at(best: float) -> RunTrial:
    """Trials whose value falls with the distance to a rate, by orders of magnitude."""

    def run(
        question: str, arm: str, condition: str, seed: int, rate: float | None, is_full: bool
    ) -> Mapping[str, float]:
        assert rate is not None
        return {"value": -abs(rate - best) / max(rate, best)}

    return run


@pytest.mark.parametrize(
    ("best", "rates"),
    [
        (0.003, [0.001, 0.003, 0.01]),
        (0.03, [0.001, 0.003, 0.01, 0.033, 0.11]),
        (0.0003, [0.00011, 0.00033, 0.001, 0.003, 0.01]),
    ],
)
def test_a_grid_grows_until_the_best_rate_has_neighbors(tmp_path: Path, best: float, rates: list[float]) -> None:
    results = finish(SHORT, tmp_path, peak_at(best)).results
    assert results.tried_rates("low", "one") == rates
    assert results.chosen_rate("low", "one") not in (rates[0], rates[-1])
    assert results.edge("low", "one") == ""


def test_a_grid_that_can_grow_no_further_is_marked(tmp_path: Path) -> None:
    done = finish(replace(SHORT, max_extension=1), tmp_path, peak_at(5.0))
    assert done.results.tried_rates("low", "one") == [0.001, 0.003, 0.01, 0.033]
    assert done.results.edge("low", "one") == "↑"
    answered = Answered(SHORT, done.results)
    assert len(list(answered.gaps())) == 6
    page = render_question(answered)
    assert "0.033 ↑" in page and "learning rate at the edge of its grid ↑" in page
    assert "学习率停在网格边缘 ↑" in page


def test_a_grid_of_one_rate_is_extended_on_both_sides(tmp_path: Path) -> None:
    results = finish(replace(SHORT, learning_rates=(0.01,)), tmp_path, peak_at(0.01)).results
    assert results.tried_rates("low", "one") == [0.0033, 0.01, 0.03]


def test_the_edge_is_that_of_the_rates_tried() -> None:
    assert [edge_of([1.0, 2.0, 3.0], best) for best in (1.0, 2.0, 3.0)] == ["↓", "", "↑"]
    assert rate_beyond(SHORT, [0.001, 0.003, 0.01], 0.003) is None


def rows(**values: float) -> Callable[[str], list[Row]]:
    return lambda problem="": [Row("low", "one", 1001, 0.1, True, values, problem)]


def test_nearly_equal_scores_are_told_apart_by_speed(converging: Question) -> None:
    tuning = {
        0.001: rows(accuracy=0.999, steps=900)(""),
        0.003: rows(accuracy=0.995, steps=300)(""),
        0.01: rows(accuracy=0.9, steps=100)(""),
    }
    assert best_rate(converging, tuning) == 0.003
    assert best_rate(replace(converging, tuned_on="steps"), tuning) == 0.01


def test_a_rate_at_which_a_run_diverged_is_not_chosen(converging: Question) -> None:
    tuning = {0.001: rows(accuracy=0.5, steps=900)(""), 0.003: rows(accuracy=0.99, steps=300)("diverged")}
    assert best_rate(converging, tuning) == 0.001
    del tuning[0.001]
    assert best_rate(converging, tuning) == 0.003


@pytest.fixture
def converging() -> Question:
    from manyheads.lab.questions import QUESTIONS

    return QUESTIONS["heads"]


def failing(arm_that_fails: str, found: Mapping[str, float]) -> RunTrial:
    def run(
        question: str, arm: str, condition: str, seed: int, rate: float | None, is_full: bool
    ) -> Mapping[str, float]:
        measures = run_here(question, arm, condition, seed, rate, is_full)
        return measures | found if arm == arm_that_fails and seed == 1 else measures

    return run


def test_a_run_that_diverges_in_one_arm_only_is_measured_and_named(tmp_path: Path) -> None:
    results = finish(SHORT, tmp_path, failing("high", {"diverged": 1.0})).results
    assert [row.problem for row in results.measured("high", "one")] == ["diverged", ""]
    assert len(results.values("high", "one", "value")) == 2
    assert not results.problems("low", "one")
    answered = Answered(SHORT, read_results(tmp_path / "results.json"))
    assert answered.results == results
    found = {(arm.name, condition.name): list(map(str, why)) for arm, condition, why in answered.gaps()}
    text = "diverged, so that the weights before that step are measured: 1 of 2 runs"
    assert found == {("high", "one"): [text], ("high", "two"): [text]}
    assert text in render_question(answered)


def test_a_measure_that_is_not_finite_is_left_out_and_named(tmp_path: Path) -> None:
    results = finish(replace(SHORT, n_seeds=3), tmp_path, failing("high", {"value": float("nan")})).results
    assert [row.problem for row in results.measured("high", "one")] == ["nan", "", ""]
    answered = Answered(replace(SHORT, n_seeds=3), results)
    assert answered.effects[0].n_seeds == 2
    assert "a measure is not a finite number and is left out: 1 of 3 runs" in render_question(answered)
    everywhere = finish(SHORT, tmp_path / "all", lambda *_: {"value": float("nan")}).results
    assert len(Answered(SHORT, everywhere).unmeasured) == 2
    assert "not measured" in render_question(Answered(SHORT, everywhere))


def test_a_machine_that_is_too_slow_gives_results_that_name_what_is_missing(tmp_path: Path) -> None:
    done = finish(SHORT, tmp_path, max_seconds=0.0)
    assert done.n_missing > 0
    answered = Answered(SHORT, read_results(tmp_path / "results.json"))
    assert not answered.is_complete and not answered.is_confirmed
    assert len(answered.unmeasured) == len(SHORT.comparisons)
    assert all("0 of 2 seeds were run" in list(map(str, why)) for _, _, why in answered.gaps())
    assert len(list(answered.gaps())) == 6
    page = render_question(answered)
    assert "The run is not complete" in page and "not measured" in page
    resumed = finish(SHORT, tmp_path).results
    assert resumed.rows == finish(SHORT, tmp_path / "whole").results.rows
    assert resumed.stamp["cpu_seconds"] >= 0


def test_seeds_can_be_added_to_an_experiment_that_converges(converging: Question) -> None:
    more = replace(converging, n_seeds=converging.n_seeds + 3)
    assert definition_digest(more, "default") == definition_digest(converging, "default")
    assert definition_digest(replace(SHORT, n_seeds=9), "default") != definition_digest(SHORT, "default")


def test_seeds_are_run_in_turn_so_that_no_arm_has_more_than_another(tmp_path: Path) -> None:
    question = replace(SHORT, n_seeds=4)
    events = sweep(question, tmp_path, n_processes=1, run=run_here)
    counted: list[int] = []
    for event in events:
        row = getattr(event, "row", None)
        if row is not None and not row.is_tuning:
            counted.append(row.seed)
    assert counted == sorted(counted)


def test_a_figure_of_a_missing_cell_says_so(tmp_path: Path) -> None:
    results: Results = finish(SHORT, tmp_path, max_seconds=0.0).results
    assert str(Answered(SHORT, results).fill(SHORT.answer.yes)) == "Higher by (not measured)."
