import math

import pytest
import torch

from manyheads.model import smoothed_cross_entropy

from model.makers import vectors


def target_distribution(n_classes: int, right: int, smoothing: float) -> torch.Tensor:
    """What the loss believes: its gradient by the logits is softmax(logits) − target."""
    logits = vectors(1, n_classes).requires_grad_()
    smoothed_cross_entropy(logits, torch.tensor([right]), smoothing).backward()
    assert logits.grad is not None
    return (logits.softmax(-1) - logits.grad)[0].detach()


def test_five_classes_a_tenth_smoothed() -> None:
    expected = torch.tensor([0.025, 0.025, 0.9, 0.025, 0.025])
    assert torch.allclose(target_distribution(5, 2, 0.1), expected, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("n_classes", [2, 7])
def test_the_right_class_keeps_the_rest(n_classes: int, smoothing: float) -> None:
    distribution = target_distribution(n_classes, 1, smoothing)
    assert distribution.sum().item() == pytest.approx(1, abs=1e-6)
    assert distribution[1].item() == pytest.approx(1 - smoothing, abs=1e-6)
    assert distribution[0].item() == pytest.approx(smoothing / (n_classes - 1), abs=1e-6)


def test_it_is_the_mean_over_tokens_of_minus_log_likelihood() -> None:
    logits, targets = vectors(3, 4), [1, 0, 3]
    expected = (
        sum(math.log(sum(math.exp(x) for x in row)) - row[t] for row, t in zip(logits.tolist(), targets, strict=True))
        / 3
    )
    assert smoothed_cross_entropy(logits, torch.tensor(targets), 0.0).item() == pytest.approx(expected, abs=1e-6)
