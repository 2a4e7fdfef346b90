import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from manyheads.errors import LabError, TrainingError
from manyheads.lab.effects import find_effects
from manyheads.lab.question import Question
from manyheads.lab.result_store import ROWS, Results, read_results
from manyheads.lab.sweep import SweepDone, SweepStarted, TrialDone, sweep
from manyheads.storage import locked

from lab.questions_for_tests import ARITHMETIC, TRAINING, die, run_here


def finish(question: Question, folder: Path, n_processes: int = 1) -> Results:
    *_, last = sweep(question, folder, n_processes=n_processes, run=run_here)
    assert isinstance(last, SweepDone)
    return last.results


def test_each_cell_is_tuned_on_other_seeds_and_run_with_the_best_rate(tmp_path: Path) -> None:
    results = finish(ARITHMETIC, tmp_path / "new" / "lab")
    assert results.chosen_rate("low", "one") == 3e-3
    assert results.chosen_rate("high", "one") == 1e-2
    counted = {row.seed for row in results.rows if not row.is_tuning}
    tuned = {row.seed for row in results.rows if row.is_tuning}
    assert counted == {1, 2, 3, 4, 5, 6}
    assert len(tuned) == ARITHMETIC.n_tuning_seeds
    assert not counted & tuned
    n_extended = 2 * ARITHMETIC.n_tuning_seeds  # one more rate for the arm whose best was an end of the grid
    assert results.tried_rates("low", "one") == [1e-3, 3e-3, 1e-2]
    assert results.tried_rates("high", "one") == [1e-3, 3e-3, 1e-2, 0.033]
    assert len(results.rows) == 3 * 2 * (3 * 2 + 6) + n_extended


def test_same_seeds_give_the_same_numbers_in_any_number_of_processes(tmp_path: Path) -> None:
    one, two = finish(TRAINING, tmp_path / "one"), finish(TRAINING, tmp_path / "two", n_processes=2)
    assert one.rows == two.rows
    assert one.definition == two.definition


def test_identical_arms_have_no_effect(tmp_path: Path) -> None:
    results = finish(TRAINING, tmp_path)
    assert results.values("one", "-", "value") == results.values("other", "-", "value")
    effect = find_effects(TRAINING, results)[0]
    assert (effect.mean, effect.low, effect.high, effect.p) == (0.0, 0.0, 0.0, 1.0)
    assert not effect.is_clear
    assert effect.verdict == "as predicted"


def test_an_interrupted_sweep_ends_with_the_same_rows(tmp_path: Path) -> None:
    whole = finish(ARITHMETIC, tmp_path / "whole")
    broken = tmp_path / "broken"
    for n_trials in (1, 7, 20):
        events = sweep(ARITHMETIC, broken, n_processes=1, run=run_here)
        list(islice(events, n_trials))
        events.close()  # type: ignore[attr-defined]
    with (broken / ROWS).open("ab") as file:
        file.write(b'{"arm": "lo')  # a process that was killed while it wrote
    n_stored = len((broken / ROWS).read_bytes().split(b"\n")) - 1
    assert 0 < n_stored < len(whole.rows)
    resumed = [
        event for event in sweep(ARITHMETIC, broken, n_processes=1, run=run_here) if isinstance(event, TrialDone)
    ]
    assert len(resumed) == len(whole.rows) - n_stored
    assert read_results(broken / "results.json").rows == whole.rows


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds worker processes in /proc, which only Linux has")
def test_a_killed_sweep_ends_with_the_same_rows_and_leaves_no_process(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from lab.questions_for_tests import TRAINING, run_here\n"
        "from manyheads.lab.sweep import sweep\n"
        "if __name__ == '__main__': list(sweep(TRAINING, Path(sys.argv[1]), n_processes=2, run=run_here))\n"
    )
    killed = tmp_path / "killed"
    path = f"{Path(__file__).parents[1]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    process = subprocess.Popen([sys.executable, "-c", script, str(killed)], env=os.environ | {"PYTHONPATH": path})
    try:
        _wait_for(lambda: (killed / ROWS).exists() and (killed / ROWS).read_bytes().count(b"\n") >= 3)
        workers = _children(process.pid)
    finally:
        process.kill()
        process.wait()
    assert workers
    _wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    n_stored = (killed / ROWS).read_bytes().count(b"\n")
    whole = finish(TRAINING, tmp_path / "whole")
    assert 3 <= n_stored < len(whole.rows)
    assert finish(TRAINING, killed).rows == whole.rows


def test_a_killed_worker_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="A worker process ended unexpectedly"):
        list(sweep(ARITHMETIC, tmp_path, n_processes=2, run=die))


def _children(parent: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _wait_for(condition: Callable[[], bool], seconds: float = 240.0) -> None:
    """Wait for another process, which may be slow on a busy machine."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_progress_counts_every_trial(tmp_path: Path) -> None:
    first, *others = sweep(ARITHMETIC, tmp_path, n_processes=1, run=run_here)
    events = [event for event in others if isinstance(event, TrialDone)]
    n_extended = 2 * ARITHMETIC.n_tuning_seeds  # rates beyond the grid are known only when it is done
    assert first == SweepStarted(0, len(events) - n_extended)
    assert [event.n_done for event in events] == list(range(1, len(events) + 1))
    assert events[-1].n_all == len(events)
    assert events[-1].seconds_left == 0.0


def test_rows_of_another_experiment_are_refused(tmp_path: Path) -> None:
    finish(ARITHMETIC, tmp_path)
    with pytest.raises(LabError, match="another version of this experiment, or to another size"):
        list(sweep(TRAINING, tmp_path, n_processes=1, run=run_here))


@pytest.mark.parametrize("line", [b"garbage", b'{"arm": 1}', b"[]", b'"x"', b"\xff\xfe"])
def test_damaged_rows_are_one_clear_error(tmp_path: Path, line: bytes) -> None:
    finish(ARITHMETIC, tmp_path)
    rows = (tmp_path / ROWS).read_bytes().split(b"\n")
    rows[1] = line
    (tmp_path / ROWS).write_bytes(b"\n".join(rows))
    with pytest.raises(LabError, match=r"rows\.jsonl, line 2: not the record of a trial"):
        list(sweep(ARITHMETIC, tmp_path, n_processes=1, run=run_here))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "rows": [{}]}'])
def test_damaged_results_are_one_clear_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(LabError, match=r"results\.json"):
        read_results(tmp_path / "results.json")


def test_results_are_read_back_unchanged(tmp_path: Path) -> None:
    results = finish(ARITHMETIC, tmp_path)
    assert read_results(tmp_path / "results.json") == results
    assert json.loads((tmp_path / "results.json").read_text())["stamp"].keys() >= {"date", "machine", "torch", "python"}


def test_two_sweeps_do_not_share_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(TrainingError, match="in use by another run"):
        next(iter(sweep(ARITHMETIC, tmp_path, n_processes=1, run=run_here)))
