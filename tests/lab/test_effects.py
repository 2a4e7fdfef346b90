from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from manyheads.lab.effects import Effect, find_effects, holm, mean_interval, paired_difference
from manyheads.lab.lab_texts import NO_TEXT
from manyheads.lab.question import ArmComparison, Measure
from manyheads.lab.result_store import Results, Row
from manyheads.lab.setup import Setup

from lab.questions_for_tests import ARITHMETIC


def test_interval_and_p_value_are_those_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(1.0, 1.0, 8), rng.normal(0.0, 1.0, 8)
    mean, low, high, p = paired_difference(one.tolist(), other.tolist())
    expected = stats.ttest_rel(one, other)
    interval = expected.confidence_interval(0.95)
    assert (mean, p) == pytest.approx(((one - other).mean(), expected.pvalue))
    assert (low, high) == pytest.approx((interval.low, interval.high))


def test_a_ratio_is_the_paired_difference_of_logarithms() -> None:
    one, other = [2.0, 8.0, 3.0], [1.0, 2.0, 3.0]
    mean, low, high, p = paired_difference(one, other, is_ratio=True)
    log_mean, log_low, log_high, log_p = paired_difference(np.log(one).tolist(), np.log(other).tolist())
    assert (mean, low, high) == pytest.approx(tuple(np.exp([log_mean, log_low, log_high])))
    assert p == pytest.approx(log_p)


def test_no_difference_and_a_constant_one() -> None:
    assert paired_difference([1.0, 2.0], [1.0, 2.0]) == (0.0, 0.0, 0.0, 1.0)
    assert paired_difference([2.0, 3.0], [1.0, 2.0]) == (1.0, 1.0, 1.0, 0.0)


def test_holm_multiplies_the_smallest_by_the_number_of_comparisons() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_interval_covers_the_true_mean_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(1)
    hits = [low <= 0.0 <= high for _, low, high in (mean_interval(rng.normal(size=6).tolist()) for _ in range(2000))]
    assert 0.935 <= np.mean(hits) <= 0.965


@pytest.mark.parametrize(
    ("low", "high", "p", "verdict"),
    [
        (-0.9, 0.9, 0.8, "as predicted"),
        (0.2, 0.9, 0.01, "as predicted"),  # different, but by less than the margin
        (-1.1, 0.9, 0.8, "not distinguishable"),
        (-0.9, 1.1, 0.8, "not distinguishable"),
        (-3.0, -2.0, 0.001, "contrary"),
        (2.0, 3.0, 0.001, "contrary"),
    ],
)
@pytest.mark.parametrize("is_ratio", [False, True])
def test_arms_are_the_same_if_the_interval_is_within_the_margin_on_both_sides(
    low: float, high: float, p: float, verdict: str, is_ratio: bool
) -> None:
    comparison = ArmComparison("a", "b", "loss", "same", NO_TEXT, margin=1.0)
    bounds = [2.0**limit for limit in (low, high)] if is_ratio else [low, high]  # a margin of 1 is a factor of 2
    effect = Effect(comparison, bounds[0], *bounds, p, p, 5, is_ratio, False)
    assert effect.verdict == verdict


@pytest.mark.parametrize(("expect", "verdict"), [("higher", "as predicted"), ("lower", "contrary")])
def test_a_clear_difference_is_compared_with_the_predicted_direction(expect: Any, verdict: str) -> None:
    comparison = ArmComparison("a", "b", "loss", expect, NO_TEXT)
    effect = Effect(comparison, 2.0, 1.0, 3.0, 0.001, 0.01, 5, False, False)
    assert effect.verdict == verdict
    assert replace(effect, corrected_p=0.06).verdict == "not distinguishable"


@pytest.mark.parametrize(
    ("ours", "theirs", "expect", "bound", "verdict"),
    [
        ((101, 101, 101, 101), (20, 25, 30, 25), "higher", "≥", "as predicted"),
        ((101, 101, 101, 101), (20, 25, 30, 25), "same", "≥", "contrary"),
        ((20, 25, 30, 25), (101, 101, 101, 101), "lower", "≤", "as predicted"),
        ((101, 101, 101, 101), (101, 101, 101, 101), "same", "both", "not distinguishable"),
        ((101, 99, 101, 100), (100, 101, 100, 101), "same", "both", "not distinguishable"),
        ((50, 50, 50, 50), (25, 25, 25, 25), "higher", "", "not distinguishable"),  # equal by rounding: a sign test
        ((50, 75, 50, 75), (25, 25, 25, 25), "higher", "", "as predicted"),
    ],
)
def test_steps_that_were_not_reached_are_bounds(
    ours: tuple[int, ...], theirs: tuple[int, ...], expect: Any, bound: str, verdict: str
) -> None:
    steps = Measure("value", NO_TEXT, "lower", is_logarithmic=True, is_censored=True)
    compared = ArmComparison("high", "low", "value", expect, NO_TEXT, "one", margin=0.25)
    question = replace(ARITHMETIC, setup=Setup(steps=100), measures=(steps,), comparisons=(compared,))
    rows = [
        Row(arm, "one", seed, None, False, {"value": value})
        for arm, values in (("high", ours), ("low", theirs))
        for seed, value in enumerate(values, 1)
    ]
    (effect,) = find_effects(question, Results("arithmetic", "default", "", {}, tuple(rows), {}))
    assert (effect.bound, effect.verdict, effect.is_computed) == (bound, verdict, False)
