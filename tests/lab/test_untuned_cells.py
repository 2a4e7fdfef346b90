from dataclasses import replace

from manyheads.lab.lab_texts import NO_TEXT
from manyheads.lab.question import Condition
from manyheads.lab.questions import QUESTIONS

WARM_UP = QUESTIONS["warm-up"]


def test_a_cell_that_sets_its_learning_rate_is_not_tuned():
    arm = WARM_UP.arms[0]
    assert WARM_UP.is_tuned(arm, WARM_UP.condition("post"))
    assert not WARM_UP.is_tuned(arm, WARM_UP.condition("post-high"))
    fixed = replace(arm, changes={**arm.changes, "learning_rate": 0.1})
    assert not WARM_UP.is_tuned(fixed, Condition("any", NO_TEXT))


def test_a_question_without_tuning_tunes_no_cell():
    question = replace(WARM_UP, tuned_on=None)
    assert not any(question.is_tuned(*cell) for cell in question.cells())


def test_the_rate_of_an_untuned_cell_is_the_one_it_sets():
    setup = WARM_UP.cell_setup(WARM_UP.arms[0], WARM_UP.condition("pre-high"))
    assert setup.learning_rate == WARM_UP.condition("pre-high").changes["learning_rate"]
