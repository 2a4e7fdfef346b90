"""Temperatures of label probabilities, and how certain few validation rows allow them to be."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from manyheads.tasks.calibration import Calibration


def perfect(n_rows: int, margin: float = 6.0) -> tuple[Tensor, Tensor]:
    """Logits and targets of rows that are all right."""
    targets = one_hot(torch.arange(n_rows) % 3, 3).float()
    return margin * targets, targets


def test_temperature_recovers_a_scaling_of_logits() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(4000, 3, generator=generator)
    drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    expected = one_hot(drawn, 3).float()
    assert Calibration.fit(5.0 * logits, expected).temperature == pytest.approx(5.0, rel=0.1)
    several = torch.bernoulli(logits.sigmoid(), generator=generator)
    assert Calibration.fit(3.0 * logits, several, multi_label=True).temperature == pytest.approx(3.0, rel=0.1)
    assert Calibration.fit(logits[:0], expected[:0]) == Calibration(1.0, 0)


@pytest.mark.parametrize("n_rows", [1, 10, 1000])
def test_perfect_rows_do_not_make_certain(n_rows: int) -> None:
    calibration = Calibration.fit(*perfect(n_rows))
    assert 0.5 <= calibration.temperature <= 1.0
    found = calibration.probabilities(torch.tensor([[90.0, 0.0, 0.0]]))
    assert float(found.max()) == pytest.approx(1 - (2 / 3) / (n_rows + 1), abs=1e-6)
    assert float(found.sum()) == pytest.approx(1.0)
    several = Calibration.fit(*perfect(n_rows), multi_label=True)
    assert several.temperature >= 0.5
    highest = float(several.probabilities(torch.tensor([[90.0]]), multi_label=True))
    assert highest == pytest.approx(1 - 0.5 / (n_rows + 1), abs=1e-6)


def test_few_rows_move_the_temperature_little() -> None:
    """Wrong with great certainty: one row is no reason to distrust all others, a hundred are."""
    logits, targets = perfect(100)
    wrong = targets.roll(1, dims=1)
    one, many = (Calibration.fit(logits[:n], wrong[:n]).temperature for n in (1, 100))
    assert 1.0 < one < 3.0 < many < 10.1


def test_the_floor_changes_no_decision() -> None:
    logits = torch.randn(200, 5, generator=torch.Generator().manual_seed(2))
    plain, floored = Calibration(), Calibration(1.0, 3)
    assert plain.probabilities(logits).argmax(-1).equal(floored.probabilities(logits).argmax(-1))
    above = [one.probabilities(logits, multi_label=True) >= 0.5 for one in (plain, floored)]
    assert above[0].equal(above[1])
    torch.testing.assert_close(plain.probabilities(logits), logits.softmax(-1))
    assert Calibration.restore(floored.metadata()) == floored
    assert Calibration.restore({"temperature": 1.5}) == Calibration(1.5, 0)
