import math

import pytest
import torch

from manyheads.model import losses, projected_loss, smoothed_cross_entropy, symmetric_kl

from model.makers import vectors


def target_distribution(n_classes: int, right: int, smoothing: float) -> torch.Tensor:
    """The target distribution of the loss: its gradient with respect to the logits is softmax(logits) − target."""
    logits = vectors(1, n_classes).requires_grad_()
    smoothed_cross_entropy(logits, torch.tensor([right]), smoothing).backward()
    assert logits.grad is not None
    return (logits.softmax(-1) - logits.grad)[0].detach()


def test_smoothed_targets_of_five_classes() -> None:
    expected = torch.tensor([0.025, 0.025, 0.9, 0.025, 0.025])
    assert torch.allclose(target_distribution(5, 2, 0.1), expected, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("n_classes", [2, 7])
def test_the_right_class_has_the_remaining_probability(n_classes: int, smoothing: float) -> None:
    distribution = target_distribution(n_classes, 1, smoothing)
    assert distribution.sum().item() == pytest.approx(1, abs=1e-6)
    assert distribution[1].item() == pytest.approx(1 - smoothing, abs=1e-6)
    assert distribution[0].item() == pytest.approx(smoothing / (n_classes - 1), abs=1e-6)


def test_cross_entropy_is_the_mean_negative_log_likelihood() -> None:
    logits, targets = vectors(3, 4), [1, 0, 3]
    expected = (
        sum(math.log(sum(math.exp(x) for x in row)) - row[t] for row, t in zip(logits.tolist(), targets, strict=True))
        / 3
    )
    assert smoothed_cross_entropy(logits, torch.tensor(targets), 0.0).item() == pytest.approx(expected, abs=1e-6)


def test_symmetric_kl_is_the_mean_of_both_divergences() -> None:
    p, q = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.2, 0.2, 0.6])
    expected = 0.5 * ((p * (p / q).log()).sum() + (q * (q / p).log()).sum())
    # Adding a constant to all logits changes nothing.
    divergence = symmetric_kl(p.log()[None] + 3.0, q.log()[None] - 1.0)
    assert divergence.item() == pytest.approx(expected.item(), abs=1e-6)
    assert symmetric_kl(p.log()[None], p.log()[None]).item() == pytest.approx(0.0, abs=1e-7)


def reference_loss(
    hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, smoothing: float, consistency: float
) -> torch.Tensor:
    """The slow reference of `projected_loss`."""
    logits = [one @ weight.mT for one in hidden]
    loss = torch.stack([smoothed_cross_entropy(one, targets, smoothing) for one in logits]).mean()
    return loss + consistency / 2 * symmetric_kl(*logits) if len(logits) == 2 else loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("n_passes", "consistency"), [(1, 0.0), (1, 5.0), (2, 0.0), (2, 5.0)])
@pytest.mark.parametrize("n_rows", [1, 6, 7, 20])
def test_projected_loss_equals_its_reference(
    n_rows: int, n_passes: int, consistency: float, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compares value and gradients for fewer rows than one block holds, exactly as many, and more."""
    monkeypatch.setattr(losses, "_ROWS_PER_BLOCK", 6)
    torch.manual_seed(n_rows)
    hidden = torch.randn(n_passes, n_rows, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 11, (n_rows,))
    loss, expected = (
        function(hidden, weight, targets, smoothing, consistency) for function in (projected_loss, reference_loss)
    )
    torch.testing.assert_close(loss, expected)
    for ours, theirs in zip(
        torch.autograd.grad(3 * loss, (hidden, weight)),
        torch.autograd.grad(3 * expected, (hidden, weight)),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_projected_loss_handles_large_logits() -> None:
    hidden = torch.tensor([[[200.0, -200.0], [0.0, 0.0]]], requires_grad=True)
    loss = projected_loss(hidden, torch.eye(2), torch.tensor([1, 0]), 0.0)
    loss.backward()
    assert loss.item() == pytest.approx((400.0 + math.log(2)) / 2)
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


def test_autocast_multiplies_in_bfloat16_and_keeps_gradient_types() -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(2, 9, 8, requires_grad=True), torch.randn(7, 8, requires_grad=True)
    targets = torch.randint(0, 7, (9,))
    with torch.autocast("cpu", torch.bfloat16):
        rough = projected_loss(hidden, weight, targets, 0.1, 5.0)
    rough.backward()
    exact = projected_loss(hidden, weight, targets, 0.1, 5.0)
    assert rough.item() != exact.item()
    assert rough.item() == pytest.approx(exact.item(), rel=0.02)
    assert hidden.grad is not None
    assert weight.grad is not None
    assert (hidden.grad.dtype, weight.grad.dtype) == (torch.float32, torch.float32)
