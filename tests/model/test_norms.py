import pytest
import torch
from torch import nn

from manyheads.model.norms import BatchNorm, LayerNorm, NoNorm, RMSNorm, SampleNorm, make_final_norm, make_norm

from model.makers import choices, largest_difference, real, shaken, small, vectors

X = vectors(3, 5, 8) * 2 + 1
REAL = real("xxxxx", "xxx..", "x....")


@pytest.mark.parametrize(
    ("name", "kind", "counts_padding"),
    [
        ("layer", LayerNorm, None),
        ("rms", RMSNorm, None),
        ("batch", BatchNorm, False),
        ("batch-with-padding", BatchNorm, True),
        ("sample", SampleNorm, None),
    ],
)
def test_settings_name_the_norm(name: str, kind: type, counts_padding: bool | None) -> None:
    norm = make_norm(small(norm=name, norm_epsilon=1e-3))
    assert type(norm) is kind
    assert norm.epsilon == 1e-3
    assert getattr(norm, "counts_padding", None) == counts_padding


def test_only_pre_norm_ends_with_a_norm() -> None:
    assert isinstance(make_final_norm(small(norm_placement="pre")), LayerNorm)
    nothing = make_final_norm(small(norm_placement="post"))
    assert isinstance(nothing, NoNorm)
    assert nothing(X, REAL) is X


def test_layer_norm_is_the_formula_for_each_token() -> None:
    norm = shaken(LayerNorm(8, 1e-2))
    normed = norm(X, REAL)
    for row in range(3):
        for position in range(5):
            token = X[row, position]
            mean = token.sum() / 8
            variance = ((token - mean) ** 2).sum() / 8
            expected = norm.weight * (token - mean) / (variance + 1e-2) ** 0.5 + norm.bias
            assert torch.allclose(normed[row, position], expected, atol=1e-5)


def test_rms_norm_is_the_formula_for_each_token() -> None:
    norm = shaken(RMSNorm(8, 1e-2))
    expected = norm.weight * X / ((X**2).sum(-1, keepdim=True) / 8 + 1e-2) ** 0.5
    assert torch.allclose(norm(X, REAL), expected, atol=1e-5)


@pytest.mark.parametrize("counts_padding", [False, True])
def test_batch_norm_is_that_of_torch_over_the_tokens_it_counts(counts_padding: bool) -> None:
    counted = torch.ones_like(REAL) if counts_padding else REAL
    ours, theirs = BatchNorm(8, 1e-3, counts_padding=counts_padding), nn.BatchNorm1d(8, eps=1e-3, momentum=0.1)
    shaken(ours).train()
    theirs.load_state_dict(
        {
            "weight": ours.weight,
            "bias": ours.bias,
            "running_mean": ours.running_mean,
            "running_var": ours.running_var,
            "num_batches_tracked": torch.tensor(0),
        }
    )
    for step in range(3):
        x = X + vectors(3, 5, 8, seed=step)
        assert torch.allclose(ours(x, REAL)[counted], theirs(x[counted]), atol=1e-5)
        assert torch.allclose(ours.running_mean, theirs.running_mean, atol=1e-6)
        assert torch.allclose(ours.running_var, theirs.running_var, atol=1e-6)
    ours.eval(), theirs.eval()
    before = ours.running_mean.clone()
    assert torch.allclose(ours(X, REAL)[counted], theirs(X[counted]), atol=1e-5)
    assert torch.equal(ours.running_mean, before)


@pytest.mark.parametrize("is_real", [real("x...."), real(".....")])
def test_batch_norm_of_one_token_or_none_falls_back_on_running_statistics(is_real: torch.Tensor) -> None:
    norm = BatchNorm(8, 1e-5, counts_padding=False).train()
    normed = norm(X[:1], is_real)
    assert torch.allclose(normed, X[:1], atol=1e-3)  # a mean of 0 and a variance of 1, as at first
    assert norm.running_mean.tolist() == [0] * 8


def test_sample_norm_is_over_all_numbers_of_a_sample() -> None:
    norm = shaken(SampleNorm(8, 1e-5))
    sample = X[1]
    expected = (sample - sample.mean()) / (sample.var(correction=0) + 1e-5).sqrt() * norm.weight + norm.bias
    assert torch.allclose(norm(X, REAL)[1], expected, atol=1e-5)


# Whether a token's output changes with what stands in a later position (which leaks) or in padding.
@pytest.mark.parametrize(
    ("name", "sees_other_positions", "sees_padding"),
    [
        ("layer", False, False),
        ("rms", False, False),
        ("batch", True, False),
        ("batch-with-padding", True, True),
        ("sample", True, True),
    ],
)
def test_what_else_a_token_depends_on_in_training(name: str, sees_other_positions: bool, sees_padding: bool) -> None:
    norm = make_norm(small(norm=name)).train()
    base = norm(X, REAL)
    for (row, position), changes in {(1, 2): sees_other_positions, (1, 3): sees_padding}.items():
        other = X.clone()
        other[row, position] += 3
        difference = largest_difference(norm(other, REAL)[1, 0], base[1, 0])
        assert difference > 1e-3 if changes else difference == 0


@pytest.mark.parametrize("name", choices("norm"))
@pytest.mark.parametrize("training", [False, True])
def test_gradients_are_right(name: str, training: bool) -> None:
    norm = shaken(make_norm(small(norm=name, width=4))).double().train(training)
    is_real = real("xxx", "xx.")
    names = [name for name, _ in norm.named_parameters()]
    parameters = [value.detach().requires_grad_() for value in norm.parameters()]
    x = vectors(2, 3, 4).double().requires_grad_()

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(norm, dict(zip(names, parameters, strict=True)), (x, is_real))

    assert torch.autograd.gradcheck(run, (x, *parameters), fast_mode=True)
