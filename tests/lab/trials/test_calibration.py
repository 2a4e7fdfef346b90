import pytest
import torch

from manyheads.lab.trials.training_trials import calibration_error


def test_a_calibrated_prediction_has_no_error() -> None:
    probabilities = torch.tensor([[0.75, 0.25]]).repeat(4, 1)
    assert calibration_error(probabilities, torch.tensor([0, 0, 0, 1])) == pytest.approx(0.0)


def test_bins_are_weighted_by_their_size() -> None:
    probabilities = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.65, 0.35]])
    # three certain predictions of which one is right: 2/3 off; one of 0.65 that is right: 0.35 off
    assert calibration_error(probabilities, torch.tensor([0, 1, 1, 0])) == pytest.approx((3 * 2 / 3 + 0.35) / 4)
