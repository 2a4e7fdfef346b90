import pytest
import torch
from torch import Generator

from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.setup import Setup
from manyheads.lab.trial import make_model
from manyheads.lab.trials.norm_trials import (
    _gradient_norm,
    future_change,
    gradient_ratio,
    neighbor_change,
    padding_change,
    relative_change,
    statistics_change,
    token_similarity,
)
from manyheads.lab.trials.variants import with_batch_statistics, without_residual

EXACT = 1e-5
SETUP = Setup(
    model={"width": 16, "n_encoder_layers": 2, "feed_forward_width": 16, "n_heads": 2},
    task=Lookup(n_keys=6, n_values=4, n_records=(2, 5)),
)
BATCH = SETUP.task.batch(8, Generator().manual_seed(1))

SETUP_DEPTH_TRIALS = Setup(
    model={"width": 16, "n_encoder_layers": 1, "feed_forward_width": 16, "n_heads": 2, "norm_placement": "pre"},
    task=Lookup(n_keys=6, n_values=4, n_records=(4, 4)),
)


def _setup(norm, **changes):
    return SETUP.changed({"model.norm": norm, **changes})


def _model(norm, **changes):
    return make_model(_setup(norm, **changes), seed=1)


def test_relative_change_is_a_share():
    assert relative_change(torch.tensor([[3.0, 0.0]]), torch.tensor([[2.0, 0.0]])) == pytest.approx(0.5)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_token_norms_depend_on_nothing_else(norm):
    model = _model(norm)
    assert padding_change(model, BATCH) < EXACT
    assert padding_change(model, BATCH, is_training=True) < EXACT
    assert neighbor_change(model, BATCH) < EXACT
    assert statistics_change(model, BATCH) == 0.0
    assert future_change(_setup(norm), seed=1) == 0.0


def test_per_sample_norm_depends_on_padding_and_on_the_future_but_not_on_neighbors():
    model = _model("sample")
    assert padding_change(model, BATCH) > 0.05
    assert neighbor_change(model, BATCH) < EXACT
    assert future_change(_setup("sample"), seed=1) > 1e-3


def test_batch_norm_differs_between_training_and_inference_only():
    model = _model("batch")
    assert statistics_change(model, BATCH) > 0.05
    assert neighbor_change(model, BATCH) < EXACT
    assert padding_change(model, BATCH, is_training=True) < EXACT


def test_naive_batch_norm_sees_padding_in_training_only():
    model = _model("batch-with-padding")
    assert padding_change(model, BATCH, is_training=True) > 0.05
    assert padding_change(model, BATCH) < EXACT


def test_batch_statistics_at_test_make_neighbors_matter():
    model = _model("batch", alter=with_batch_statistics)
    assert neighbor_change(model, BATCH) > 0.05
    assert statistics_change(model, BATCH) < EXACT


def test_measuring_does_not_change_the_running_statistics():
    model = _model("batch")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    statistics_change(model, BATCH)
    padding_change(model, BATCH, is_training=True)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def _without_layers(model):
    model.encoder = torch.nn.ModuleList([_Same()])
    return model


class _Same(torch.nn.Module):
    def forward(self, x, is_real, view, *, tap=None):
        return torch.ones_like(x)


def test_the_first_block_of_one_is_the_last():
    assert gradient_ratio(SETUP_DEPTH_TRIALS, seed=1) == pytest.approx(1.0)


def test_equal_outputs_have_similarity_one():
    assert token_similarity(SETUP_DEPTH_TRIALS.changed({"alter": _without_layers}), seed=1) == pytest.approx(1.0)


def test_without_residual_connections_tokens_become_alike():
    deep = SETUP_DEPTH_TRIALS.changed({"model.n_encoder_layers": 8})
    plain = deep.changed({"alter": without_residual})
    assert token_similarity(plain, seed=1) > 0.99 > token_similarity(deep, seed=1)
    assert gradient_ratio(plain, seed=1) < gradient_ratio(deep, seed=1)


def test_the_norm_of_a_gradient_is_that_of_all_parameters_together():
    block = torch.nn.Linear(1, 1)
    assert _gradient_norm(block) == 0.0
    block.weight.grad, block.bias.grad = torch.tensor([[3.0]]), torch.tensor([4.0])
    assert _gradient_norm(block) == 5.0
