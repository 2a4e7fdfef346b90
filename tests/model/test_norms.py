import pytest
import torch
from torch import nn

from manyheads.model.blocks import make_final_norm, make_norm
from manyheads.model.norms import NORMS, BatchNorm, LayerNorm, NoNorm, Norm, PaddedBatchNorm, RMSNorm, SampleNorm

from model.makers import choices, largest_difference, real, shaken, small, vectors

X = vectors(3, 5, 8) * 2 + 1
REAL = real("xxxxx", "xxx..", "x....")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("layer", LayerNorm),
        ("rms", RMSNorm),
        ("batch", BatchNorm),
        ("batch-with-padding", PaddedBatchNorm),
        ("sample", SampleNorm),
    ],
)
def test_settings_name_the_norm(name: str, kind: type) -> None:
    norm = make_norm(small(norm=name, norm_epsilon=1e-3))
    assert type(norm) is kind
    assert norm.epsilon == 1e-3


def test_the_base_class_does_not_normalize() -> None:
    with pytest.raises(NotImplementedError, match="Norm does not define forward"):
        Norm(8, 1e-5)(X, REAL)


@pytest.mark.parametrize("name", NORMS)
def test_mixes_positions_states_whether_a_token_depends_on_other_positions_at_inference(name: str) -> None:
    norm = shaken(make_norm(small(norm=name)))
    changed = X.clone()
    changed[:, -1] += 3
    is_affected = largest_difference(norm(changed, REAL)[:, :-1], norm(X, REAL)[:, :-1]) > 1e-3
    assert is_affected == norm.mixes_positions == small(norm=name).mixes_positions


def test_only_a_pre_norm_stack_ends_with_a_norm() -> None:
    assert isinstance(make_final_norm(small(norm_placement="pre")), LayerNorm)
    identity = make_final_norm(small(norm_placement="post"))
    assert isinstance(identity, NoNorm)
    assert identity(X, REAL) is X


def test_layer_norm_equals_the_formula() -> None:
    norm = shaken(LayerNorm(8, 1e-2))
    normed = norm(X, REAL)
    for row in range(3):
        for position in range(5):
            token = X[row, position]
            mean = token.sum() / 8
            variance = ((token - mean) ** 2).sum() / 8
            expected = norm.weight * (token - mean) / (variance + 1e-2) ** 0.5 + norm.bias
            assert torch.allclose(normed[row, position], expected, atol=1e-5)


def test_rms_norm_equals_the_formula() -> None:
    norm = shaken(RMSNorm(8, 1e-2))
    expected = norm.weight * X / ((X**2).sum(-1, keepdim=True) / 8 + 1e-2) ** 0.5
    assert torch.allclose(norm(X, REAL), expected, atol=1e-5)


@pytest.mark.parametrize("kind", [BatchNorm, PaddedBatchNorm])
def test_batch_norm_equals_torch_over_the_tokens_that_count(kind: type[BatchNorm]) -> None:
    counted = torch.ones_like(REAL) if kind.counts_padding else REAL
    ours, theirs = kind(8, 1e-3), nn.BatchNorm1d(8, eps=1e-3, momentum=0.1)
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
def test_batch_norm_of_fewer_than_two_tokens_uses_running_statistics(is_real: torch.Tensor) -> None:
    norm = BatchNorm(8, 1e-5).train()
    normed = norm(X[:1], is_real)
    assert torch.allclose(normed, X[:1], atol=1e-3)  # initially a mean of 0 and a variance of 1
    assert norm.running_mean.tolist() == [0] * 8


def test_sample_norm_normalizes_over_positions_and_features() -> None:
    norm = shaken(SampleNorm(8, 1e-5))
    sample = X[1]
    expected = (sample - sample.mean()) / (sample.var(correction=0) + 1e-5).sqrt() * norm.weight + norm.bias
    assert torch.allclose(norm(X, REAL)[1], expected, atol=1e-5)


# Whether the output of a token depends on a later position (a leak) or on padding.
@pytest.mark.parametrize(
    ("name", "on_other_positions", "on_padding"),
    [
        ("layer", False, False),
        ("rms", False, False),
        ("batch", True, False),
        ("batch-with-padding", True, True),
        ("sample", True, True),
    ],
)
def test_what_a_token_depends_on_in_training(name: str, on_other_positions: bool, on_padding: bool) -> None:
    norm = make_norm(small(norm=name)).train()
    base = norm(X, REAL)
    for (row, position), changes in {(1, 2): on_other_positions, (1, 3): on_padding}.items():
        other = X.clone()
        other[row, position] += 3
        difference = largest_difference(norm(other, REAL)[1, 0], base[1, 0])
        assert difference > 1e-3 if changes else difference == 0


@pytest.mark.parametrize("name", choices("norm"))
@pytest.mark.parametrize("training", [False, True])
def test_gradients_match_finite_differences(name: str, training: bool) -> None:
    norm = shaken(make_norm(small(norm=name, width=4))).double().train(training)
    is_real = real("xxx", "xx.")
    names = [name for name, _ in norm.named_parameters()]
    parameters = [value.detach().requires_grad_() for value in norm.parameters()]
    x = vectors(2, 3, 4).double().requires_grad_()

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(norm, dict(zip(names, parameters, strict=True)), (x, is_real))

    assert torch.autograd.gradcheck(run, (x, *parameters), fast_mode=True)
