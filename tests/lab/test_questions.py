"""The trial of each question, with a training of two steps: it measures what the question shows."""

import math
from dataclasses import replace

import pytest

from manyheads.lab.questions import QUESTIONS


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_trial_has_a_number_for_every_measure(name: str) -> None:
    question = QUESTIONS[name]
    setup = question.cell_setup(question.arms[0], question.conditions[0], is_full=False)
    measured = question.trial(replace(setup, steps=2, n_rows=8, warmup=1), 1)
    assert all(math.isfinite(measured[measure.name]) for measure in question.measures)
    for measure in question.measures:
        if measure.is_percentage:
            assert -1e-6 <= measured[measure.name] <= 1 + 1e-6, measure.name
        if measure.is_logarithmic:
            assert measured[measure.name] >= 0, measure.name
