"""Norms on the same numbers: padding changes per-sample norm and naive batch norm, and never layer norm."""

import numpy as np
import pytest
import torch

from manyheads.model.norms import NORMS, LayerNorm, Norm
from manyheads.walks.norm_walk import compare_norms, walk_norm

ROWS = np.random.default_rng(0).normal(1.0, 2.0, (5, 4))


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5])
def test_only_norms_that_count_padding_shift(n_rows: int) -> None:
    compared = compare_norms(ROWS[:n_rows], n_rows - 1, 1e-5)
    assert [norm.kind for norm in compared.norms] == ["layer", "batch", "batch-with-padding", "sample"]
    assert compared["layer"].shift == compared["batch"].shift == 0.0
    assert compared["batch-with-padding"].shift > 0.01
    assert compared["sample"].shift > 0.01
    assert compared.n_padding >= 1
    assert 0 <= compared.position < len(compared.shorter)
    np.testing.assert_array_equal(compared.shorter, ROWS[: len(compared.shorter)])


def test_means_are_over_the_numbers_that_each_norm_counts() -> None:
    compared = compare_norms(ROWS, 1, 1e-5)  # 5 rows, 3 of them again, 2 rows of padding
    counts = {norm.kind: (norm.without_padding.count, norm.with_padding.count) for norm in compared.norms}
    assert counts == {"layer": (4, 4), "batch": (8, 8), "batch-with-padding": (8, 10), "sample": (12, 20)}
    naive = compared["batch-with-padding"]
    np.testing.assert_allclose(naive.with_padding.mean * 10, naive.without_padding.mean * 8)
    np.testing.assert_allclose(compared["sample"].without_padding.mean, ROWS[:3].mean())
    np.testing.assert_allclose(compared["layer"].with_padding.mean, ROWS[1].mean())


@pytest.mark.parametrize("kind", NORMS)
def test_statistics_give_the_output_of_the_norm(kind: str) -> None:
    norm = NORMS[kind](4, 1e-3).double()
    with torch.no_grad():
        for each in norm.state_dict().values():
            each.add_(torch.rand(each.shape, dtype=torch.float64))
    norm.eval()
    x = torch.from_numpy(ROWS)
    output = norm(x[None], torch.ones(1, 5, dtype=torch.bool))[0]
    walked = walk_norm(norm, x, output)
    assert (walked.kind, walked.epsilon) == (kind, 1e-3)
    assert walked.mean is not None and walked.variance is not None and walked.normalized is not None
    normalized = (ROWS - walked.mean) / np.sqrt(walked.variance + 1e-3)
    np.testing.assert_allclose(walked.normalized, normalized, rtol=0, atol=1e-12)
    bias = 0.0 if walked.bias is None else walked.bias
    np.testing.assert_allclose(normalized * walked.weight + bias, output.detach().numpy(), rtol=0, atol=1e-12)


def test_norm_of_somebody_else_has_only_an_output() -> None:
    class HalfNorm(LayerNorm):
        def forward(self, x: torch.Tensor, is_real: torch.Tensor) -> torch.Tensor:
            return x / 2

    norm: Norm = HalfNorm(4, 1e-5).double()
    x = torch.from_numpy(ROWS)
    walked = walk_norm(norm, x, norm(x, torch.ones(5, dtype=torch.bool)))
    assert (walked.kind, walked.mean, walked.variance, walked.normalized) == ("HalfNorm", None, None, None)
    np.testing.assert_array_equal(walked.output, ROWS / 2)
