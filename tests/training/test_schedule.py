"""The learning rate schedule and the settings of training."""

import pytest

from manyheads.training import TrainSettings, learning_rate


@pytest.mark.parametrize("step", [1, 100, 3999, 4000, 4001, 100_000])
def test_the_default_is_the_schedule_of_2017(step: int) -> None:
    formula = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
    assert learning_rate(step, TrainSettings(), width=512) == pytest.approx(formula)


def test_the_peak_is_reached_at_the_end_of_warmup() -> None:
    settings = TrainSettings(learning_rate=5e-3, warmup=10, steps=100)
    rates = [learning_rate(step, settings, width=8) for step in range(1, 101)]
    assert max(rates) == rates[9] == pytest.approx(5e-3)


def test_cosine_decays_to_zero_after_warmup() -> None:
    settings = TrainSettings(schedule="cosine", learning_rate=1e-3, warmup=10, steps=100)
    rates = [learning_rate(step, settings, width=8) for step in range(10, 101)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(0.0)
