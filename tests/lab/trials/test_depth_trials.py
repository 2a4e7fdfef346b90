import pytest
import torch

from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.setup import Setup
from manyheads.lab.trials.depth_trials import _gradient_norm, gradient_ratio, token_similarity
from manyheads.lab.trials.variants import without_residual

SETUP = Setup(
    model={"width": 16, "n_encoder_layers": 1, "feed_forward_width": 16, "n_heads": 2, "norm_placement": "pre"},
    task=Lookup(n_keys=6, n_values=4, n_records=(4, 4)),
)


def _without_layers(model):
    model.encoder = torch.nn.ModuleList([_Same()])
    return model


class _Same(torch.nn.Module):
    def forward(self, x, is_real, view, *, tap=None):
        return torch.ones_like(x)


def test_the_first_block_of_one_is_the_last():
    assert gradient_ratio(SETUP, seed=1) == pytest.approx(1.0)


def test_equal_outputs_have_similarity_one():
    assert token_similarity(SETUP.changed({"alter": _without_layers}), seed=1) == pytest.approx(1.0)


def test_without_residual_connections_tokens_become_alike():
    deep = SETUP.changed({"model.n_encoder_layers": 8})
    plain = deep.changed({"alter": without_residual})
    assert token_similarity(plain, seed=1) > 0.99 > token_similarity(deep, seed=1)
    assert gradient_ratio(plain, seed=1) < gradient_ratio(deep, seed=1)


def test_the_norm_of_a_gradient_is_that_of_all_parameters_together():
    block = torch.nn.Linear(1, 1)
    assert _gradient_norm(block) == 0.0
    block.weight.grad, block.bias.grad = torch.tensor([[3.0]]), torch.tensor([4.0])
    assert _gradient_norm(block) == 5.0
