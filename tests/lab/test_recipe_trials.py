"""A question asked on a recipe: its arms, rates and comparisons, without a training."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.lab.lab_texts import LabText
from manyheads.lab.question import Arm, ArmComparison, Measure
from manyheads.lab.recipe_trials import _arm_recipe, _comparisons, ask_on_recipe

from lab.questions_for_tests import ARITHMETIC, TRAINING

TEXT = LabText({"en": "a", "zh": "b"})
RECIPE = """
[data]
builtin = "en-zh"
[model]
preset = "tiny"
[train]
steps = 900
learning_rate = 1e-3
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(RECIPE)
    return tmp_path / "small.toml"


def test_a_question_on_a_recipe_has_its_score_its_steps_and_rates_around_its_own(path: Path) -> None:
    asked = ask_on_recipe(TRAINING, path, path.parent / "data")
    question = asked.question
    assert question.learning_rates == pytest.approx((0.5e-3, 1e-3, 2e-3))
    assert [(one.name, one.better, one.digits) for one in question.measures] == [
        ("score", "higher", 2),
        ("loss", "lower", 3),
    ]
    assert "last 50 steps" in question.measures[1].label.by_language()["en"]
    assert "200 steps" in question.method.by_language()["en"]
    assert "small.toml" in question.method.by_language()["zh"]
    assert asked.data.endswith(" 200")
    assert asked.impossible == {}
    assert ask_on_recipe(TRAINING, path, path.parent / "data", is_full=True).data.endswith(" 900")
    for arm in TRAINING.arms:
        assert f"{{{{mean training {arm.name} - score}}}}" in question.answer.yes.by_language()["en"]


def test_the_recipe_of_an_arm_has_its_change_its_rate_and_its_seed(path: Path) -> None:
    plain = _arm_recipe(TRAINING.arms[0], path, 7, None, 5)
    assert (plain.train.steps, plain.seed, plain.train.learning_rate) == (7, 5, 1e-3)
    changed = _arm_recipe(Arm("post", TEXT, {"model.norm_placement": "post", "warmup": 3}), path, 7, 0.25, 5)
    assert (changed.model.norm_placement, changed.train.warmup, changed.train.learning_rate) == ("post", 3, 0.25)
    path.write_text('[data]\ntrain = ["a.tsv"]\n[task]\nkind = "classify"\nbaseline = true\n')
    recipe = _arm_recipe(TRAINING.arms[0], path, 7, None, 5)
    assert recipe.task.baseline is False  # type: ignore[attr-defined]


def test_each_pair_of_arms_is_compared_once_by_the_score_and_losses_the_other_way_round() -> None:
    measures = (
        Measure("accuracy", TEXT, "higher"),
        Measure("loss", TEXT, "lower"),
        Measure("entropy", TEXT),  # neither is better
    )
    pairs = [("a", "b", "loss", "lower"), ("a", "b", "accuracy", "lower"), ("c", "b", "accuracy", "higher")]
    pairs += [("c", "a", "loss", "same"), ("d", "a", "entropy", "higher")]
    comparisons = [ArmComparison(arm, against, name, expect, TEXT, "one") for arm, against, name, expect in pairs]  # type: ignore[arg-type]
    comparisons.append(ArmComparison("d", "d", "loss", "lower", TEXT, "one", against_condition="two"))
    found = _comparisons(replace(ARITHMETIC, measures=measures, comparisons=tuple(comparisons)))
    assert [(one.arm, one.against, one.expect) for one in found] == [
        ("a", "b", "higher"),
        ("c", "b", "higher"),
        ("c", "a", "same"),
    ]
    assert {(one.measure, one.condition, one.margin) for one in found} == {("score", "-", 1.0)}
