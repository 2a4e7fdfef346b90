"""Files with a planted fault: every fault is the one that the case says, and the examiner does not give it away."""

from pathlib import Path

import pytest

from manyheads.errors import LearnError
from manyheads.learn.child_process import run_here
from manyheads.learn.debugging import DebugCase, debug_cases, grade_name, make_debug_file
from manyheads.learn.examiner import Verdict, examine
from manyheads.learn.exercise import all_exercises
from manyheads.learn.submission import Submission, make_submission
from manyheads.learn.verdict_text import show_verdict

pytestmark = pytest.mark.filterwarnings("ignore")


def checked(source: str, exercise: str) -> tuple[Submission, Verdict]:
    submission = make_submission(Path("a.py"), source, all_exercises(), name=exercise)
    return submission, examine(submission, run=run_here)


def test_there_are_twelve_cases() -> None:
    assert len(debug_cases()) == 12


@pytest.mark.parametrize("case", debug_cases(), ids=lambda case: case.exercise)
def test_every_planted_fault_is_the_variant_that_it_names(case: DebugCase) -> None:
    assert checked(case.source, case.exercise)[1].outcome == "solved"
    for fault in case.faults:
        assert case.source.count(fault.old) == 1
        assert checked(case.source.replace(fault.old, fault.new), case.exercise)[1].variants == (fault.variant,)


def test_every_fault_is_planted_by_some_seed() -> None:
    for case in debug_cases():
        assert {case.planted(seed)[1] for seed in range(40)} == set(case.faults)


def test_a_check_does_not_give_the_fault_away() -> None:
    submission, verdict = checked(make_debug_file(2, 1), "multi-head")
    lines = show_verdict(verdict, submission)
    assert lines[2] == "The fault is still there."
    assert verdict.sentences()[0] not in lines
    assert "The smallest input on which it shows:" in lines


def test_a_name_is_graded(tmp_path: Path) -> None:
    path = tmp_path / "debug_1.py"
    path.write_text(make_debug_file(1, 0), "utf-8")
    fault = debug_cases()[0].planted(0)[1]
    assert grade_name(path, fault.variant)[0]
    assert not grade_name(path, "cosine")[0]
    with pytest.raises(LearnError, match=r"'cosin' is no mistake of attention\. Did you mean cosine\?"):
        grade_name(path, "cosin")
    with pytest.raises(LearnError, match="is no file of learn debug"):
        grade_name(tmp_path / "other.py", "cosine")
    with pytest.raises(LearnError, match=r"There is no case 13: they are 1 to 12\."):
        make_debug_file(13, 0)
