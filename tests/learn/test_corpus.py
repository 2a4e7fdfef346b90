"""Right and wrong solutions that were written apart from the bank: see `corpus_files`."""

from collections import Counter
from collections.abc import Iterable

import pytest

from learn.corpus_files import Solution, read_corpus

CORPUS = list(read_corpus())
RIGHT = [solution for solution in CORPUS if not solution.mistakes]
WRONG = [solution for solution in CORPUS if solution.mistakes]


def shares(solutions: Iterable[Solution]) -> Counter[str]:
    found: Counter[str] = Counter()
    for solution in solutions:
        verdict = solution.examine()
        named = tuple(sorted(verdict.variants)) or ("?",)
        if verdict.outcome == "solved":
            found["accepted"] += 1
        else:
            found["as expected" if named == solution.mistakes else "unknown" if named == ("?",) else "wrongly"] += 1
    return found


@pytest.mark.filterwarnings("ignore")
def test_no_right_solution_is_rejected() -> None:
    rejected = [solution.note for solution in RIGHT if solution.examine().outcome != "solved"]
    assert rejected == []
    assert len(RIGHT) >= 60


@pytest.mark.filterwarnings("ignore")
def test_mistakes_are_named() -> None:
    assert shares(WRONG[::7]) == {"as expected": len(WRONG[::7])}


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore")
def test_all_mistakes_are_named() -> None:
    found = shares(WRONG)
    assert len(WRONG) >= 300
    assert found["as expected"] >= 0.95 * len(WRONG)
    assert found["wrongly"] <= 0.01 * len(WRONG)
    assert found["accepted"] == 0
