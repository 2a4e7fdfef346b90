from pathlib import Path

from manyheads.lab.lab_answers import Answered
from manyheads.lab.replication import compare_fresh, replicate
from manyheads.lab.result_store import Results
from manyheads.lab.sweep import SweepDone, sweep

from lab.questions_for_tests import ARITHMETIC, run_here


def stored(folder: Path) -> Answered:
    *_, last = sweep(ARITHMETIC, folder, n_processes=1, run=run_here)
    assert isinstance(last, SweepDone)
    return Answered(ARITHMETIC, last.results)


def fresh_of(answered: Answered, rows: tuple) -> Results:
    return Results(ARITHMETIC.id, "default", answered.results.definition, {}, rows, {})


def test_key_comparisons_are_repeated_with_seeds_that_were_never_used(tmp_path: Path) -> None:
    answered = stored(tmp_path / "stored")
    rows = replicate(answered, tmp_path / "fresh", 3, run=run_here)
    assert {(row.arm, row.condition) for row in rows} == {("high", "one"), ("low", "one")}
    assert {row.seed for row in rows} == {101, 102, 103}
    assert not {row.seed for row in rows} & {row.seed for row in answered.results.rows}
    assert {row.learning_rate for row in rows if row.arm == "high"} == {answered.results.chosen_rate("high", "one")}
    (repeated,) = compare_fresh(answered, fresh_of(answered, rows))
    assert repeated.is_same
    assert repeated.stored.startswith("+0.99") or repeated.stored.startswith("+1.0")
    assert abs(float(repeated.difference.replace("−", "-"))) < 0.5
    again = replicate(answered, tmp_path / "fresh", 3, run=lambda *_: {})  # stored trials are not run again
    assert again == rows


def test_a_replication_without_time_says_that_nothing_was_measured(tmp_path: Path) -> None:
    answered = stored(tmp_path / "stored")
    rows = replicate(answered, tmp_path / "fresh", 3, end=0.0, run=run_here)
    assert rows == ()
    (repeated,) = compare_fresh(answered, fresh_of(answered, rows))
    assert (repeated.fresh, repeated.difference, repeated.is_same) == ("not measured", "–", None)
