"""Dropout: the share of dropped elements, the scale of the others, and dropped slices."""

import pytest
import torch

from manyheads.model.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.3, 0.5, 0.9, 0.999])
def test_the_share_of_dropped_elements_and_the_mean(rate: float) -> None:
    torch.manual_seed(0)
    n_dropped = min(round(256 * rate), 255)
    y = Dropout(rate)(torch.ones(1000, 1003))
    assert (y == 0).float().mean().item() == pytest.approx(n_dropped / 256, abs=3e-3)
    assert y.unique().tolist() == pytest.approx([0.0, 256 / (256 - n_dropped)])
    assert y.mean().item() == pytest.approx(1.0, abs=0.05)


def test_elements_are_dropped_independently() -> None:
    """Eight adjacent elements come from one random 64-bit integer; they must be independent."""
    torch.manual_seed(1)
    falls = (Dropout(0.5)(torch.ones(20_000, 16)) == 0).double()
    correlation = torch.corrcoef(falls.T) - torch.eye(16)
    assert correlation.abs().max().item() < 0.04


def test_the_gradient_flows_through_the_kept_elements() -> None:
    x = torch.randn(7, 13, requires_grad=True)
    y = Dropout(0.4)(x)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x.detach(), y.detach())


def test_a_rate_of_zero_or_eval_mode_changes_nothing() -> None:
    x = torch.randn(3, 5)
    before = torch.get_rng_state()
    assert Dropout(0.0)(x) is x
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).drop_slices(x, 1) is x
    assert torch.equal(torch.get_rng_state(), before)  # a disabled dropout must not change the others


def test_dropout_is_a_function_of_the_seed() -> None:
    def draw(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return Dropout(0.5)(torch.ones(50))

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_slices_are_kept_or_dropped_as_a_whole() -> None:
    torch.manual_seed(2)
    y = Dropout(0.5).drop_slices(torch.ones(6, 4, 3, 5), n_axes=2)
    whole = y.flatten(2)
    assert torch.equal(whole.amin(2), whole.amax(2))
    assert set(whole.unique().tolist()) == {0.0, 2.0}


def test_half_precision_is_preserved() -> None:
    assert Dropout(0.5)(torch.ones(4, 4, dtype=torch.bfloat16)).dtype == torch.bfloat16
