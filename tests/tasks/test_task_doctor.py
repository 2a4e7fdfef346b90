"""Answers of a broken model of each task, and lengths beyond its limit, are reported; those of a good one are not."""

import numpy as np
import pytest

from manyheads.language import using
from manyheads.model import ModelSettings
from manyheads.tasks import TASKS
from manyheads.tasks.findings import Finding

MODEL = ModelSettings.preset("tiny", vocab_size=100, max_length=10)
GOOD = {
    "seq2seq": [(f"Source {n}.", f"Ziel {n}.", f"Ziel {n}.") for n in range(8)],
    "classify": [(f"Text {n}.", ("good", "bad")[n % 2], ("good", "bad")[n % 2]) for n in range(8)],
    "tag": [(f"Ann saw {n}.", "Ann (PER)" if n % 2 else "", "Ann (PER)") for n in range(8)],
    "language": [(f"Once {n}", f" upon a time there were {n} cats.", " upon a time.") for n in range(8)],
    "masked": [(f"a [MASK] {n}", f"word {n}", f"word {n}") for n in range(8)],
}
BROKEN = {"seq2seq": "Same.", "classify": "good", "tag": "", "language": "the cat " * 9, "masked": "the"}


def check_outputs(kind: str, samples: list[tuple[str, str, str]]) -> Finding:
    return TASKS[kind].doctor.check_outputs("output collapse", samples)


@pytest.mark.parametrize("kind", list(GOOD))
def test_good_answers_are_good(kind: str) -> None:
    assert check_outputs(kind, GOOD[kind]).verdict == "good"


@pytest.mark.parametrize("kind", list(GOOD))
def test_answers_that_ignore_the_input_are_found(kind: str) -> None:
    finding = check_outputs(kind, [(text, BROKEN[kind], expected) for text, _, expected in GOOD[kind]])
    assert finding.verdict != "good"
    assert finding.fix
    with using("zh"):
        assert check_outputs(kind, GOOD[kind]).message != finding.message


def test_one_label_is_good_where_one_is_expected() -> None:
    assert check_outputs("classify", [(f"Text {n}.", "good", "good") for n in range(8)]).verdict == "good"


@pytest.mark.parametrize(
    ("kind", "lengths", "n_too_long", "verdict"),
    [
        ("seq2seq", [9] * 99, 1, "good"),
        ("seq2seq", [9] * 90, 10, "warning"),
        ("tag", [9] * 40, 60, "bad"),
        ("classify", [9] * 70 + [20] * 30, 0, "good"),
        ("classify", [9] * 60 + [20] * 40, 0, "warning"),
        ("language", [100, 1], 0, "good"),
        ("masked", [80], 0, "warning"),
    ],
)
def test_lengths_in_tokens(kind: str, lengths: list[int], n_too_long: int, verdict: str) -> None:
    task = TASKS[kind]
    (finding,) = task.doctor.check_lengths(np.array(lengths), n_too_long, MODEL, task.settings_type())
    assert finding.verdict == verdict
    assert bool(finding.fix) == (verdict != "good")
