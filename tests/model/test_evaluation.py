import pytest
import torch

from manyheads.model import evaluating

from model.makers import random_ids, small, small_model, vectors


def test_dropout_and_gradients_are_off_inside() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5)).train()
    x = vectors(4, 8)
    with evaluating(module):
        assert not module.training
        output = module(x)
        assert torch.equal(output, module[0](x))
    assert not output.requires_grad
    assert module(x).requires_grad


def test_training_modes_are_restored_per_submodule_even_after_an_error() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)).train()
    module[1].eval()
    with pytest.raises(KeyError), evaluating(module):
        raise KeyError
    assert [part.training for part in module.modules()] == [True, True, False]


def test_a_model_trains_after_evaluation() -> None:
    model = small_model(small())
    with evaluating(model):
        model(random_ids(1, 3), random_ids(1, 3))
    model(random_ids(1, 3), random_ids(1, 3)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.zero_grad()


def test_device_is_that_of_the_weights() -> None:
    assert small_model(small()).device == torch.device("cpu")
